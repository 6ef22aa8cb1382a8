"""The page of a workload has the numbers that `admitter explain` prints, whatever the state."""

import re
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from admitter.insight.explain.explainer import Answer, Explainer
from admitter.insight.explain.life import life
from admitter.insight.explain.pods import pods_of
from admitter.insight.explain.text import SHOWN, opening, would_let_in
from admitter.insight.snapshot_file import facts
from admitter.policy.snapshot import Snapshot
from admitter.web.views.workload_json import Shown, answer_json, outlook_json
from tests.insight.states import Json, State
from tests.scale import examples

FLAVORS, QUEUES = ("default", "fast"), ("q-0", "q-1", "q-2")
TRIED = re.compile(
    r"  (?P<flavor>\S+)(?: for (?P<of>.+))?: (?P<asked>\S+) (?P<resource>\S+) asked for, (?P<free>\S+) free, "
    r"(?P<borrowable>\S+) to borrow: (?:(?P<short>\S+) short|enough)"
)
MISMATCH = re.compile(
    r"  (?P<flavor>\S+?)(?: for pod set \S+)?: (?P<why>(?:the taint|\S+ does not match) .+)"
)
SHORT = re.compile(
    r"  (?:pod set \S+ )?waits for (\S+) × (\S+) in flavor (\S+): (\S+) free in (ClusterQueue \S+)"
    r"(?:, (\S+) more can be borrowed(?: from \S+)?)?, (\S+) short"
)
KEPT = re.compile(r"; (\S+ \S+)'s lendingLimit keeps (\S+) home")
CLAIMED = re.compile(r"; (\S+) \S+ are kept for (\S+), as (\S+ \S+) owns them")

amounts = st.integers(1, 6).map(str)
memory = st.sampled_from(["512Mi", "1Gi", "1500Mi"])


@st.composite
def quotas(draw: st.DrawFn) -> dict[str, Any]:
    """Quota of a queue for two resources in two flavors, perhaps with limits."""
    made: dict[str, Any] = {"cpu": {}, "memory": {}}
    for flavor in FLAVORS:
        least = draw(st.integers(1, 8))
        limits: Json = {"min": str(least)}
        if draw(st.booleans()):
            limits["lendingLimit"] = str(draw(st.integers(0, least)))
        if draw(st.booleans()):
            limits["max"] = str(least + draw(st.integers(0, 3)))
        made["cpu"][flavor] = limits
        made["memory"][flavor] = {"min": draw(st.sampled_from(["4Gi", "16Gi"]))}
    return made


@st.composite
def states(draw: st.DrawFn) -> State:
    """Three queues, two of them in a Cohort at least; flavors with a taint or labels; Jobs."""
    made = State("default")
    taint = draw(st.sampled_from(([], [{"key": "fast", "effect": "NoSchedule"}])))
    made.put("resourceflavors", "fast", spec={"nodeLabels": {"kind": "fast"}, "nodeTaints": taint})
    for number, name in enumerate(QUEUES):
        policy = {
            "withinClusterQueue": draw(st.sampled_from(["Never", "LowerPriority"])),
            "reclaimWithinCohort": draw(st.sampled_from(["Never", "Any"])),
        }
        strategy = draw(st.sampled_from(["BestEffortFIFO", "BestEffortFIFO", "StrictFIFO"]))
        cohort = "all" if number < 2 else draw(st.sampled_from(["", "all"]))
        made.queue(name, draw(quotas()), cohort, preemption=policy, queueingStrategy=strategy)
        made.namespace(f"ns-{number}", name)
        for each in range(draw(st.integers(1, 3))):
            usage = {"cpu": (draw(amounts), draw(st.sampled_from(FLAVORS))), "memory": ("1Gi", "default")}
            made.holds(f"ns-{number}", f"runs-{each}", usage, cluster_queue=name, since=-30 - each)
        for each in range(draw(st.integers(1, 3))):
            asked = {"cpu": draw(amounts), "memory": draw(memory)}
            template = draw(st.sampled_from(({}, {}, {}, {"nodeSelector": {"kind": "fast"}})))
            made.waits(
                *(f"ns-{number}", f"waits-{each}", asked),
                pods=draw(st.integers(1, 3)),
                created=each,
                spec={"template": {"spec": {"containers": [{"resources": {"requests": asked}}]} | template}},
            )
    return made


def page_of(answer: Answer, snapshot: Snapshot) -> Json:
    """What the page of an administrator gets."""
    workload = answer.workload
    assert workload is not None
    happened, pods = life(snapshot.world, workload, snapshot.now), pods_of(snapshot.world, workload)
    return answer_json(Shown(answer, happened, pods, True, str, str), snapshot, None, None)


def answers(state: State) -> Iterator[tuple[Answer, Snapshot]]:
    snapshot = Snapshot(facts(state.snapshot()))
    explainer = Explainer(snapshot)
    for view in list(snapshot.world.workloads):
        yield explainer.explain(view.namespace, view.name), snapshot


@settings(max_examples=examples(36))
@given(state=states())
def test_the_structure_has_the_numbers_of_the_text(state: State) -> None:
    for answer, snapshot in answers(state):
        lines = list(opening(answer, snapshot))
        page = page_of(answer, snapshot)
        title = f"{page['namespace']}/{page['name']}: {page['state']} in {page['queue']['title']}"
        assert lines[0] == title + (f", number {page['position']} in line" if page["position"] else "")
        assert [f"  {line}" for line in page["sentences"]] == lines[1 : 1 + len(page["sentences"])]
        _same_flavors(lines, page)
        _same_binding(lines[1], page)
        _same_ahead(lines, page)
        _same_outlook(answer, snapshot)


def test_what_keeps_quota_from_it_is_told_one_by_one() -> None:
    """`max` of its queue, a `lendingLimit`, and a claim of a Job that waits for quota of its own queue."""
    state = State()
    state.put("cohorts", "all", spec={})
    state.queue("a", {"cpu": {"default": {"min": "4", "max": "9"}}}, "all")
    state.queue("b", {"cpu": {"default": {"min": "8"}}}, "all")
    state.queue("c", {"cpu": {"default": {"min": "8", "lendingLimit": "5"}}}, "all")
    state.queue("d", {"cpu": {"default": {"min": "0"}}}, "all")
    for name, cpu in {"a": "8", "b": "2", "c": "1", "d": "3"}.items():
        state.namespace(f"ns-{name}", name)
        state.holds(f"ns-{name}", "runs", {"cpu": (cpu, "default")}, cluster_queue=name)
    state.waits("ns-b", "owner", {"cpu": "6"})
    state.waits("ns-a", "train", {"cpu": "5"})
    for answer, snapshot in answers(state):
        if answer.key == ("ns-a", "train"):
            page = page_of(answer, snapshot)
            _same_binding(list(opening(answer, snapshot))[1], page)
            (binding,) = page["flavors"]
            (claim,), (kept,) = binding["claims"], binding["kept"]
            assert (claim["namespace"], claim["name"], claim["amount"]["value"]) == ("ns-b", "owner", 1)
            assert (kept["title"], kept["amount"]["words"]) == ("ClusterQueue c", "2")
            assert binding["cutByMax"]["words"] == "3"
            return
    raise AssertionError("train waits")


def _same_flavors(lines: list[str], page: Json) -> None:
    told = [found.groupdict() for line in lines if (found := TRIED.fullmatch(line))]
    fits = [each for each in page["flavors"] if each["mismatch"] is None]
    names = ("asked", "free", "borrowable")
    assert [(each["flavor"], each["resource"], *(each[name] for name in names)) for each in told] == [
        (each["flavor"], each["resource"], *(each[name]["words"] for name in names)) for each in fits
    ]
    assert [each["short"] or "0" for each in told] == [each["short"]["words"] for each in fits]
    why = [found["why"] for line in lines if (found := MISMATCH.fullmatch(line))]
    assert why == [each["mismatch"] for each in page["flavors"] if each["mismatch"] is not None]
    for each in fits:
        missing = each["asked"]["value"] - each["free"]["value"] - each["borrowable"]["value"]
        assert each["short"]["value"] == max(0, missing)
        assert each["possible"] == (each["asked"]["value"] <= each["most"]["value"])


def _same_binding(sentence: str, page: Json) -> None:
    found = SHORT.match(sentence)
    if found is None:
        return
    (binding,) = (each for each in page["flavors"] if each.get("binding"))
    assert found.groups() == (
        binding["asked"]["words"],
        binding["resource"],
        binding["flavor"],
        binding["free"]["words"],
        page["queue"]["title"],
        binding["borrowable"]["words"] if found[6] else None,
        binding["short"]["words"],
    )
    assert KEPT.findall(sentence) == [
        (each["title"], each["amount"]["words"]) for each in binding["kept"][:SHOWN]
    ]
    assert CLAIMED.findall(sentence) == [
        (each["amount"]["words"], f"{each['namespace']}/{each['name']}", each["owner"])
        for each in binding["claims"][:SHOWN]
    ]
    cut = re.search(r"; max keeps (\S+) from it", sentence)
    assert (cut[1] if cut else "0") == binding["cutByMax"]["words"]


def _same_ahead(lines: list[str], page: Json) -> None:
    ahead = [f"  {each['namespace']}/{each['name']}, priority {each['priority']}" for each in page["ahead"]]
    assert [line for line in lines if ", priority " in line] == ahead[:SHOWN]
    assert (f"Ahead of it ({len(ahead)}):" in lines) == bool(ahead)


def _same_outlook(answer: Answer, snapshot: Snapshot) -> None:
    told = outlook_json(answer, None, snapshot.now, None)
    lines = list(would_let_in(answer, snapshot.now))
    names = [line.partition(",")[0].strip() for line in lines[1 : 1 + SHOWN] if ", priority " in line]
    assert names == [f"{each['namespace']}/{each['name']}" for each in told["blocking"][:SHOWN]]
    assert all(
        (each["notEvicted"] or "") in "\n".join(lines) or told["preempting"]
        for each in told["blocking"][:SHOWN]
    )
    assert ("It starts when these have ended:" in lines) == (told["preempting"] and bool(told["blocking"]))
