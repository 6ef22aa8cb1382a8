"""The default queue of a namespace, in simulations and for lint."""

from pathlib import Path

import pytest

from tests.cluster.objects import Json, cluster_queue, elastic_quota, job, local_queue
from tests.cluster.pods import pod
from tests.simulate.test_local_queues import FLAVOR, asking, found, namespace, reasons
from tests.simulate.test_simulate import QUEUES, annotate, simulate

DEFAULT = {"admitter.dev/default-queue": "main"}
MANAGED = DEFAULT | {"admitter.dev/managed": "true"}
KUEUE = {"kueue.x-k8s.io/queue-name": "other"}


def unnamed(name: str, **labels: str) -> Json:
    """A Job without a queue."""
    made = annotate(job("team", name, queue=None, seconds=None), "simulated-runtime", "1m")
    made["metadata"]["labels"] |= labels
    return made


def test_a_label_is_all_that_a_team_needs(tmp_path: Path) -> None:
    labels = DEFAULT | {"gpus": "yes"}
    result = simulate(tmp_path, FLAVOR, asking(gpus="yes"), namespace("team", **labels), unnamed("train"))
    assert reasons(result) == {"train": "Finished"}
    assert result["workloads"][0]["clusterQueue"] == "total"


@pytest.mark.parametrize(
    ("labels", "more", "queue"),
    [
        (DEFAULT, [], "total"),
        (DEFAULT, [elastic_quota("team", min={"cpu": "2"}, manageAllJobs=True)], "eq_team_quota"),
        ({}, [], None),
    ],
    ids=["default", "an elastic quota that manages all comes first", "no label"],
)
def test_which_queue_it_is(tmp_path: Path, labels: Json, more: list[Json], queue: str | None) -> None:
    result = simulate(tmp_path, *QUEUES, namespace("team", **labels), *more, unnamed("train"))
    assert [row["clusterQueue"] for row in result["workloads"]] == ([queue] if queue else [])


def test_kueues_label_comes_first_where_it_names_a_queue(tmp_path: Path) -> None:
    jobs = [unnamed("known", **KUEUE), unnamed("unknown", **{"kueue.x-k8s.io/queue-name": "none"})]
    other = [cluster_queue("gold", {"cpu": {"default": "4"}}), local_queue("team", "gold", "other")]
    result = simulate(tmp_path, *QUEUES, *other, namespace("team", **DEFAULT), *jobs)
    queues = {row["job"]: row["clusterQueue"] for row in result["workloads"]}
    assert queues == {"known": "gold", "unknown": "total"}


@pytest.mark.parametrize(("labels", "queued"), [(MANAGED, ["pod/probe"]), (DEFAULT, [])])
def test_pods_go_there_where_the_namespace_is_managed(
    tmp_path: Path, labels: Json, queued: list[str]
) -> None:
    result = simulate(tmp_path, *QUEUES, namespace("team", **labels), pod("team", "probe", None))
    assert [row["job"] for row in result["workloads"]] == queued


def test_lint_names_a_default_queue_that_is_not_there(tmp_path: Path) -> None:
    by_rule, lost = namespace("team", **DEFAULT), namespace("lost", **DEFAULT | {"no": "rule"})
    queue = asking()
    queue["spec"]["localQueues"]["namespaceSelector"] = {
        "matchExpressions": [{"key": "no", "operator": "DoesNotExist"}]
    }
    assert found(tmp_path, FLAVOR, queue, by_rule, lost) == {
        ("NoDefaultQueue", "Namespace lost"): (
            "its default queue main does not exist: Jobs that name no queue wait for it"
        )
    }
