"""Calls and watches are counted by what they ask for, and those that failed by why."""

import contextlib
from collections import deque
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from admitter.client import throttle
from admitter.client.errors import ClusterError
from admitter.client.metrics import CallMetrics, request_of
from tests.client.faulty_server import FaultyServer, bookmark, connected, event, thing
from tests.client.test_informer import informed, names, page

OWN = "/apis/admitter.dev/v1alpha1"
OK: tuple[int, dict[str, str], Any] = (200, {}, thing("a", 1))


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/api/v1/pods", ("list", "pods")),
        ("GET", "/api/v1/namespaces/team/pods?labelSelector=a%2Fb", ("list", "pods")),
        ("GET", "/apis/batch/v1/namespaces/team/jobs/report", ("get", "jobs")),
        ("PATCH", f"{OWN}/namespaces/team/workloads/job-a/status", ("patch", "workloads/status")),
        ("POST", "/api/v1/namespaces/team/events?fieldManager=admitter", ("create", "events")),
        ("DELETE", f"{OWN}/namespaces/team/workloads/job-a", ("delete", "workloads")),
        ("GET", "/api/v1/namespaces", ("list", "namespaces")),
        ("GET", "/api/v1/namespaces/team", ("get", "namespaces")),
        ("PATCH", f"{OWN}/clusterqueues/total/status", ("patch", "clusterqueues/status")),
        ("GET", "/apis/example.com", ("get", "other")),
        ("GET", "/version", ("get", "other")),
    ],
)
def test_what_a_request_asks_for(method: str, path: str, expected: tuple[str, str]) -> None:
    assert request_of(method, path) == expected


async def counted(server: FaultyServer) -> dict[str, float]:
    """What is counted when a Workload's status is written."""
    registry = CollectorRegistry()
    async with connected(server, CallMetrics(registry)) as transport:
        with contextlib.suppress(ClusterError):
            await transport.patch(f"{OWN}/namespaces/team/workloads/a/status", {})
    samples = [sample for family in registry.collect() for sample in family.samples]
    return {
        " ".join((sample.name, sample.labels["code"])): sample.value
        for sample in samples
        if sample.labels.get("resource") == "workloads/status" and not sample.name.endswith("_created")
    }


async def test_each_attempt_counts_as_a_call_and_what_helped_in_the_end_is_no_error() -> None:
    server = FaultyServer(calls=deque([(500, {}, {}), OK]))
    assert await counted(server) == {"admitter_api_calls_total 500": 1, "admitter_api_calls_total 200": 1}


async def test_a_write_that_failed_for_good_is_an_error_by_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await counted(FaultyServer(calls=deque([(409, {}, {})]))) == {
        "admitter_api_calls_total 409": 1,
        "admitter_api_write_errors_total 409": 1,
    }
    monkeypatch.setattr(throttle, "FIRST_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(throttle, "LONGEST_PAUSE_SECONDS", 0.0)
    assert await counted(FaultyServer(calls=deque([(0, {}, b"")]))) == {
        "admitter_api_calls_total none": throttle.ATTEMPTS,
        "admitter_api_write_errors_total none": 1,
    }


async def test_watches_that_end_are_restarts_and_those_that_break_off_errors_too() -> None:
    gone = event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})
    server = FaultyServer(
        calls=deque([page(7), page(90, thing("new", 80))]),
        watches=deque([[bookmark(8)], [gone], [None]]),
    )
    registry = CollectorRegistry()
    async with informed(server, CallMetrics(registry)) as informer:
        await names(informer, "new")
    assert registry.get_sample_value("admitter_watch_errors_total", {"resource": "other"}) == 1
    assert registry.get_sample_value("admitter_watch_restarts_total", {"resource": "other"}) in {1, 2}


async def test_credit_and_calls_that_wait_are_those_of_the_newest_throttle() -> None:
    registry = CollectorRegistry()
    metrics = CallMetrics(registry)
    for _ in range(2):
        async with connected(FaultyServer(calls=deque([(503, {}, {}), OK])), metrics) as transport:
            await transport.get("/thing")
    assert registry.get_sample_value("admitter_api_credit") == throttle.MOST_CREDIT
    assert registry.get_sample_value("admitter_api_waiting_calls") == 0
