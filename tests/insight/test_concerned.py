"""What a change does not concern makes no difference, and is not played."""

from dataclasses import replace
from typing import Any

import pytest

from admitter.insight import what_if
from admitter.insight.concerned import Part, concerned
from admitter.insight.snapshot import facts
from admitter.insight.what_if import compare
from admitter.names import WORKLOAD_LABEL
from admitter.simulate.manifests import Change
from admitter.simulate.picture import Facts
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
    """Three trees: two queues share one, two have one each; in each of the queues some run and some wait."""
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
    return facts(state.snapshot())


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
    monkeypatch.setattr(what_if, "concerned", lambda facts, changes, _most: [Part(facts, tuple(changes))])
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


def test_a_job_that_was_started_and_has_no_workload_may_use_something_anywhere(known: Facts) -> None:
    started = known.views["jobs"]["c", "waits"]
    labels = {"labels": {WORKLOAD_LABEL: started.workload}}
    jobs = {**known.views["jobs"], started.key: replace(started, template_metadata=labels)}
    loose = replace(known, views={**known.views, "jobs": jobs})
    (part,) = concerned(loose, EVERY_QUEUE[:1], 8)
    assert started.key in part.known.views["jobs"]
    assert len(concerned(loose, EVERY_QUEUE, 8)) == 1


def test_a_job_that_names_no_queue_may_come_into_any(known: Facts) -> None:
    unqueued = change({"kind": "Job", "metadata": {"namespace": "d", "name": "more"}, "spec": {}})
    (part,) = concerned(known, [unqueued], 8)
    assert part.known is known
