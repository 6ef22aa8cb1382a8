"""Whatever texts, quantities, numbers and times one object has, answers about all others are the same."""

import copy
from functools import cache
from typing import Any, Final

import orjson
from hypothesis import example, given, settings
from hypothesis import strategies as st

from admitter.insight.explain.explainer import Explainer
from admitter.insight.explain.text import opening, short, start, would_let_in
from admitter.insight.forecast.estimates import Estimator
from admitter.insight.lint import lint
from admitter.insight.listing import rows
from admitter.insight.report import answer_json, estimate_json, row_json
from admitter.insight.snapshot_file import SnapshotFile, facts
from admitter.insight.what_if.compare import compare
from admitter.insight.what_if.report import difference_json
from admitter.policy.snapshot import Facts, Snapshot
from admitter.simulate.manifests import Change
from admitter.top.scene import scene
from admitter.web.scene import line_json
from tests.insight.states import NOW, Json, State
from tests.scale import examples

WORD: Final = "admitter.dev/expected-runtime"
GROUP: Final = "admitter.dev/"
ANNOTATIONS: Final = (
    *(WORD, f"{GROUP}injected", f"{GROUP}eviction-time", f"{GROUP}placed-in", f"{GROUP}placement"),
    *("yunikorn.apache.org/user.info", f"{GROUP}counted", f"{GROUP}flavors", f"{GROUP}workload-uid"),
)
LABELS: Final = (f"{GROUP}capacity", f"{GROUP}workload", f"{GROUP}cluster-queue", f"{GROUP}job")
POD: Final = "spec/template/spec"
ASKED: Final = f"{POD}/containers/0/resources/requests/cpu"
WRITTEN: Final = {
    "jobs/waits": (
        *(f"metadata/annotations/{name}" for name in ANNOTATIONS),
        *(f"metadata/labels/{name}" for name in LABELS),
        *(f"spec/template/metadata/annotations/{name}" for name in ANNOTATIONS),
        *(f"spec/{name}" for name in ("activeDeadlineSeconds", "backoffLimit")),
        *(f"{POD}/activeDeadlineSeconds", ASKED, "metadata/creationTimestamp"),
    ),
    "workloads/runs": (
        *(f"metadata/annotations/{name}" for name in ANNOTATIONS),
        *(f"metadata/labels/{name}" for name in LABELS),
        *("spec/podSets/0/requests/cpu", "metadata/creationTimestamp"),
        *("status/conditions/0/lastTransitionTime", "status/conditions/1/lastTransitionTime"),
        *("status/preemption", "status/preemption/evictAt", "status/admission/podSets/0/usage/cpu"),
    ),
    "workloads/over": (
        *("spec/podSets/0/requests/cpu", "metadata/creationTimestamp"),
        *(f"status/conditions/{number}/lastTransitionTime" for number in range(3)),
    ),
    "pods/left": (
        *(f"metadata/annotations/{name}" for name in ANNOTATIONS),
        *(f"metadata/labels/{name}" for name in LABELS),
        *("spec/containers/0/resources/requests/cpu", "metadata/creationTimestamp"),
    ),
}
"""What a tenant writes, or what is written about objects of a tenant, by object and path."""

DEEP: Final = "[" * 100_000
TEXTS: Final = (
    *("9" * 5000, "9" * 60 + "d", "365000d", "1ms", "1e999", "1e-999", "nan", "inf", "-1", "-0", "٣", "0x10"),
    *("", " ", "\x00", "\ufeff", "\u202e\x1b[31m", "[]", "{}", '{"cpu": 1}', '{"user": "\\ud800"}', DEEP),
    *('{"gpu-memory": "' + "9" * 5000 + '"}', '{"user": "\\ud800", "groups": ["\\ud800"]}', "null", "1e18Ei"),
    *("0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00", "1969-12-31T23:59:59Z"),
    *("9999-12-31T23:59:59Z", "9999-12-31T23:59:59-14:00", "2026-13-01T00:00:00Z", "2026-01-01"),
)
NUMBERS: Final = (0, -1, 2**31 - 1, 2**63 - 1, 2**64 - 1, -(2**63), 1e308, -1e308, 0.5, True, None)
VALUES: Final = st.one_of(
    st.sampled_from(TEXTS),
    st.sampled_from(NUMBERS),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=80),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.from_regex(r"\A[0-9]{1,70}(\.[0-9]{1,20})?(ms|s|m|h|d|Ki|Ei|k|E|e[0-9]{1,4})?\Z"),
)
PLACES: Final = [(name, path) for name, paths in WRITTEN.items() for path in paths]


@cache
def cluster(*, shared: bool) -> SnapshotFile:
    """A namespace `honest` and a namespace `hostile`, with queues of their own or one for both."""
    state = State()
    for name in ("honest",) if shared else ("honest", "hostile"):
        state.queue(name, {"cpu": {"default": {"min": "8"}}})
    for name in ("honest", "hostile"):
        queue = "honest" if shared else name
        state.namespace(name, queue)
        cpus = {"honest": "5", "hostile": "3"}[name]
        state.holds(name, "runs", {"cpu": (cpus, "default")}, cluster_queue=queue, since=-60)
        for number in range(3):
            usage = {"cpu": (cpus, "default")}
            at = -9000.0 + number
            state.holds(name, f"over-{number}", usage, cluster_queue=queue, since=at, finished=at + 600)
        state.waits(name, "waits", {"cpu": cpus}, created=-40, annotations={WORD: "5m"})
        state.waits(name, "next", {"cpu": cpus}, created=-30)
    state.objects["workloads"][-1]["metadata"]["name"] = "over"
    template = {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}
    labels = {f"{GROUP}workload": "gone", f"{GROUP}cluster-queue": "honest" if shared else "hostile"}
    flavors = {f"{GROUP}flavors": '{"cpu": "default"}'}
    metadata = {"labels": labels, "annotations": flavors}
    state.put("pods", "left", "hostile", metadata=metadata, spec=template, status={"phase": "Running"})
    return state.snapshot()


def overwritten(snapshot: SnapshotFile, place: tuple[str, str], value: Any) -> SnapshotFile:
    """The same with another value at a path of an object of `hostile`, as it is read from a file."""
    (plural, name), keys = place[0].split("/"), place[1].split("/")
    if "annotations" in keys or "labels" in keys:  # names there have slashes
        at = keys.index("annotations" if "annotations" in keys else "labels")
        keys = [*keys[: at + 1], "/".join(keys[at + 1 :])]
    objects = dict(snapshot.objects)
    objects[plural] = copy.deepcopy(objects[plural])
    (found,) = (
        each
        for each in objects[plural]
        if each["metadata"]["name"] == name and each["metadata"].get("namespace") == "hostile"
    )
    inside: Any = found
    for key in keys[:-1]:
        inside = inside[int(key)] if isinstance(inside, list) else inside.setdefault(key, {})
    inside[keys[-1]] = value
    return SnapshotFile(snapshot.taken, snapshot.settings, orjson.loads(orjson.dumps(objects)))


def answers(known: Facts) -> Json:
    """All that is said of the namespace `honest`, by whatever says it."""
    picture = Snapshot(known)
    listed = list(rows(picture, None))
    mine = [row for row in listed if row.workload.namespace == "honest"]
    starts = Estimator(known, picture, runs=5).of(
        [row.workload for row in listed if row.position is not None]
    )
    explainer = Explainer(Snapshot(known))
    explained = {row.job: explainer.explain("honest", row.job) for row in mine}
    shown = scene(known, Snapshot(known))
    there = {"kind": "ClusterQueue", "metadata": {"name": "honest"}}
    difference = difference_json(compare(known, [Change(NOW, 0, there, gone=True)]), NOW)
    return {
        "rows": [row_json(row) for row in mine],
        "starts": [
            (estimate_json(found, NOW), short(found), start(found))
            for row in mine
            if (found := starts.get(row.workload.uid)) is not None
        ],
        "why": [
            (answer_json(each, None, picture), [*opening(each, picture), *would_let_in(each, NOW)])
            for each in explained.values()
        ],
        "queue": [line_json(line) for line in shown.lines if line.node[1] == "honest"],
        "lint": [str(each) for each in lint(picture)],
        "what-if": [
            each
            for part in ("workloads", "starts")
            for each in difference[part]
            if each["namespace"] == "honest"
        ],
    }


@cache
def untouched() -> Json:
    return answers(facts(cluster(shared=False)))


@settings(max_examples=examples(18))
@given(st.sampled_from(PLACES), VALUES)
@example(("jobs/waits", f"metadata/annotations/{WORD}"), "365000d")
@example(("jobs/waits", "spec/activeDeadlineSeconds"), 2**63 - 1)
@example(("jobs/waits", "metadata/creationTimestamp"), "0001-01-01T00:00:00Z")
@example(("workloads/over", "status/conditions/2/lastTransitionTime"), "9999-12-31T23:59:59-14:00")
def test_answers_about_other_trees_are_unchanged(place: tuple[str, str], value: Any) -> None:
    assert answers(facts(overwritten(cluster(shared=False), place, value))) == untouched()


@settings(max_examples=examples(18))
@given(st.sampled_from(PLACES), VALUES)
@example(("jobs/waits", f"metadata/annotations/{WORD}"), "365000d")
@example(("jobs/waits", "spec/activeDeadlineSeconds"), 2**63 - 1)
@example(("workloads/runs", "status/preemption/evictAt"), "soon")
def test_workloads_that_share_a_queue_with_it_are_answered(place: tuple[str, str], value: Any) -> None:
    found = answers(facts(overwritten(cluster(shared=True), place, value)))
    assert orjson.dumps(found)
    assert len(found["rows"]) == 3
