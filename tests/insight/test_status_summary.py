"""What a Workload's own status says, found by its name or by its Job's."""

from typing import Any

import pytest

from admitter.insight.explain.status_summary import find, summary
from admitter.insight.snapshot_file import readable
from admitter.policy.snapshot import Facts

Json = dict[str, Any]


def workload(name: str, job: str, **status: Any) -> Json:
    metadata = {"name": name, "namespace": "n", "uid": name, "resourceVersion": "1"}
    metadata["creationTimestamp"] = "2026-01-01T00:00:00Z"
    owner = {"kind": "Job", "name": job, "uid": job, "controller": True}
    spec = {"queueName": "main", "podSets": [{"name": "main", "count": 1}]}
    return {"metadata": metadata | {"ownerReferences": [owner]}, "spec": spec, "status": status}


def condition(kind: str, message: str) -> Json:
    since = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
    return {"type": kind, "status": "True", "reason": "Because", "message": message, **since}


def said(name: str, *workloads: Json, kind: str | None = None) -> Json | None:
    known = Facts(0.0, views={"workloads": {view.key: view for view in readable(workloads, "workloads")}})
    view = find(known, "n", name, kind)
    return summary(view) if view is not None else None


@pytest.mark.parametrize("name", ["job-a-1", "a"])
def test_it_is_found_by_either_name(name: str) -> None:
    waits = workload("job-a-1", "a", state="Pending", reason="NeverFits", message="asks too much")
    assert said(name, workload("job-b-1", "b"), waits) == {
        "namespace": "n",
        "name": "a",
        "workload": "job-a-1",
        "state": "Pending",
        "reason": "NeverFits",
        "message": "asks too much",
    }
    assert said("c", waits) is None


@pytest.mark.parametrize(
    ("kind", "found"), [("Job", "job-a-1"), ("Workload", "a"), (None, "a")], ids=["job/a", "wl/a", "a"]
)
def test_a_kind_tells_a_job_from_a_workload_of_the_same_name(kind: str | None, found: str) -> None:
    of_job, by_hand = workload("job-a-1", "a"), workload("a", "")
    by_hand["metadata"]["ownerReferences"] = []
    answer = said("a", by_hand, of_job, kind=kind)
    assert answer is not None
    assert answer["workload"] == found
    assert said("a", by_hand, kind="Job") is None
    assert said("a", of_job, kind="Workload") is None


def test_of_several_that_a_job_name_had_the_one_that_is_not_over_counts() -> None:
    over = workload("job-a-1", "a", state="Finished", conditions=[condition("Finished", "done")])
    found = said("a", over, workload("job-a-2", "a", state="Pending"), over)
    assert found is not None
    assert found["workload"] == "job-a-2"


@pytest.mark.parametrize(
    ("state", "kind"), [("Admitted", "QuotaReserved"), ("Evicted", "Evicted"), ("Finished", "Finished")]
)
def test_one_that_does_not_wait_has_the_message_of_its_condition(state: str, kind: str) -> None:
    pod_set = {"name": "main", "count": 1, "flavors": {"cpu": "any"}, "usage": {"cpu": "1"}}
    admission = {"clusterQueue": "q", "podSets": [pod_set]}
    conditions = [condition("Other", "no"), condition(kind, "yes")]
    found = said("a", workload("w", "a", state=state, conditions=conditions, admission=admission))
    assert found is not None
    assert (found["state"], found["message"]) == (state, "yes")
