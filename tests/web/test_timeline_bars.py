"""The bars of a timeline, when the cluster has decided since the forecast."""

from dataclasses import replace

from admitter.insight.forecast.schedule import Forecaster
from admitter.insight.snapshot_file import facts
from admitter.policy.snapshot import Snapshot
from admitter.web.admissions import Ending, Span
from admitter.web.timeline_bars import FORECAST, Bar, as_high_as_large, bars, by_namespace, measure
from tests.insight.states import NOW, State
from tests.insight.test_schedule import line
from tests.web.pages import department


def forecast(state: State) -> Forecaster:
    known = facts(state.snapshot())
    made = Forecaster(known, Snapshot(known))
    for _ in made.play():
        pass
    return made


def span(made: Forecaster, name: str, admitted: float, **more: object) -> Span:
    """An admission of a Workload of a forecast, from a second on."""
    uid = next(stay.view.uid for stay in made.stays if stay.view.name == name)
    usage = (("default", "cpu", 8.0),)
    found = Span(uid, "team", name, name, "a", ("default",), usage, 1, 0, NOW - 500, NOW + admitted)
    return replace(found, **more)  # type: ignore[arg-type]


def seen(found: list[Bar]) -> list[tuple[str, float, float | None, str]]:
    return sorted(
        (bar.name, bar.begins - NOW, bar.ends - NOW if bar.ends is not None else None, bar.how)
        for bar in found
    )


def at(made: Forecaster, second: float, spans: list[Span], waiting: set[str]) -> list[Bar]:
    """What is drawn at a second, with some admissions, while some Workloads wait."""
    uids = {stay.view.uid for stay in made.stays if stay.view.name in waiting}
    return bars(spans, [], made, now=NOW + second, waiting=uids, sees=lambda _: True)


def test_at_once_all_is_as_foreseen() -> None:
    made = forecast(line())
    found = at(made, 0, [span(made, "runs", -60)], {"waits-0", "waits-1"})
    assert seen(found) == [
        ("runs", -60, 60, Ending.RUNNING),
        ("waits-0", 60, 180, FORECAST),
        ("waits-1", 180, 300, FORECAST),
    ]
    runs, first, _ = sorted(found, key=lambda bar: bar.begins)
    assert runs.start is None
    assert runs.end == first.start


def test_what_has_ended_is_not_expected_any_more() -> None:
    made = forecast(line())
    over = span(made, "runs", -60, ended=NOW + 20, how=Ending.SUCCEEDED)
    found = at(made, 30, [over, span(made, "waits-0", 20)], {"waits-1"})
    assert seen(found) == [
        ("runs", -60, 20, Ending.SUCCEEDED),
        ("waits-0", 20, 140, Ending.RUNNING),  # as long as foreseen
        ("waits-1", 180, 300, FORECAST),
    ]


def test_what_is_late_is_expected_from_now_on() -> None:
    made = forecast(line())
    found = at(made, 100, [span(made, "runs", -60)], {"waits-0", "waits-1"})
    assert seen(found) == [
        ("runs", -60, 100, Ending.RUNNING),
        ("waits-0", 100, 220, FORECAST),
        ("waits-1", 180, 300, FORECAST),
    ]
    for bar in found:
        for moment in (bar.start, bar.end):
            assert moment is None or moment.earliest >= NOW + 100


def test_of_what_came_or_started_otherwise_nothing_is_known() -> None:
    made = forecast(line())
    anew = span(made, "runs", 10)
    unknown = replace(anew, uid="unknown", name="unknown")
    found = at(made, 20, [anew, unknown], set())
    assert seen(found) == [("runs", 10, None, Ending.RUNNING), ("unknown", 10, None, Ending.RUNNING)]


def test_what_is_gone_or_has_run_meanwhile_does_not_start() -> None:
    made = forecast(line())
    over = span(made, "waits-0", 5, ended=NOW + 10, how=Ending.FAILED)
    assert seen(at(made, 20, [over], set())) == [("waits-0", 5, 10, Ending.FAILED)]


def test_what_is_being_evicted_ends_now_and_starts_again() -> None:
    state = department()
    state.objects["clusterqueues"][1]["spec"]["preemption"] = {"reclaimWithinCohort": "Any"}
    state.waits("team-b", "owner", {"cpu": "8"}, created=-10)
    made = forecast(state)
    found = {(bar.name, bar.how): bar for bar in at(made, 0, [], {"owner"})}
    assert ("long", FORECAST) not in found, "it runs"
    running = replace(span(made, "long", -200), namespace="team-a")
    found = {(bar.name, bar.how): bar for bar in at(made, 0, [running], {"job-owner"})}
    stopped = found["long", Ending.RUNNING]
    assert (stopped.ends, stopped.expected, stopped.for_namespace, stopped.for_name) == (
        NOW,
        "Preempted",
        "team-b",
        "owner",
    )
    again = found["long", FORECAST]
    assert again.begins > NOW
    leaving = replace(running, evicted=NOW - 5)
    found = {(bar.name, bar.how): bar for bar in at(made, 1, [leaving], set())}
    assert found["long", Ending.RUNNING].ends == NOW + 1


def test_of_hidden_namespaces_nothing_is_expected_and_no_preemptor_named() -> None:
    state = department()
    state.objects["clusterqueues"][1]["spec"]["preemption"] = {"reclaimWithinCohort": "Any"}
    state.waits("team-b", "owner", {"cpu": "8"}, created=-10)
    made = forecast(state)
    waiting = {stay.view.uid for stay in made.stays}
    running = replace(span(made, "long", -200), namespace="team-a")
    found = bars([running], [], made, now=NOW, waiting=waiting, sees=lambda name: name == "team-a")
    assert {bar.namespace for bar in found} == {"team-a"}
    stopped = next(bar for bar in found if bar.expected)
    assert (stopped.for_namespace, stopped.for_name) == ("", "")


def test_without_a_forecast_there_is_what_was() -> None:
    made = forecast(line())
    found = bars([span(made, "runs", -60)], [], None, now=NOW, waiting=set(), sees=lambda _: True)
    assert seen(found) == [("runs", -60, None, Ending.RUNNING)]


def test_the_measure_is_the_device_that_most_use() -> None:
    made = forecast(line())
    one = bars([span(made, "runs", -60)], [], None, now=NOW, waiting=set(), sees=lambda _: True)[0]
    gpus = replace(one, usage=(("a100", "nvidia.com/gpu", 4.0), ("a100", "cpu", 64.0)))
    small = replace(one, usage=(("a100", "nvidia.com/gpu", 1.0),))
    assert measure([one]) == "cpu"
    assert measure([one, gpus, small]) == "nvidia.com/gpu"
    assert [bar.high for bar in as_high_as_large([one, gpus, small], "nvidia.com/gpu")] == [1, 8, 2]
    assert [bar.high for bar in as_high_as_large([one], "nvidia.com/gpu")] == [1]
    assert [bar.group for bar in by_namespace([one])] == ["team"]
