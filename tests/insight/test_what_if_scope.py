"""What a change does not concern makes no difference, and is not played."""

import json
from dataclasses import replace
from typing import Any

import pytest

from admitter.cache.views import parse_job
from admitter.insight.snapshot_file import facts
from admitter.insight.what_if import compare as what_if
from admitter.insight.what_if.compare import compare
from admitter.insight.what_if.scope import Part, concerned
from admitter.names import CLUSTER_QUEUE_LABEL, FLAVORS_ANNOTATION, QUEUE_LABEL, WORKLOAD_LABEL
from admitter.policy.snapshot import Facts
from admitter.simulate.manifests import Change
from tests.cluster.objects import cluster_queue, job, local_queue, resource_flavor
from tests.insight.states import NOW, Json, State


def change(manifest: Json, *, gone: bool = False) -> Change:
    return Change(NOW, 0, manifest, gone)


def queue(name: str, cpus: str, cohort: str = "") -> Json:
    more: dict[str, Any] = {"cohort": cohort} if cohort else {}
    return cluster_queue(name, {"cpu": {"default": cpus}}, **more)


CHANGES: list[Any] = [
    pytest.param([change(queue("q-0", "8", "left"))], {"a", "b"}, id="quota"),
    pytest.param([change(queue("q-0", "8", "right"))], {"a", "b", "c"}, id="another-cohort"),
    pytest.param(
        [change({"kind": "ClusterQueue", "metadata": {"name": "q-2"}}, gone=True)], {"c"}, id="gone"
    ),
    pytest.param([change(local_queue("d", "q-2", "main"))], {"c", "d"}, id="a-local-queue-leads-elsewhere"),
    pytest.param([change(job("d", "more", requests={"cpu": "1"}, queue="main"))], {"d"}, id="a-job"),
    pytest.param([change(resource_flavor("default", {}))], {"a", "b", "c", "d"}, id="a-flavor-is-everywhere"),
    pytest.param([change(resource_flavor("spare", {}))], {"c", "d"}, id="a-flavor-of-a-queue-and-a-cohort"),
    pytest.param([change(resource_flavor("nobodys", {}))], set[str](), id="a-flavor-that-nobody-names"),
    pytest.param(
        [
            change(
                {
                    "apiVersion": "v1",
                    "kind": "Cohort",
                    "metadata": {"name": "left"},
                    "spec": {"parent": "right"},
                }
            )
        ],
        {"a", "b", "c"},
        id="trees-that-join",
    ),
]


@pytest.fixture
def known() -> Facts:
    return facts(_three_trees().snapshot())


def _three_trees() -> State:
    """Two queues share one, two have one each; in each of the queues some run and some wait."""
    state = State()
    spare = {"name": "cpu", "flavors": [{"name": "spare", "quota": {"min": "1"}}]}
    state.put("cohorts", "right", spec={"resources": [spare]})
    for number, (namespace, cohort) in enumerate(zip("abcd", ("left", "left", "right", ""), strict=True)):
        flavors = {"default": {"min": "4"}} | ({"spare": {"min": "1"}} if namespace == "d" else {})
        state.queue(f"q-{number}", {"cpu": flavors}, cohort)
        state.namespace(namespace, f"q-{number}")
        state.holds(
            *(namespace, "runs", {"cpu": ("3", "default")}),
            cluster_queue=f"q-{number}",
            since=-5000 if namespace in "cd" else -100,  # which tells how long the others may take
        )
        state.waits(namespace, "waits", {"cpu": "2"})
        state.holds(
            *(namespace, "took", {"cpu": ("3", "default")}),
            cluster_queue=f"q-{number}",
            since=-900,
            finished=-500,
        )
    return state


EVERY_QUEUE = [
    change(queue(f"q-{number}", "8", cohort)) for number, cohort in enumerate(("left", "left", "right", ""))
]


def namespaces(parts: list[Part]) -> list[set[str]]:
    return [{view.namespace for view in part.known.views["workloads"].values()} for part in parts]


@pytest.mark.parametrize(("changes", "expected"), CHANGES)
def test_only_trees_that_are_touched_are_played(
    known: Facts, changes: list[Change], expected: set[str]
) -> None:
    assert namespaces(concerned(known, changes)) == [expected]


@pytest.mark.parametrize("processes", [1, 4, 8])
@pytest.mark.parametrize(
    ("changes", "expected"), [*CHANGES, pytest.param(EVERY_QUEUE, set("abcd"), id="every-queue")]
)
def test_the_answer_is_the_same_as_of_everything(
    known: Facts, changes: list[Change], expected: set[str], processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = compare(known, changes, processes=processes)
    monkeypatch.setattr(what_if, "concerned", lambda facts, those, _most: [Part(facts, tuple(those), None)])
    assert compare(known, changes) == short, expected


@pytest.mark.parametrize(
    ("most", "expected"),
    [(1, [{"a", "b", "c", "d"}]), (2, [{"a", "b"}, {"c", "d"}]), (8, [{"a", "b"}, {"c"}, {"d"}])],
)
def test_trees_are_shared_out_with_the_changes_that_touch_them(
    known: Facts, most: int, expected: list[set[str]]
) -> None:
    parts = concerned(known, [*EVERY_QUEUE, change(resource_flavor("spare", {}))], most)
    assert namespaces(parts) == expected
    for part, those in zip(parts, expected, strict=True):
        queues = {f"q-{'abcd'.index(namespace)}" for namespace in those}
        flavors = {"spare"} if those & {"c", "d"} else set()
        assert {each.object["metadata"]["name"] for each in part.changes} == queues | flavors


def test_a_workload_that_holds_in_one_tree_and_asks_in_another_keeps_both_together(known: Facts) -> None:
    local = known.views["localqueues"]["d", "main"]
    elsewhere = replace(local, spec={**local.spec, "clusterQueue": "q-0"})
    moved = replace(
        known,
        views={**known.views, "localqueues": {**known.views["localqueues"], ("d", "main"): elsewhere}},
    )
    assert namespaces(concerned(moved, EVERY_QUEUE, 8)) == [{"a", "b", "d"}, {"c"}]
    assert compare(moved, EVERY_QUEUE) == compare(moved, EVERY_QUEUE, processes=8)


SEVERAL: list[Any] = [
    pytest.param(
        [
            change(queue("q-0", "8", "left")),
            change(local_queue("d", "q-3", "new")),
            change(job("d", "more", requests={"cpu": "3"}, queue="new")),
        ],
        id="a-job-for-a-new-local-queue",
    ),
    pytest.param(
        [
            change(queue("q-0", "8", "left")),
            change(queue("q-9", "8")),
            change(local_queue("d", "q-9", "new")),
            change(job("d", "more", requests={"cpu": "3"}, queue="new")),
        ],
        id="a-job-for-a-new-queue",
    ),
    pytest.param(
        [change(queue("q-0", "3", "left")), change(local_queue("d", "q-3", "new"))],
        id="one-with-less-and-a-new-local-queue",
    ),
    pytest.param(
        [change(queue("q-0", "3", "left")), change(local_queue("b", "q-3", "main"))],
        id="one-with-less-and-a-local-queue-that-leads-elsewhere",
    ),
    pytest.param(
        [
            change(queue("q-0", "3", "left")),
            change(job("d", "more", requests={"cpu": "1"}, queue="missing")),
        ],
        id="one-with-less-and-a-job-for-a-queue-that-is-missing",
    ),
]


@pytest.mark.parametrize("without", [None, ("b", "main")], ids=["all-there", "a-local-queue-is-gone"])
@pytest.mark.parametrize("changes", SEVERAL)
def test_changes_of_several_trees_are_answered_as_in_one(
    known: Facts, changes: list[Change], without: tuple[str, str] | None
) -> None:
    locals_ = {key: view for key, view in known.views["localqueues"].items() if key != without}
    there = replace(known, views={**known.views, "localqueues": locals_})
    assert compare(there, changes, processes=8) == compare(there, changes)


def test_a_job_for_a_local_queue_that_leads_elsewhere_now_comes_once() -> None:
    state = _three_trees()
    state.put("localqueues", "unused", "d", spec={"clusterQueue": "q-3"})
    known = facts(state.snapshot())
    changes = [
        change(queue("q-0", "8", "left")),
        change(local_queue("d", "q-0", "unused")),
        change(job("d", "more", requests={"cpu": "3"}, queue="unused")),
    ]
    apart = compare(known, changes, processes=8)
    assert apart == compare(known, changes)
    assert [each.key for each in apart.outcomes if each.key[1] == "more"] == [("d", "more")]


def test_a_started_job_with_a_workload_that_holds_nothing_may_use_something_anywhere() -> None:
    state = _three_trees()
    flavors = json.dumps({"cpu": "default"})
    template: Json = {
        "metadata": {"labels": {CLUSTER_QUEUE_LABEL: "q-0"}, "annotations": {FLAVORS_ANNOTATION: flavors}},
        "spec": {"containers": [{"resources": {"requests": {"cpu": "2"}}}]},
    }
    spec = {"suspend": False, "parallelism": 1, "template": template}
    labels = {"labels": {QUEUE_LABEL: "main"}}
    made = state.put("jobs", "started", "d", metadata=labels, spec=spec, status={"active": 1})
    template["metadata"]["labels"][WORKLOAD_LABEL] = parse_job(made).workload
    known = facts(state.snapshot())
    (part,) = concerned(known, EVERY_QUEUE[:1], 8)
    assert ("d", "started") in part.known.views["jobs"]
    changes = [change(queue("q-0", "3", "left")), change(queue("q-3", "4"))]
    assert compare(known, changes, processes=8) == compare(known, changes)


def _over_nodes() -> Facts:
    """Two trees that share what there is on a node; in each a Workload runs, and one of its pods is there."""
    state = State()
    state.put(
        *("nodes", "node"),
        metadata={"labels": {"kind": "default"}},
        spec={},
        status={"allocatable": {"cpu": "16"}, "conditions": [{"type": "Ready", "status": "True"}]},
    )
    default = {"name": "cpu", "flavors": [{"name": "default", "quota": {}}]}
    for namespace in "ab":
        name = f"q-{namespace}"
        state.put("cohorts", f"of-{namespace}", spec={"capacityFrom": "Nodes", "resources": [default]})
        state.queue(name, {"cpu": {"default": {"min": "4"}}}, f"of-{namespace}")
        state.namespace(namespace, name)
        state.holds(namespace, "runs", {"cpu": ("4", "default")}, cluster_queue=name, since=-100)
        annotations = {FLAVORS_ANNOTATION: json.dumps({"cpu": "default"})}
        state.put(
            *("pods", "runs-0", namespace),
            metadata={
                "labels": {WORKLOAD_LABEL: "runs", CLUSTER_QUEUE_LABEL: name},
                "annotations": annotations,
            },
            spec={"containers": [{"resources": {"requests": {"cpu": "2"}}}]},
            status={"phase": "Running"},
        )
    return facts(state.snapshot())


def test_quota_that_is_over_is_told_once_where_a_change_touches_several_trees() -> None:
    known = _over_nodes()
    changes = [change(resource_flavor("default", {"nodeLabels": {"kind": "none"}}))]
    apart = compare(known, changes, processes=8)
    assert apart.excesses == compare(known, changes).excesses
    assert {each.node for each in apart.excesses} == {("cohort", "of-a"), ("cohort", "of-b")}


def test_a_job_that_names_no_queue_may_come_into_any(known: Facts) -> None:
    unqueued = change({"kind": "Job", "metadata": {"namespace": "d", "name": "more"}, "spec": {}})
    (part,) = concerned(known, [unqueued], 8)
    assert part.known is known
