"""The page for a long time: what is gone leaves nothing behind. An hour of it: `make bench-hour`."""

from collections import Counter
from dataclasses import replace

import pytest
from playwright.async_api import Page as Tab

from admitter.insight.forecast.deadline import NO_LIMIT
from admitter.insight.snapshot_file import facts
from admitter.policy.snapshot import Snapshot
from admitter.web.scene import WebScene
from admitter.web.stage import SAMPLE_SECONDS, SAMPLES
from benchmarks.lookers import Served, at_the_server, in_a_browser
from tests.insight.states import NOW, State
from tests.kept import grown, own_objects, small
from tests.web.pages import CHROMIUM, HOW, Still


async def test_nothing_stays_at_the_server_of_workloads_queues_and_people(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: dict[int, Counter[str]] = {}

    async def done(number: int, page: Served) -> None:
        if number in {40, 80}:  # answers about people are remembered for half a minute
            found[number] = own_objects()
            assert page.streams() <= 3
            assert page.sessions() == number // 2, "those that have not logged out"

    await at_the_server(small(monkeypatch), 80, done)
    assert grown(found[40], found[80]) == {}


@pytest.mark.skipif(CHROMIUM is None, reason=HOW)
async def test_the_page_has_no_more_elements_than_there_is_to_show(monkeypatch: pytest.MonkeyPatch) -> None:
    assert CHROMIUM is not None
    found: dict[int, dict[str, int]] = {}

    async def done(number: int, tabs: dict[str, Tab]) -> None:
        if number in {10, 30}:
            count = "document.querySelectorAll('*').length"
            found[number] = {name: await tab.evaluate(count) for name, tab in tabs.items()}

    await in_a_browser(small(monkeypatch), 30, CHROMIUM, done)
    for name, number in found[30].items():
        assert number < found[10][name] + 40, name  # as a row more in every round would be


def lent(*queues: str, used: bool) -> State:
    """Queues with nothing of their own, which may or may not use what their Cohort has."""
    state = State()
    flavors = [{"name": "default", "quota": {"min": "8"}}]
    state.put("cohorts", "shared", spec={"resources": [{"name": "cpu", "flavors": flavors}]})
    for queue in queues:
        state.put("clusterqueues", queue, spec={"namespaceSelector": {}, "cohort": "shared"})
        state.namespace(f"team-{queue}", queue)
        if used:
            state.holds(f"team-{queue}", "runs", {"cpu": ("1", "default")}, cluster_queue=queue)
    return state


def test_use_over_time_is_an_hour_of_each_queue_that_there_is() -> None:
    stage = Still(NO_LIMIT)

    def sample(number: int, state: State) -> None:
        known = replace(facts(state.snapshot()), taken=NOW + number * SAMPLE_SECONDS)
        stage.put(WebScene(known, Snapshot(known), number, stage.limits, lambda: stage.controllers))

    sample(0, lent("a", "gone", used=True))
    sample(1, lent("a", used=False))
    assert stage.course("gone") == {"times": [], "used": {}}
    assert stage.course("a") == {"times": [NOW, NOW + SAMPLE_SECONDS], "used": {"cpu in default": [1, 0]}}
    for number in range(2, SAMPLES + 5):
        sample(number, lent("a", used=number % 2 == 0))
    times = stage.course("a")["times"]
    assert (len(times), times[-1]) == (SAMPLES, NOW + (SAMPLES + 4) * SAMPLE_SECONDS)
