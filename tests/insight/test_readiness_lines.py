"""What `explain` says of readiness."""

import pytest

from admitter.cache.readiness_status import ReadinessStatus, written
from admitter.cache.views import parse_workload
from admitter.insight.explain.readiness import readiness_lines

NOW = 1_790_000_000.0


@pytest.mark.parametrize(
    ("known", "admitted", "lines"),
    [
        (ReadinessStatus(), True, []),
        (
            ReadinessStatus(NOW - 60, attempts=3, next_try=NOW + 240),
            False,
            ["evicted 3 times for readiness, next try in 4 min"],
        ),
        (ReadinessStatus(NOW - 60, attempts=1, next_try=NOW - 1), False, ["evicted once for readiness"]),
        (
            ReadinessStatus(NOW - 60, attempts=5, failures=5, gave_up="often enough"),
            False,
            ["evicted 5 times for readiness, and given up"],
        ),
        (ReadinessStatus(NOW + 90), True, ["its pods have to be ready within 1 min 30 s"]),
        (
            ReadinessStatus(NOW + 90, attempts=2),
            True,
            ["its pods have to be ready within 1 min 30 s; evicted 2 times for readiness"],
        ),
        (ReadinessStatus(NOW - 90, NOW - 90), True, []),
        (
            ReadinessStatus(NOW - 90, NOW - 90, NOW + 60),
            True,
            ["it lacks a ready pod, and is evicted unless all are ready within 1 min"],
        ),
    ],
)
def test_lines_on_readiness(known: ReadinessStatus, admitted: bool, lines: list[str]) -> None:
    metadata = {"name": "w", "namespace": "team", "uid": "u", "resourceVersion": "1"}
    admission = {"clusterQueue": "q", "podSets": [{"name": "main", "count": 1}]}
    status = {"readiness": written(known), **({"admission": admission} if admitted else {})}
    view = parse_workload(
        {
            "metadata": metadata | {"creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"queueName": "main", "podSets": []},
            "status": status,
        }
    )
    assert list(readiness_lines(view, NOW)) == lines
