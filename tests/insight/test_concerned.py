"""What a change does not concern makes no difference, and is not played."""

from collections.abc import Callable
from typing import Any

import pytest

from admitter.insight import what_if
from admitter.insight.concerned import concerned
from admitter.insight.snapshot import facts
from admitter.insight.what_if import compare
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


@pytest.mark.parametrize(("changes", "expected"), CHANGES)
def test_only_trees_that_are_touched_are_played(
    known: Facts, changes: list[Change], expected: set[str]
) -> None:
    left = concerned(known, changes).views
    assert {view.namespace for view in left["workloads"].values()} == expected


@pytest.mark.parametrize(("changes", "expected"), CHANGES)
def test_the_answer_is_the_same_as_of_everything(
    known: Facts, changes: list[Change], expected: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    short = compare(known, changes)
    everything: Callable[..., Facts] = lambda facts, _changes: facts  # noqa: E731  # in place of a function
    monkeypatch.setattr(what_if, "concerned", everything)
    assert compare(known, changes) == short, expected
