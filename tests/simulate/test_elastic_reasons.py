"""Elastic quotas: requests in the wrong unit, and for which preemptor a victim goes in the end."""

from pathlib import Path

import pytest

from tests.simulate.elastic import GPU_MEMORY, asks, quota
from tests.simulate.test_simulate import annotate, simulate


@pytest.mark.parametrize("quantity", ["20Gi", "20G", "20Ki", "20e3"])
def test_a_request_for_gpu_memory_in_other_units_is_refused_with_that_reason(
    tmp_path: Path, quantity: str
) -> None:
    wrong = asks("a", "bytes", {GPU_MEMORY: quantity})
    result = simulate(tmp_path, quota("a", {GPU_MEMORY: 40}), wrong, exit_code=1)
    (error,) = result["errors"]
    assert error["object"] == "Job a/bytes"
    assert f"is in whole GB: write a number like 40, not {quantity}" in error["message"]


def test_a_victim_for_the_second_preemptor_says_so_when_the_first_is_gone(tmp_path: Path) -> None:
    result = simulate(
        tmp_path,
        quota("a", {"cpu": 4}),
        quota("b", {"cpu": 0}, preemption={"gracePeriod": "30s"}),
        asks("b", "guest", {"cpu": 4}),
        annotate(asks("a", "first", {"cpu": 2}, 10), "simulated-until", "25s"),
        asks("a", "second", {"cpu": 2}, 20),
    )
    (preempted,) = [event for event in result["events"] if event["type"] == "Preempted"]
    assert (preempted["preemptor"] or "").startswith("a/job-second-")
