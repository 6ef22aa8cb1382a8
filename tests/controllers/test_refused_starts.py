"""Which refusals of a start are for good, and for how long they count."""

import asyncio
from itertools import pairwise

import pytest

from admitter.cache.views import JobView, parse_job
from admitter.client.errors import api_error
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


class Tried:
    """Refused starts of one Job; `over` is when something of a refusal was over, in seconds."""

    def __init__(self) -> None:
        self.refused = RefusedStarts()
        self.over: list[float] = []
        loop = asyncio.get_running_loop()
        begun = loop.time()
        self.refused.over.listen(lambda _: self.over.append(round(loop.time() - begun, 3)))

    def starts(self, version: int) -> bool:
        """Whether a Job is tried as it is then; it is refused, and gives its quota back at once."""
        if self.refused.why(view(version)) is not None:
            return False
        self.refused.note(view(version), "denied")
        self.refused.released(view(version), view(version))
        return True


def test_a_refusal_counts_until_a_while_has_passed() -> None:
    async def story() -> None:
        tried = Tried()
        assert tried.starts(1)
        await asyncio.sleep(299)
        assert tried.refused.why(view(1)) == "denied"
        await asyncio.sleep(2)
        assert tried.refused.why(view(1)) is None
        assert tried.over == [10, 300]

    run(story())


def test_a_job_that_is_corrected_during_the_pause_is_tried_at_its_end() -> None:
    async def story() -> None:
        tried = Tried()
        assert tried.starts(1)
        await asyncio.sleep(1)
        assert not tried.starts(2)
        await asyncio.sleep(10)
        assert tried.over == [10], "the Workload is looked at then"
        assert tried.starts(2)

    run(story())


def test_a_refusal_outlasts_what_is_written_to_the_job_when_it_gives_its_quota_back() -> None:
    async def story() -> None:
        refused = RefusedStarts()
        refused.note(view(1), "denied")
        refused.released(view(1), view(2))
        await asyncio.sleep(11)
        assert (refused.why(view(2)), refused.why(view(3))) == ("denied", None)
        refused.released(view(2), view(3))
        assert refused.why(view(3)) is None, "it has changed since it was refused"

    run(story())


def test_the_pause_begins_when_the_quota_is_free() -> None:
    async def story() -> None:
        refused = RefusedStarts()
        refused.note(view(1), "its pods were others")
        await asyncio.sleep(400)  # its pods take that long to end
        refused.released(view(8), view(9))
        await asyncio.sleep(9)
        assert refused.why(view(9)) == "its pods were others"
        await asyncio.sleep(2)
        assert refused.why(view(9)) is None

    run(story())


def test_changes_of_a_job_count_after_a_pause_that_doubles_and_stays_at_five_minutes() -> None:
    async def story() -> None:
        tried, moments = Tried(), []
        for second in range(2000):  # something annotates the Job each second
            if tried.starts(second):
                moments.append(second)
            await asyncio.sleep(1)
        pauses = [later - earlier for earlier, later in pairwise(moments)]
        assert pauses == [10, 20, 40, 80, 160, 300, 300, 300, 300, 300]

    run(story())


def test_after_some_time_without_a_refusal_the_pause_is_short_again() -> None:
    async def story() -> None:
        tried = Tried()
        assert tried.starts(1)
        await asyncio.sleep(10.5)
        assert tried.starts(2)
        await asyncio.sleep(601)
        assert tried.starts(3)
        await asyncio.sleep(10.5)
        assert tried.starts(4)

    run(story())
