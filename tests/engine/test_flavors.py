"""Which flavor a pod set gets. Source: 003, *Resources*, *Codependent resources*, *ResourceFlavor object*."""

import pytest

from admitter.engine.explain import Reason, Rule
from admitter.engine.model import Flavor, PodSet, Requirement, Taint, Toleration
from tests.engine.builders import (
    SPOT_TAINT,
    TOLERATES_SPOT,
    admitted,
    engine,
    flavor,
    flavors_of,
    pods,
    queue,
    workload,
)

SPOT = flavor("spot", taints=(SPOT_TAINT,), instance="spot")
ON_DEMAND = flavor("on-demand", instance="on-demand")
VENDORS = (flavor("vendor1", accelerator="vendor1"), flavor("vendor2", accelerator="vendor2"))

# The codependent example of 003: cpu and memory on spot, then on-demand; gpu apart, on two vendors.
TOTAL = queue(
    "q",
    {
        "cpu": {"spot": "18", "on-demand": "9"},
        "memory": {"spot": "72Gi", "on-demand": "36Gi"},
        "gpu": {"vendor1": "10", "vendor2": "10"},
    },
)


def decide(*pod_sets: PodSet) -> dict[str, dict[str, str]] | tuple[Reason, list[tuple[str, Rule]]]:
    """The flavors that one workload gets in the empty example queue, or why it gets none."""
    made = engine(SPOT, ON_DEMAND, *VENDORS, TOTAL)
    made.submit(workload("w", *pod_sets))
    plan = made.cycle()
    if plan.admissions:
        return flavors_of(plan, "w")
    refusal = plan.refusals["w"]
    return refusal.reason, [(f.flavor, f.rule) for f in refusal.flavors]


def affinity(*terms: tuple[Requirement, ...]) -> tuple[tuple[Requirement, ...], ...]:
    return terms


@pytest.mark.parametrize(
    ("pod_sets", "expected"),
    [
        pytest.param(
            [pods(18, cpu="1", memory="4Gi", tolerations=TOLERATES_SPOT)],
            {"main": {"cpu": "spot", "memory": "spot"}},
            id="all of the first flavor",
        ),
        pytest.param(
            [pods(1, cpu="1", memory="73Gi", tolerations=TOLERATES_SPOT)],
            (Reason.NEVER_FITS, [("spot", Rule.LIMIT), ("on-demand", Rule.LIMIT)]),
            id="memory is short everywhere although cpu is not",
        ),
        pytest.param(
            [pods(1, cpu="1", memory="4Gi")],
            {"main": {"cpu": "on-demand", "memory": "on-demand"}},
            id="an untolerated taint moves on to the next flavor",
        ),
        pytest.param(
            [pods(10, cpu="1", memory="1Gi", tolerations=TOLERATES_SPOT, selector={"instance": "on-demand"})],
            (Reason.NEVER_FITS, [("spot", Rule.LABELS), ("on-demand", Rule.LIMIT)]),
            id="a selector for on-demand, but 10 cpu of 9",
        ),
        pytest.param(
            [pods(1, cpu="1", gpu="10", tolerations=TOLERATES_SPOT), pods(1, name="b", gpu="1")],
            {"main": {"cpu": "spot", "gpu": "vendor1"}, "b": {"gpu": "vendor2"}},
            id="pod sets add up: the second finds vendor1 full, and gpu goes its own way",
        ),
        pytest.param(
            [pods(1, cpu="1", selector={"instance": "on-demand", "zone": "a"})],
            {"main": {"cpu": "on-demand"}},
            id="only the keys of the group's flavors matter",
        ),
        pytest.param(
            [pods(1, cpu="1", selector={"instance": "other"}, tolerations=TOLERATES_SPOT)],
            (Reason.NO_MATCHING_FLAVOR, [("spot", Rule.LABELS), ("on-demand", Rule.LABELS)]),
            id="a selector that no flavor has",
        ),
        pytest.param(
            [pods(1, gpu="1", selector={"accelerator": "vendor2", "instance": "spot"})],
            {"main": {"gpu": "vendor2"}},
            id="the label of another group's flavors does not count for this group",
        ),
        pytest.param([pods(0, cpu="100")], {"main": {}}, id="no pods ask for nothing"),
        pytest.param(
            [pods(1, cpu="1", gpu="0", license="0")],
            {"main": {"cpu": "on-demand"}},
            id="a request of zero blocks nothing, covered or not",
        ),
    ],
)
def test_flavor_of_a_workload(pod_sets: list[PodSet], expected: object) -> None:
    assert decide(*pod_sets) == expected


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ([[Requirement("instance", "In", ("on-demand",))]], "on-demand"),
        ([[Requirement("instance", "NotIn", ("on-demand",))]], "spot"),
        ([[Requirement("instance", "Exists")]], "spot"),
        ([[Requirement("instance", "DoesNotExist")]], None),
        ([[Requirement("zone", "DoesNotExist")]], "spot"),
        (
            [[Requirement("instance", "In", ("x",))], [Requirement("instance", "In", ("on-demand",))]],
            "on-demand",
        ),
        ([[Requirement("instance", "In", ("spot",)), Requirement("zone", "In", ("a",))]], "spot"),
        ([[Requirement("instance", "Gt", ("3",))]], None),
    ],
    ids=[
        "In",
        "NotIn",
        "Exists takes the first",
        "DoesNotExist fits none",
        "a key of no flavor does not matter",
        "terms are alternatives",
        "keys of no flavor are left out of a term",
        "Gt on a word",
    ],
)
def test_required_node_affinity(terms: list[list[Requirement]], expected: str | None) -> None:
    outcome = decide(pods(1, cpu="1", affinity=tuple(tuple(t) for t in terms), tolerations=TOLERATES_SPOT))
    assert outcome == {"main": {"cpu": expected}} if expected else isinstance(outcome, tuple)


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        (Toleration("spot", "Equal", "true", "NoSchedule"), True),
        (Toleration("spot", "Exists"), True),
        (Toleration("", "Exists"), True),
        (Toleration("spot", "Equal", "true"), True),
        (Toleration("spot", "Equal", "false"), False),
        (Toleration("spot", "Exists", effect="NoExecute"), False),
        (Toleration("other", "Exists"), False),
    ],
)
def test_toleration_of_the_taint(toleration: Toleration, tolerated: bool) -> None:
    assert toleration.tolerates(SPOT_TAINT) is tolerated


def test_a_flavor_brings_its_own_toleration() -> None:
    own = Flavor("spot", (("instance", "spot"),), (SPOT_TAINT,), TOLERATES_SPOT)
    made = engine(own, queue("q", {"cpu": {"spot": "1"}}))
    made.submit(workload("w", pods(1, cpu="1")))
    assert admitted(made.cycle()) == ["w"]


def test_a_taint_that_only_discourages_keeps_nobody_away() -> None:
    mild = flavor("mild", taints=(Taint("old", "", "PreferNoSchedule"),))
    made = engine(mild, queue("q", {"cpu": {"mild": "1"}}))
    made.submit(workload("w", pods(1, cpu="1")))
    assert admitted(made.cycle()) == ["w"]


@pytest.mark.parametrize(
    ("pod_set", "reason", "resources"),
    [
        (pods(1, cpu="1", license="2", tape="1"), Reason.RESOURCE_NOT_COVERED, ("license", "tape")),
        (pods(1), Reason.NOTHING_REQUESTED, ("cpu", "memory", "gpu")),
        (pods(1, cpu="0"), Reason.NOTHING_REQUESTED, ("cpu", "memory", "gpu")),
    ],
    ids=["what the queue does not cover is named", "nothing at all", "zero is nothing"],
)
def test_requests_that_the_queue_does_not_count(
    pod_set: PodSet, reason: Reason, resources: tuple[str, ...]
) -> None:
    made = engine(SPOT, ON_DEMAND, *VENDORS, TOTAL)
    made.submit(workload("w", pod_set))
    refusal = made.cycle().refusals["w"]
    assert (refusal.reason, refusal.resources) == (reason, resources)


def test_a_pod_set_makes_room_in_the_only_flavor_of_another_one() -> None:
    made = engine(flavor("a", kind="a"), flavor("b", kind="b"), queue("q", {"cpu": {"a": "4", "b": "4"}}))
    first, second = pods(name="x", cpu="3"), pods(name="y", cpu="2", selector={"kind": "a"})
    made.submit(workload("w", first, second))
    assert flavors_of(made.cycle(), "w") == {"x": {"cpu": "b"}, "y": {"cpu": "a"}}


def test_resources_with_flavors_of_their_own_end_up_on_the_same_nodes() -> None:
    made = engine(
        flavor("a", zone="1"),
        flavor("b", zone="2"),
        flavor("y", zone="2"),
        queue("q", {"cpu": {"a": "4", "b": "4"}, "gpu": {"y": "4"}}),
    )
    made.submit(workload("w", pods(cpu="1", gpu="1")))
    assert flavors_of(made.cycle(), "w") == {"main": {"cpu": "b", "gpu": "y"}}


def test_what_no_combination_can_ever_give_is_said_to_be_so() -> None:
    made = engine(flavor("a"), flavor("b"), queue("q", {"cpu": {"a": "4", "b": "4"}}))
    made.submit(workload("w", *(pods(name=name, cpu="3") for name in "xyz")))
    assert made.cycle().refusals["w"].reason is Reason.NEVER_FITS


def test_very_many_combinations_come_to_an_end() -> None:
    names = [f"f{n}" for n in range(9)]
    made = engine(*(flavor(n) for n in names), queue("q", {"cpu": dict.fromkeys(names, "4")}))
    made.submit(workload("w", *(pods(name=f"p{n}", cpu="4") for n in range(10))))
    assert made.cycle().refusals["w"].reason is Reason.NEVER_FITS


def test_an_empty_node_selector_term_matches_no_node() -> None:
    nothing = (Requirement("", "In"),)
    made = engine(flavor("a", kind="a"), queue("q", {"cpu": {"a": "4"}}))
    made.submit(workload("w", pods(cpu="1", affinity=(nothing,))))
    assert made.cycle().refusals["w"].reason is Reason.NO_MATCHING_FLAVOR
