"""The observer of bound pods finds what it is there for, and nothing in what is right."""

from itertools import count
from typing import Any

import pytest

from tests.abuse.scene import GROUNDS, node, queues
from tests.abuse.watcher import Watcher
from tests.cluster.objects import elastic_quota, job
from tests.faults.facts import quota_name
from tests.faults.timeline import Moment

Json = dict[str, Any]


class Server:
    """Tells a watcher what an API server would, one version after the other."""

    def __init__(self) -> None:
        self.watcher = Watcher()
        self._versions = count(1)
        for made in queues():
            self.tell("clusterqueues", made)
        for ground in GROUNDS:
            if ground.elastic:
                self.tell("elasticquotas", elastic_quota(ground.namespace, **ground.elastic))
        for flavor in ("on-demand", "spot"):
            self.tell("nodes", node(flavor, 0))

    def tell(self, kind: str, raw: Json, *, exact: bool = True) -> None:
        raw["metadata"] |= {"uid": raw["metadata"]["name"], "generation": 1}
        uid = quota_name(kind, raw) or raw["metadata"]["uid"]
        self.watcher.take(uid, self.watcher.scope.parse(kind, raw), Moment(next(self._versions), 0.0, exact))

    def job(
        self,
        namespace: str,
        name: str,
        queue: str | None = "main",
        *,
        suspend: bool = False,
        exact: bool = True,
    ) -> None:
        self.tell("jobs", job(namespace, name, queue=queue, suspend=suspend), exact=exact)

    def experiment(self, namespace: str, name: str, queue: str = "main", *, state: str = "Running") -> None:
        labels = {"admitter.dev/queue-name": queue} if queue else {}
        metadata = {"name": name, "namespace": namespace, "labels": labels}
        self.tell("experiments", {"metadata": metadata, "spec": {"state": state}})

    def pod(
        self,
        namespace: str,
        name: str,
        cpu: str,
        owner: str = "",
        *,
        on: str = "abuse-on-demand-0",
        phase: str = "Running",
        queue: str = "",
        exact: bool = True,
        kind: str = "Job",
        **spec: Any,
    ) -> None:
        owners = [{"kind": kind, "uid": owner, "controller": True}] if owner else []
        container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
        made = {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": {"admitter.dev/queue-name": queue} if queue else {},
                "ownerReferences": owners,
            },
            "spec": {"containers": [container], "nodeName": on, **spec},
            "status": {"phase": phase},
        }
        self.tell("pods", made, exact=exact)

    @property
    def found(self) -> list[str]:
        return [finding.words for finding in self.watcher.findings]


@pytest.fixture
def server() -> Server:
    return Server()


def test_pods_within_quota_are_no_finding(server: Server) -> None:
    server.job("managed-a", "work")
    server.pod("managed-a", "one", "14", "work")
    assert server.found == []
    assert server.watcher.highest["queue abuse-a: on-demand cpu"] == 100
    assert server.watcher.highest["cohort abuse: on-demand cpu"] == 14 * 100 // 16


def test_a_queue_that_uses_more_than_its_most_is_found_with_its_pods_and_jobs(server: Server) -> None:
    server.job("managed-a", "work")
    server.pod("managed-a", "one", "14", "work")
    server.pod("managed-a", "two", "1m", "work")
    (finding,) = server.watcher.findings
    assert "14001 of 14000 of queue abuse-a: on-demand cpu" in finding.words
    assert "Job managed-a/work (queue at its start: main): one 14000, two 1" in finding.words
    assert finding.about == ("managed-a/work (queue at its start: main)",)


def test_queues_that_use_more_than_their_cohort_has_are_found(server: Server) -> None:
    server.job("managed-a", "work")
    server.job("open-a", "more")
    server.pod("managed-a", "one", "10", "work")
    server.pod("open-a", "two", "7", "more")
    assert len(server.found) == 1
    assert "17000 of 16000 of cohort abuse: on-demand cpu" in server.found[0]


def test_elastic_quotas_count_in_one_pool_and_each_by_itself(server: Server) -> None:
    for number, namespace in enumerate(("elastic-all", "elastic-some", "elastic-sound")):
        server.job(namespace, f"job-{number}", "elastic-quota")
    server.pod("elastic-all", "one", "9", "job-0")
    server.pod("elastic-some", "two", "8", "job-1")
    server.pod("elastic-sound", "three", "2", "job-2")
    assert len(server.found) == 2
    assert "9000 of 8000 of queue eq_elastic-all_quota: cpu" in server.found[0]
    assert "19000 of 18000 of cohort elastic quotas: cpu" in server.found[1]


def test_a_flavor_that_the_queue_does_not_have_is_found(server: Server) -> None:
    server.job("open-a", "work")
    server.pod("open-a", "one", "1", "work", on="abuse-spot-0")
    assert "1000 of 0 of queue abuse-b: spot cpu" in server.found[0]


def test_a_pod_on_a_node_that_refuses_it_counts_where_it_may_run(server: Server) -> None:
    server.job("open-a", "work")
    server.pod("open-a", "one", "1", "work", on="abuse-spot-0", nodeSelector={"instance-type": "on-demand"})
    assert server.found == []
    assert server.watcher.used("abuse-b") == {("on-demand", "cpu"): 1000}


@pytest.mark.parametrize("owner", ["", "plain"])
def test_in_a_managed_namespace_a_pod_without_a_queue_is_found(server: Server, owner: str) -> None:
    server.job("managed-a", "plain", None)
    server.pod("managed-a", "hand-1" if not owner else "one", "1m", owner)
    assert len(server.found) == 1
    assert "runs without any quota" in server.found[0]


@pytest.mark.parametrize("namespace", ["managed-a", "open-b"])
def test_a_pod_by_hand_that_names_a_queue_counts_there(server: Server, namespace: str) -> None:
    queue = "main" if namespace == "managed-a" else "other"
    server.pod(namespace, "hand-1", "14", queue=queue)
    assert server.watcher.used("abuse-a") == {("on-demand", "cpu"): 14000}
    server.pod(namespace, "hand-2", "1m", queue=queue)
    (finding,) = server.watcher.findings
    assert "14001 of 14000 of queue abuse-a: on-demand cpu" in finding.words
    assert f"Job {namespace}/hand-1 (queue that it names: {queue}): hand-1 14000" in finding.words


def test_a_pod_by_hand_in_a_managed_namespace_that_names_no_queue_of_it_is_found(server: Server) -> None:
    server.pod("managed-a", "hand-1", "1m", queue="absent")
    server.pod("open-a", "hand-2", "1m", queue="absent")
    assert [("managed-a/hand-1" in words, "without any quota" in words) for words in server.found] == [
        (True, True)
    ]


def test_a_pod_that_names_its_node_is_found_but_without_a_queue_outside_of_managed_namespaces(
    server: Server,
) -> None:
    server.pod("open-a", "hand-bound-1", "99")
    assert server.found == []
    for namespace, queue in (("open-a", "main"), ("managed-a", "main"), ("managed-a", "")):
        name = f"hand-bound-{namespace}-{queue or 'none'}"
        server.pod(namespace, name, "1m", queue=queue)
        assert any(f"pod {namespace}/{name} runs without any quota" in found for found in server.found)


@pytest.mark.parametrize("namespace", ["managed-a", "open-a"])
def test_a_copy_of_a_pod_that_waits_has_no_node_and_counts_once_it_has(
    server: Server, namespace: str
) -> None:
    queue = "main" if namespace == "managed-a" else "other"
    server.pod(namespace, "hand-bound-1", "14", queue=queue, on="", phase="Pending")
    server.pod(namespace, "hand-bound-1", "14", queue=queue)
    assert server.found == []
    assert server.watcher.used("abuse-a") == {("on-demand", "cpu"): 14000}
    server.pod(namespace, "hand-bound-2", "1m", queue=queue, on="", phase="Pending")
    server.pod(namespace, "hand-bound-2", "1m", queue=queue)
    (found,) = server.found
    assert "14001 of 14000 of queue abuse-a: on-demand cpu" in found


def test_a_pod_of_which_it_is_not_known_whether_it_named_its_node_counts_in_its_queue(server: Server) -> None:
    server.pod("managed-a", "hand-bound-1", "7", queue="main", exact=False)
    server.pod("open-a", "hand-bound-2", "7", queue="other", exact=False)
    assert server.found == []
    assert server.watcher.used("abuse-a") == {("on-demand", "cpu"): 14000}


def test_elsewhere_what_names_no_queue_does_not_count(server: Server) -> None:
    server.job("open-a", "plain", None)
    server.job("open-a", "queued")
    server.pod("open-a", "one", "100", "plain")
    server.pod("open-a", "hand-1", "100", "queued")
    assert server.watcher.used("abuse-b") == {}
    assert server.found == []


def test_where_all_jobs_are_managed_those_without_a_queue_count(server: Server) -> None:
    for label, name in ((None, "none"), ("", "empty")):
        server.job("elastic-open", name, label)
        server.pod("elastic-open", f"pod-{name}", "5", name)
    assert "10000 of 8000 of queue eq_elastic-open_quota: cpu" in server.found[0]


@pytest.mark.parametrize(
    ("namespace", "started", "counts"),
    [("elastic-open", -1.0, False), ("elastic-open", -31.0, True), ("elastic-all", -1.0, True)],
)
def test_a_job_that_a_starting_server_lets_pass_does_not_count_but_in_managed_namespaces(
    server: Server, namespace: str, started: float, counts: bool
) -> None:
    server.watcher.server_starts.append(started)
    server.job(namespace, "early", None)
    server.pod(namespace, "one", "9", "early")
    assert bool(server.found) is counts


def test_the_queue_is_the_one_that_the_job_named_when_it_was_started(server: Server) -> None:
    server.job("open-a", "plain", None)
    server.job("open-a", "plain", "main")
    server.pod("open-a", "one", "100", "plain")
    assert server.watcher.used("abuse-b") == {}
    server.job("open-a", "plain", "main", suspend=True)
    server.job("open-a", "plain", "main")
    server.pod("open-a", "two", "1", "plain")
    assert server.watcher.used("abuse-b") == {("on-demand", "cpu"): 1000}


def test_pods_count_while_they_are_bound_and_have_not_ended_whatever_becomes_of_their_job(
    server: Server,
) -> None:
    server.job("managed-a", "work")
    server.pod("managed-a", "one", "5", "work", on="")
    assert server.watcher.used("abuse-a") == {}
    server.pod("managed-a", "one", "5", "work")
    server.watcher.take("work", None, Moment(100, 0.0))
    server.pod("managed-a", "one", "5", "")
    assert server.watcher.used("abuse-a") == {("on-demand", "cpu"): 5000}
    server.pod("managed-a", "one", "5", phase="Failed")
    assert server.watcher.used("abuse-a") == {}
    server.pod("managed-a", "two", "5", "work")
    server.watcher.take("two", None, Moment(101, 0.0))
    assert server.watcher.used("abuse-a") == {}


def test_what_happens_while_order_is_unknown_is_checked_when_all_of_it_is_known(server: Server) -> None:
    server.job("managed-a", "work")
    server.pod("managed-a", "one", "15", "work", exact=False)
    server.pod("managed-a", "one", "15", "work", phase="Failed", exact=False)
    server.watcher.settle(Moment(100, 0.0))
    assert server.found == []
    server.pod("managed-a", "two", "15", "work", exact=False)
    assert server.found == []
    server.watcher.settle(Moment(101, 0.0))
    assert "15000 of 14000 of queue abuse-a" in server.found[0]


def test_a_pod_that_is_heard_of_before_its_job_is_that_jobs(server: Server) -> None:
    """After a gap both come in the order of their last changes."""
    server.pod("managed-a", "one", "5", "work", exact=False)
    server.pod("managed-a", "one", "6", "work", exact=False)
    server.job("managed-a", "work", exact=False)
    assert server.watcher.used("abuse-a") == {("on-demand", "cpu"): 6000}
    server.job("managed-a", "stopped", suspend=True, exact=False)
    server.pod("managed-a", "two", "9", "stopped", exact=False)
    server.pod("managed-a", "three", "1", "gone", exact=False)
    assert server.found == []
    server.watcher.settle(Moment(100, 0.0, exact=False))
    (found,) = server.found
    assert "15000 of 14000 of queue abuse-a: on-demand cpu" in found, "the Job that is gone is in doubt"


def test_everything_that_is_checked_is_followed() -> None:
    kinds = {"nodes", "jobs", "experiments", "pods", "clusterqueues", "elasticquotas"}
    assert set(Watcher().scope.paths) == kinds


def test_other_namespaces_are_not_looked_at(server: Server) -> None:
    made = job("elsewhere", "work", suspend=False)
    assert server.watcher.scope.parse("jobs", made) is None


def test_pods_of_a_described_kind_use_the_queue_that_their_object_named_at_its_start(server: Server) -> None:
    server.experiment("open-a", "trial", state="Stopped")
    server.experiment("open-a", "trial")
    server.pod("open-a", "trial-0", "16", "trial", kind="Experiment")
    server.job("open-a", "work")
    server.pod("open-a", "one", "1", "work")
    (found,) = {words.partition(". ")[2] for words in server.found if "queue abuse-b" in words}
    assert "17000 of 16000" in server.found[0]
    assert found.startswith("Job open-a/trial (queue at its start: main): trial-0 16000; Job open-a/work")


def test_an_object_of_a_described_kind_without_a_queue_is_let_pass_until_it_has_one(server: Server) -> None:
    server.experiment("elastic-open", "trial", "")
    server.pod("elastic-open", "trial-0", "9", "trial", kind="Experiment")
    assert server.found == []
    server.experiment("elastic-open", "trial", "elastic-quota", state="Stopped")
    server.experiment("elastic-open", "trial", "elastic-quota")
    server.pod("elastic-open", "trial-1", "9", "trial", kind="Experiment")
    assert "9000 of 8000 of queue eq_elastic-open_quota: cpu" in server.found[0]
    server.experiment("managed-a", "loose", "")
    server.pod("managed-a", "loose-0", "1", "loose", kind="Experiment")
    assert "pod managed-a/loose-0 runs without any quota" in server.found[-1]
