"""For how many pods a Workload holds quota, by what its Job and its own status say."""

from typing import Any

import pytest

from admitter.cache.views import JobView, WorkloadView, parse_job, parse_workload
from admitter.policy.held import held, left_of, lowered, missing, needed, wanted

Json = dict[str, Any]


def job(status: Json, *conditions: str, **spec: Any) -> JobView:
    """A Job that runs, of four pods unless told otherwise."""
    template = {"spec": {"containers": [{"name": "main"}]}}
    said = [{"type": kind, "status": "True"} for kind in conditions]
    return parse_job(
        {
            "metadata": {
                "namespace": "team",
                "name": "wide",
                "uid": "1",
                "resourceVersion": "1",
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {"parallelism": 4, "completions": 4, "template": template, **spec},
            "status": {**status, "conditions": said},
        }
    )


def workload(said: int | None = None, admitted: int = 4) -> WorkloadView:
    """A Workload of pods of a CPU."""
    usage = {"name": "main", "count": admitted, "flavors": {"cpu": "any"}, "usage": {"cpu": str(admitted)}}
    status: Json = {"admission": {"clusterQueue": "queue", "podSets": [usage]}}
    status |= {} if said is None else {"held": [{"name": "main", "count": said}]}
    metadata = {
        "namespace": "team",
        "name": "job-wide",
        "uid": "2",
        "resourceVersion": "1",
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    pod_sets = [{"name": "main", "count": admitted, "requests": {"cpu": "1"}}]
    return parse_workload(
        {"metadata": metadata, "spec": {"queueName": "main", "podSets": pod_sets}, "status": status}
    )


def said(count: int) -> list[Json]:
    return [{"name": "main", "count": count}]


@pytest.mark.parametrize(
    ("made", "alive", "expected"),
    [
        pytest.param(job({"active": 4}), 4, None, id="all run"),
        pytest.param(job({}), 0, None, id="none is made yet"),
        pytest.param(job({"active": 3, "succeeded": 1}), 3, said(3), id="one has succeeded"),
        pytest.param(job({"active": 3, "failed": 1}), 3, None, id="one that failed is made again"),
        pytest.param(job({"active": 2, "terminating": 1, "succeeded": 2}), 2, said(3), id="one still ends"),
        pytest.param(job({"active": 2, "succeeded": 2}), 3, said(3), id="a pod lives that is not counted"),
        pytest.param(job({"active": 4, "succeeded": 8}, completions=12), 4, None, id="as many are left"),
        pytest.param(job({"active": 3, "succeeded": 9}, completions=12), 3, said(3), id="three are left"),
        pytest.param(job({"active": 2, "succeeded": 9}, completions=12), 2, said(3), id="one is yet to come"),
        pytest.param(
            job({"active": 3, "succeeded": 1}, completionMode="Indexed"), 3, said(3), id="of an index"
        ),
        pytest.param(job({"active": 4}, completions=None), 4, None, id="a queue of work"),
        pytest.param(
            job({"active": 2, "succeeded": 1}, completions=None), 2, said(2), id="a queue of work that ends"
        ),
        pytest.param(
            job({"active": 1, "terminating": 2, "succeeded": 1}, "SuccessCriteriaMet"),
            3,
            said(3),
            id="enough have succeeded",
        ),
        pytest.param(job({"active": 1}, "FailureTarget"), 1, said(1), id="it has failed"),
        pytest.param(job({"active": 2}, parallelism=2), 2, said(2), id="made narrower"),
        pytest.param(job({"active": 2, "terminating": 2}, parallelism=2), 4, None, id="about to be narrower"),
    ],
)
def test_what_a_job_gives_back(made: JobView, alive: int, expected: list[Json] | None) -> None:
    assert lowered(workload(), made, alive) == expected


def test_what_it_says_counts_and_only_goes_down() -> None:
    assert held(workload()) == {"main": 4}
    assert held(workload(2)) == {"main": 2}
    assert held(workload(9)) == {"main": 4}
    assert lowered(workload(1), job({"active": 3, "succeeded": 1}), 3) is None


def test_what_is_held_uses_its_part_of_the_admission() -> None:
    known = workload(3)
    assert known.admission is not None
    assert dict(left_of(known.admission, known).usage) == {("any", "cpu"): 3000}
    assert left_of(known.admission, workload()) is known.admission


def test_what_a_job_needs_again_counts_up_to_what_was_admitted() -> None:
    known, wider = workload(1), job({"active": 3}, parallelism=3, completions=9)
    assert known.admission is not None
    assert dict(left_of(known.admission, known, wider).usage) == {("any", "cpu"): 3000}
    assert missing(known, wider) == "its Job asks for 3 pods again, and has given back all but 1 of 4"
    widest = job({"active": 7}, parallelism=7, completions=9)
    assert dict(left_of(known.admission, known, widest).usage) == {("any", "cpu"): 4000}
    assert missing(known, widest) == "", "that is more than was admitted"


def test_a_suspended_job_asks_for_what_is_left() -> None:
    made = job({"succeeded": 3}, suspend=True)
    assert (wanted(made), needed(made)) == ({"main": 1}, {"main": 1})
