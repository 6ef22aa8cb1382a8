"""The auditor counts what Workloads say that they still hold, but never less than their pods use."""

from tests.faults.facts import JobFact, parse
from tests.faults.ledger import Ledger
from tests.faults.test_auditor import History


def raw(held: int | None) -> dict[str, object]:
    """A Workload of four pods of a CPU as the API server has it."""
    usage = {"name": "main", "count": 4, "flavors": {"cpu": "default"}, "usage": {"cpu": "4"}}
    said = {} if held is None else {"held": [{"name": "main", "count": held}]}
    owner = {"kind": "Job", "name": "wide", "uid": "wide"}
    return {
        "metadata": {"name": "w-wide", "namespace": "team", "uid": "w-wide", "ownerReferences": [owner]},
        "spec": {"podSets": [{"name": "main", "count": 4, "requests": {"cpu": "1"}}]},
        "status": {"admission": {"clusterQueue": "queue", "podSets": [usage]}, **said},
    }


def history(held: int | None, live: int) -> Ledger:
    """So many of four pods of a Job live when a Job of two CPUs is admitted beside it, in a queue of four."""
    told = History()
    told.queue()
    told.job("wide", parallelism=4)
    told.tell("w-wide", parse("workloads", raw(None)))
    told.job("wide", suspended=False, active=4, parallelism=4)
    for number in range(4):
        told.pod(f"wide-{number}", "wide")
    for number in range(live, 4):
        told.pod(f"wide-{number}", "wide", live=False, succeeded=True)
    told.tell("w-wide", parse("workloads", raw(held)))
    told.runs("next", 2)
    return told.ledger


def test_what_is_given_back_may_be_used_by_others() -> None:
    assert history(2, live=2).findings == []


def test_what_is_admitted_counts_until_it_is_given_back() -> None:
    (finding,) = history(None, live=2).findings
    assert "made the use of default cpu in queue 6000, of 4000" in finding


def test_pods_that_live_count_whatever_is_given_back() -> None:
    findings = history(2, live=3).findings
    assert any("made the use of default cpu in queue 5000, of 4000" in finding for finding in findings)


def test_a_job_that_says_that_it_is_suspended_has_the_pods_that_live_and_no_others() -> None:
    """Its numbers of pods are older than what the API server says of the pods themselves."""

    def active(suspended: str) -> int:
        status = {
            "active": 1,
            "terminating": 2,
            "conditions": [{"type": "Suspended", "status": suspended}],
        }
        metadata = {"uid": "u", "name": "j", "namespace": "n", "creationTimestamp": "1"}
        labelled = {**metadata, "labels": {"admitter.dev/queue-name": "main"}}
        fact = parse("jobs", {"metadata": labelled, "spec": {"suspend": True}, "status": status})
        assert isinstance(fact, JobFact)
        return fact.active

    assert active("False") == 3, "it may not have acted on its suspension"
    assert active("True") == 0
