"""Which refusals of a start are for good, and for how long they count."""

import asyncio

import pytest

from admitter.cache.views import JobView, parse_job
from admitter.client.errors import api_error
from admitter.client.store import Key
from admitter.controllers.workload.eviction import RefusedStarts, is_for_good


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


async def test_a_refusal_counts_until_the_job_changes_or_a_while_has_passed() -> None:
    tried_again: asyncio.Future[Key] = asyncio.get_running_loop().create_future()
    refused = RefusedStarts(seconds=0)
    refused.over.listen(tried_again.set_result)
    job, changed = view(1), view(2)
    assert refused.why(job) is None
    words = refused.note(job, api_error(403, {"message": "denied"}))
    assert "denied" in words
    assert (refused.why(job), refused.why(changed)) == (words, None)
    assert await tried_again == ("team", job.workload)
    assert refused.why(job) is None


async def test_a_refusal_outlasts_what_is_written_to_the_job_when_it_gives_its_quota_back() -> None:
    refused = RefusedStarts(seconds=600)
    words = refused.note(view(1), api_error(403, {"message": "denied"}))
    refused.barred(view(1), view(2))
    assert (refused.why(view(2)), refused.why(view(3))) == (words, None)
    refused.barred(view(3), view(4))
    assert refused.why(view(4)) is None, "it has changed since it was refused"
