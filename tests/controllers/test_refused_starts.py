"""Which refusals of a start are for good, and for how long they count."""

import asyncio

import pytest

from admitter.cache.views import JobView, parse_job
from admitter.client.errors import api_error
from admitter.client.store import Key
from admitter.controllers.workload.refused_starts import RefusedStarts, is_for_good
from tests.apiserver.loop import run


def view(version: int) -> JobView:
    metadata = {
        "name": "job",
        "namespace": "team",
        "uid": "u",
        "resourceVersion": str(version),
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    return parse_job({"metadata": metadata, "spec": {"template": {"spec": {"containers": []}}}})


@pytest.mark.parametrize(
    ("status", "message", "for_good"),
    [
        pytest.param(403, "denied by a policy", True, id="a policy of another administrator"),
        pytest.param(422, "spec.x: Invalid value", True, id="invalid"),
        pytest.param(413, "limit is 3145728", True, id="too large for the server"),
        pytest.param(500, "etcdserver: request is too large", True, id="too large for the store"),
        pytest.param(500, "etcdserver: leader changed", False, id="the server failed"),
        pytest.param(409, "the object has been modified", False, id="it has changed meanwhile"),
        pytest.param(404, "not found", False, id="it is gone"),
        pytest.param(429, "too many requests", False, id="the server is busy"),
    ],
)
def test_what_would_be_refused_again(status: int, message: str, for_good: bool) -> None:
    assert is_for_good(api_error(status, {"message": message})) is for_good


async def test_a_refusal_counts_until_a_while_has_passed() -> None:
    tried_again: asyncio.Future[Key] = asyncio.get_running_loop().create_future()
    refused = RefusedStarts(seconds=0)
    refused.over.listen(lambda key: None if tried_again.done() else tried_again.set_result(key))
    job = view(1)
    assert refused.why(job) is None
    words = refused.note(job, api_error(403, {"message": "denied"}))
    assert "denied" in words
    assert refused.why(job) == words
    assert await tried_again == ("team", job.workload)
    assert refused.why(job) is None


async def test_a_refusal_outlasts_what_is_written_to_the_job_when_it_gives_its_quota_back() -> None:
    pause_over: asyncio.Future[Key] = asyncio.get_running_loop().create_future()
    refused = RefusedStarts(seconds=600, first_pause=0)
    refused.over.listen(pause_over.set_result)
    words = refused.note(view(1), api_error(403, {"message": "denied"}))
    refused.barred(view(1), view(2))
    await pause_over
    assert (refused.why(view(2)), refused.why(view(3))) == (words, None)
    refused.barred(view(3), view(4))
    assert refused.why(view(4)) is None, "it has changed since it was refused"


def test_changes_of_a_job_count_after_a_pause_that_doubles() -> None:
    async def story() -> None:
        loop, tries, over = asyncio.get_running_loop(), [], []
        refused = RefusedStarts(seconds=100, first_pause=10)
        refused.over.listen(lambda _: over.append(loop.time()))
        begun = loop.time()
        for second in range(200):  # something annotates the Job each second
            if refused.why(view(second)) is None:
                tries.append(second)
                refused.note(view(second), "denied")
            await asyncio.sleep(1)
        assert tries == [0, 10, 30, 70, 150]
        assert {10, 30, 70, 150} <= {round(time - begun) for time in over}

    run(story())
