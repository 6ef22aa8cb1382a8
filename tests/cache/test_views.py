"""What is read of objects: what proves that nothing of a Job runs, and what is kept once for many."""

from typing import Any

import pytest

from admitter.cache.views import JobView, parse_job, parse_workload
from admitter.names import WORKLOAD_LABEL

Json = dict[str, Any]


def job(
    *,
    suspend: bool = True,
    started_by: str = "",
    status: Json | None = None,
    name: str = "a",
    annotations: Json | None = None,
) -> JobView:
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}
    marks = {"labels": {WORKLOAD_LABEL: started_by, "job-name": name}} if started_by else {}
    return parse_job(
        {
            "metadata": {
                "namespace": "team",
                "name": name,
                "uid": f"uid-{name}",
                "resourceVersion": "7",
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": {"admitter.dev/queue-name": "main"},
                "annotations": annotations or {},
            },
            "spec": {
                "suspend": suspend,
                "parallelism": 1,
                "completions": 1,
                "template": {"metadata": marks, "spec": {"containers": [container]}},
            },
            "status": status or {},
        }
    )


def test_a_job_that_no_admission_has_started_can_have_no_pods() -> None:
    assert job().unstarted
    assert not job().at_rest, "no controller has said so"


@pytest.mark.parametrize(
    "started",
    [
        job(suspend=False),
        job(started_by="job-a"),
        job(status={"active": 1}),
        job(status={"terminating": 1}),
    ],
    ids=["set running", "started before", "a pod runs", "a pod ends"],
)
def test_a_job_that_may_have_pods_is_not_taken_for_one_that_never_ran(started: JobView) -> None:
    assert not started.unstarted


def test_jobs_alike_keep_one_template() -> None:
    assert job(name="a").template is job(name="b").template
    assert job(name="a").workload != job(name="b").workload


def test_of_a_template_only_what_is_ours_is_kept() -> None:
    assert job(started_by="job-a").template_metadata["labels"] == {WORKLOAD_LABEL: "job-a"}


def test_the_conditions_that_hold_are_known_by_their_types() -> None:
    conditions = [
        {"type": "QuotaReserved", "status": "True", "lastTransitionTime": "2026-01-01T00:00:05Z"},
        {"type": "Evicted", "status": "False", "lastTransitionTime": "2026-01-01T00:00:05Z"},
    ]
    metadata = {
        "namespace": "team",
        "name": "w",
        "uid": "u",
        "resourceVersion": "7",
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    raw = {"metadata": metadata, "spec": {"queueName": "main"}, "status": {"conditions": conditions}}
    workload = parse_workload(raw)
    assert workload.true == {"QuotaReserved"}
    assert (workload.is_true("Evicted"), workload.finished) == (False, False)


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("2026-01-01T00:00:07Z", 1_767_225_607),
        ("2026-01-01T01:00:07.5+01:00", 1_767_225_607.5),
        ("2026-01-01t00:00:07z", 1_767_225_607),
        *((unreadable, 0) for unreadable in ("", "soon", "1767225607", "2026-01-01", "2026-01-01T00:00:07")),
        *((unreadable, 0) for unreadable in ("2026-13-01T00:00:00Z", "1969-12-31T23:59:59Z", "9" * 5000)),
        ("0001-01-01T00:00:00+23:00", 0),
        ("2026-01-01T00:00:07+99:00", 0),
    ],
)
def test_a_checkpoint_is_a_time_or_nothing(said: str, seconds: float) -> None:
    assert job(annotations={"admitter.dev/checkpointed-at": said}).checkpoint == seconds
