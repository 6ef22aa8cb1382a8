"""Whatever changes at once, played in parts it comes to what it comes to in one."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admitter.insight.snapshot_file import facts
from admitter.insight.what_if import compare as what_if
from admitter.insight.what_if.compare import compare
from admitter.insight.what_if.scope import Part, concerned
from admitter.policy.snapshot import Facts
from admitter.simulate.manifests import Change
from tests.cluster.objects import ADMITTER, cluster_queue, job, local_queue, resource_flavor
from tests.insight.states import NOW, Json, State
from tests.scale import examples

APART = 20
"""So many examples at least have parts that are played apart."""
QUEUES, NAMESPACES, COHORTS = range(6), "abcd", ("", "left", "right")

queues = st.sampled_from(QUEUES)
namespaces = st.sampled_from(NAMESPACES)
cohorts = st.sampled_from(COHORTS)
cpus = st.integers(1, 4).map(str)
locals_ = st.sampled_from(["main", "other", "new"])


@st.composite
def states(draw: st.DrawFn) -> State:
    """Some queues in cohorts; LocalQueues that lead to them, or are missing; Workloads."""
    made = State()
    for number in QUEUES:
        made.queue(f"q-{number}", {"cpu": {"default": {"min": draw(cpus)}}}, draw(cohorts))
    for namespace in NAMESPACES:
        made.put("namespaces", namespace)
        leads = {name: f"q-{draw(queues)}" for name in draw(st.sets(st.sampled_from(["main", "other"])))}
        for name, queue in leads.items():
            made.put("localqueues", name, namespace, spec={"clusterQueue": queue})
        for number in range(draw(st.integers(0, 2))):
            made.waits(namespace, f"waits-{number}", {"cpu": draw(cpus)}, queue=draw(locals_))
        for number in range(draw(st.integers(0, 2))):
            elsewhere = draw(st.sampled_from((False, False, False, True)))  # it was, when that one began
            owner = (
                f"q-{draw(queues)}" if elsewhere else leads.get("main", f"q-{NAMESPACES.index(namespace)}")
            )
            made.holds(
                *(namespace, f"runs-{number}", {"cpu": (draw(cpus), "default")}),
                cluster_queue=owner,
                since=-draw(st.integers(10, 900)),
            )
    made.holds("a", "took", {"cpu": ("1", "default")}, cluster_queue="q-0", since=-900, finished=-500)
    return made


@st.composite
def manifests(draw: st.DrawFn, number: int) -> Json:
    """Something that comes or changes; a number for the names of Jobs, which are new."""
    kind = draw(
        st.sampled_from(["ClusterQueue", "ClusterQueue", "LocalQueue", "Job", "Cohort", "ResourceFlavor"])
    )
    match kind:
        case "ClusterQueue":
            parent = draw(cohorts)
            return cluster_queue(
                f"q-{draw(queues)}",
                {"cpu": {"default": draw(cpus)}},
                **({"cohort": parent} if parent else {}),
            )
        case "Cohort":
            spec = {"parent": draw(st.sampled_from(["right", "top"]))}
            return {"apiVersion": ADMITTER, "kind": kind, "metadata": {"name": "left"}, "spec": spec}
        case "LocalQueue":
            return local_queue(draw(namespaces), f"q-{draw(queues)}", draw(locals_))
        case "Job":
            asked = {"cpu": draw(cpus)}
            return job(draw(namespaces), f"more-{number}", requests=asked, queue=draw(locals_))
    return resource_flavor("default", {})


@pytest.mark.long
def test_parts_come_to_what_the_whole_comes_to() -> None:
    apart = 0

    @settings(max_examples=examples(75))
    @given(
        state=states(),
        changes=st.tuples(*(manifests(number) for number in range(4))),
        some=st.sampled_from((3, 4, 2, 1)),
    )
    def check(state: State, changes: tuple[Json, ...], some: int) -> None:
        nonlocal apart
        known = facts(state.snapshot())
        those = [Change(NOW, number, manifest) for number, manifest in enumerate(changes[:some])]
        apart += len(concerned(known, those, 8)) > 1
        found = compare(known, those, processes=8)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(what_if, "concerned", whole)
            assert compare(known, those) == found

    check()
    assert apart >= APART


def whole(known: Facts, changes: Sequence[Change], _most: int) -> list[Part]:
    """The cluster as it is, in one part."""
    return [Part(known, tuple(changes), None)]
