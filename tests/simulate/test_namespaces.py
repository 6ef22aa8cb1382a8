"""Namespaces that bring their own quota, and their weights, with `admitter simulate` (docs/namespaces.md)."""

from pathlib import Path
from typing import Any

from tests.cluster.objects import ADMITTER, Json, cluster_queue, local_queue, resource_flavor
from tests.simulate.elastic import asks
from tests.simulate.test_simulate import annotate, simulate, states

QUOTA = "admitter.dev/namespace.quota"
PARENT = "yunikorn.apache.org/parentqueue"
EXAMPLE = '{"cpu": "64", "memory": "100G", "nvidia.com/gpu": "1"}'


def namespace(name: str, **annotations: str) -> Json:
    """A namespace with a quota, a parent, or both."""
    names = {"quota": QUOTA, "parent": PARENT}
    given = {names[short]: text for short, text in annotations.items()}
    metadata = {"name": name, "annotations": given}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def cohort(name: str, cpu: int | None = None) -> Json:
    """A Cohort, with so many CPUs or none of its own."""
    flavor = {"name": "default", "quota": {"min": cpu}}
    spec: Json = {"resources": [{"name": "cpu", "flavors": [flavor]}]} if cpu is not None else {}
    return {"apiVersion": ADMITTER, "kind": "Cohort", "metadata": {"name": name}, "spec": spec}


def job(where: str, name: str, second: int = 0, lasts: str | None = None, **requests: Any) -> Json:
    """A Job in the queue of its namespace."""
    named = {"gpu": "nvidia.com/gpu"}
    texts = {named.get(short, short): amount for short, amount in requests.items()}
    return asks(where, name, texts, second, queue=where, lasts=lasts)


def queues(result: Json) -> dict[str, str | None]:
    """The ClusterQueues, and their Cohorts."""
    return {row["name"]: row["cohort"] for row in result["clusterQueues"]}


def used(result: Json, name: str) -> dict[str, str]:
    """What a ClusterQueue uses, by resource."""
    (row,) = (row for row in result["clusterQueues"] if row["name"] == name)
    return {r: use["used"] for flavor in row["usage"].values() for r, use in flavor.items()}


def test_the_quota_of_002_limits_the_jobs_of_its_namespace(tmp_path: Path) -> None:
    """*Namespace quota*: 64 CPUs, 100GB memory and 1 nvidia.com/gpu."""
    result = simulate(
        tmp_path,
        namespace("development", quota=EXAMPLE),
        job("development", "cpus", 1, cpu=63, memory="50G"),
        job("development", "too-many-cpus", 2, cpu=2),
        job("development", "too-much-memory", 3, memory="50000000001"),
        job("development", "gpu", 4, gpu=1),
        job("development", "another-gpu", 5, gpu=1),
        job("development", "the-rest", 6, cpu=1, memory="50G"),
        job("development", "not-limited", 7, **{"ephemeral-storage": "1Ti"}),
    )
    admitted = {name for name, state in states(result).items() if state == "Admitted"}
    assert admitted == {"cpus", "gpu", "the-rest", "not-limited"}
    assert queues(result) == {"development": "root"}
    assert {"cpu": "64", "memory": "100G", "nvidia.com/gpu": "1"}.items() <= used(
        result, "development"
    ).items()
    assert result["errors"] == []


def test_the_tree_of_002_with_two_parents(tmp_path: Path) -> None:
    """*Parent queue mapping for namespaces*: the one that comes last in the file."""
    result = simulate(
        tmp_path,
        *(namespace(name, parent="root.production", quota='{"cpu": 8}') for name in ("finance", "sales")),
        *(namespace(name, parent="development") for name in ("dev", "test")),
        *(
            job(name, f"{name}-{n}", n, cpu=3)
            for n in range(1, 4)
            for name in ("finance", "sales", "dev", "test")
        ),
        resource_flavor("default", {}),
        cohort("production", 9),
        cohort("development", 100),
    )
    assert queues(result) == {
        "finance": "production",
        "sales": "production",
        "dev": "development",
        "test": "development",
    }
    assert [used(result, name)["cpu"] for name in ("finance", "sales")] == ["6", "3"]
    assert [used(result, name)["cpu"] for name in ("dev", "test")] == ["9", "9"]


def test_annotations_that_change_on_the_timeline(tmp_path: Path) -> None:
    result = simulate(
        tmp_path,
        namespace("a", quota='{"cpu": 1}'),
        annotate(namespace("a", quota='{"cpu": 2}'), "simulated-at", "1m"),
        annotate(namespace("a", quota="2"), "simulated-at", "2m"),
        annotate(namespace("a", quota='{"cpu": 4}'), "simulated-at", "3m"),
        *(job("a", f"job-{n}", cpu=1) for n in range(1, 5)),
        exit_code=1,
    )
    admitted = [(event["time"][14:16], event["type"]) for event in result["events"]]
    assert admitted == [("00", "Admitted"), ("01", "Admitted"), ("03", "Admitted"), ("03", "Admitted")]
    words = f'annotation {QUOTA}: is no JSON object of quantities by resource, such as {{"cpu": "64"}}'
    assert result["errors"] == [{"object": "Namespace a", "message": words}]


def test_a_parent_that_never_comes_is_an_error_and_its_jobs_wait(tmp_path: Path) -> None:
    result = simulate(tmp_path, namespace("a", parent="root.research"), job("a", "one", cpu=1), exit_code=1)
    words = f"annotation {PARENT}: Cohort research does not exist"
    assert result["errors"] == [{"object": "Namespace a", "message": words}]
    (row,) = result["workloads"]
    assert (row["reason"], row["message"]) == (
        "ClusterQueueStopped",
        f"ClusterQueue a is stopped: {words}",
    )


def test_a_namespace_without_annotations_any_more_has_no_queue(tmp_path: Path) -> None:
    result = simulate(
        tmp_path,
        namespace("a", quota='{"cpu": 1}'),
        annotate(namespace("a"), "simulated-at", "1m"),
        job("a", "runs", cpu=1),
        job("a", "waits", 70, cpu=1),
    )
    assert states(result) == {"runs": "Admitted", "waits": "Pending"}
    assert result["workloads"][1]["reason"] == "QueueNotFound"
    assert queues(result) == {"a": "root"}, "one that is gone is shown as long as something is held in it"


def test_a_queue_made_by_hand_stays_as_it_is(tmp_path: Path) -> None:
    result = simulate(
        tmp_path,
        resource_flavor("default", {}),
        cluster_queue("a", {"cpu": {"default": "5"}}),
        local_queue("a", "a", "a"),
        namespace("a", quota='{"cpu": 1}'),
        job("a", "one", cpu=5),
        exit_code=1,
    )
    words = "ClusterQueue a was not made for this namespace, and stays as it is"
    assert result["errors"] == [{"object": "Namespace a", "message": words}]
    assert states(result) == {"one": "Admitted"}


def weights(where: str, weight: Any, name: str = "weights") -> Json:
    """A ResourceQuota that gives its namespace a weight."""
    metadata = {"namespace": where, "name": name}
    spec = {"hard": {"volcano.sh/namespace.weight": weight}}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec}


def shared(tmp_path: Path, *more: Json) -> dict[str, int]:
    """How many CPUs of 12 each of two namespaces gets that want more, by its Jobs of one CPU."""
    result = simulate(
        tmp_path,
        resource_flavor("default", {}),
        cluster_queue("total", {"cpu": {"default": "12"}}, namespaceOrdering="WeightedShare"),
        *(local_queue(name, "total") for name in ("ns1", "ns2")),
        *(asks(name, f"{name}-{n}", {"cpu": 1}, queue="main") for name in ("ns1", "ns2") for n in range(20)),
        *more,
    )
    names = [row["namespace"] for row in result["workloads"] if row["state"] == "Admitted"]
    return {name: names.count(name) for name in ("ns1", "ns2")}


def test_namespaces_share_by_the_weights_of_their_resource_quotas(tmp_path: Path) -> None:
    assert shared(tmp_path) == {"ns1": 6, "ns2": 6}
    assert shared(tmp_path, weights("ns1", "3")) == {"ns1": 9, "ns2": 3}
    assert shared(tmp_path, weights("ns1", 2), weights("ns1", "5", "more"), weights("ns2", "1.5")) == {
        "ns1": 10,
        "ns2": 2,
    }
