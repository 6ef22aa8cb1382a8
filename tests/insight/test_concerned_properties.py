"""Whatever changes at once, played in parts it comes to what it comes to in one."""

import os

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from admitter.insight.snapshot import facts
from admitter.insight.what_if import compare
from admitter.simulate.manifests import Change
from tests.cluster.objects import ADMITTER, cluster_queue, job, local_queue, resource_flavor
from tests.insight.states import NOW, Json, State

QUEUES, NAMESPACES, COHORTS = range(4), "abc", ("left", "right", "")

queues = st.sampled_from(QUEUES)
namespaces = st.sampled_from(NAMESPACES)
cohorts = st.sampled_from(COHORTS)
cpus = st.integers(1, 4).map(str)
locals_ = st.sampled_from(["main", "other", "new"])


@st.composite
def states(draw: st.DrawFn) -> State:
    """Some queues in cohorts; LocalQueues that lead to them, or are missing; who waits, and who holds."""
    made = State()
    for number in QUEUES:
        made.queue(f"q-{number}", {"cpu": {"default": {"min": draw(cpus)}}}, draw(cohorts))
    for namespace in NAMESPACES:
        made.put("namespaces", namespace)
        for name in draw(st.sets(st.sampled_from(["main", "other"]))):
            made.put("localqueues", name, namespace, spec={"clusterQueue": f"q-{draw(queues)}"})
        for number in range(draw(st.integers(0, 2))):
            made.waits(namespace, f"waits-{number}", {"cpu": draw(cpus)}, queue=draw(locals_))
        for number in range(draw(st.integers(0, 2))):
            owner = f"q-{draw(queues)}"
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
    kind = draw(st.sampled_from(["ClusterQueue", "Cohort", "LocalQueue", "Job", "ResourceFlavor"]))
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


@given(state=states(), changes=st.tuples(*(manifests(number) for number in range(3))), some=st.integers(1, 3))
@settings(
    deadline=None,
    max_examples=int(os.environ.get("ADMITTER_EXAMPLES", "150")),
    derandomize="ADMITTER_EXAMPLES" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
def test_parts_come_to_what_the_whole_comes_to(state: State, changes: tuple[Json, ...], some: int) -> None:
    known = facts(state.snapshot())
    those = [Change(NOW, number, manifest) for number, manifest in enumerate(changes[:some])]
    assert compare(known, those, processes=8) == compare(known, those)
