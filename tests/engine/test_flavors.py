"""Which flavor a pod set gets. Source: docs/coming-from-kueue.md."""

import pytest

from admitter.engine.commands import SetFlavor, Submit
from admitter.engine.model import Flavor, PodSet, Requirement, Taint, Toleration
from admitter.engine.refusal import Reason, Rule
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

# The codependent example of Kueue: cpu and memory on spot, then on-demand; gpu apart, on two vendors.
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
    made.apply(Submit(workload("w", *pod_sets)))
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
            id="a key that no flavor names does not matter",
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
    made.apply(Submit(workload("w", pods(1, cpu="1"))))
    assert admitted(made.cycle()) == ["w"]


def test_a_taint_that_only_discourages_keeps_no_workload_away() -> None:
    mild = flavor("mild", taints=(Taint("old", "", "PreferNoSchedule"),))
    made = engine(mild, queue("q", {"cpu": {"mild": "1"}}))
    made.apply(Submit(workload("w", pods(1, cpu="1"))))
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
    made.apply(Submit(workload("w", pod_set)))
    refusal = made.cycle().refusals["w"]
    assert (refusal.reason, refusal.resources) == (reason, resources)


def test_a_pod_set_makes_room_in_the_only_flavor_of_another_one() -> None:
    made = engine(flavor("a", kind="a"), flavor("b", kind="b"), queue("q", {"cpu": {"a": "4", "b": "4"}}))
    first, second = pods(name="x", cpu="3"), pods(name="y", cpu="2", selector={"kind": "a"})
    made.apply(Submit(workload("w", first, second)))
    assert flavors_of(made.cycle(), "w") == {"x": {"cpu": "b"}, "y": {"cpu": "a"}}


def test_resources_with_flavors_of_their_own_end_up_on_the_same_nodes() -> None:
    made = engine(
        flavor("a", zone="1"),
        flavor("b", zone="2"),
        flavor("y", zone="2"),
        queue("q", {"cpu": {"a": "4", "b": "4"}, "gpu": {"y": "4"}}),
    )
    made.apply(Submit(workload("w", pods(cpu="1", gpu="1"))))
    assert flavors_of(made.cycle(), "w") == {"main": {"cpu": "b", "gpu": "y"}}


def test_what_no_combination_can_ever_give_is_said_to_be_so() -> None:
    made = engine(flavor("a"), flavor("b"), queue("q", {"cpu": {"a": "4", "b": "4"}}))
    made.apply(Submit(workload("w", *(pods(name=name, cpu="3") for name in "xyz"))))
    assert made.cycle().refusals["w"].reason is Reason.NEVER_FITS


def test_very_many_combinations_come_to_an_end() -> None:
    names = [f"f{n}" for n in range(9)]
    made = engine(*(flavor(n) for n in names), queue("q", {"cpu": dict.fromkeys(names, "4")}))
    made.apply(Submit(workload("w", *(pods(name=f"p{n}", cpu="4") for n in range(10)))))
    assert made.cycle().refusals["w"].reason is Reason.NEVER_FITS


def test_an_empty_node_selector_term_matches_no_node() -> None:
    nothing = (Requirement("", "In"),)
    made = engine(flavor("a", kind="a"), queue("q", {"cpu": {"a": "4"}}))
    made.apply(Submit(workload("w", pods(cpu="1", affinity=(nothing,)))))
    assert made.cycle().refusals["w"].reason is Reason.NO_MATCHING_FLAVOR


# small says nothing of a model: its nodes may be of any.
SMALL, SPECIAL = flavor("small", size="small"), flavor("special", size="big", model="x", year="2020")


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({}, "small"),
        ({"model": "y"}, "small"),
        ({"size": "small", "model": "y"}, "small"),
        ({"size": "big", "model": "x"}, "special"),
        ({"size": "big", "model": "y"}, None),
        ({"size": "big", "zone": "a"}, "special"),
    ],
    ids=str,
)
def test_a_flavor_is_compared_with_the_labels_that_it_names_itself(
    selector: dict[str, str], expected: str | None
) -> None:
    made = engine(SMALL, SPECIAL, queue("q", {"cpu": {"small": "4", "special": "4"}}))
    made.apply(Submit(workload("w", pods(cpu="1", selector=selector))))
    plan = made.cycle()
    assert [flavors_of(plan, uid)["main"]["cpu"] for uid in admitted(plan)] == (
        [expected] if expected else []
    )


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        (Requirement("model", "In", ("y",)), ["small"]),
        (Requirement("model", "In", ("x", "y")), ["small", "special"]),
        (Requirement("model", "NotIn", ("x",)), ["small"]),
        (Requirement("model", "NotIn", ("y",)), ["small", "special"]),
        (Requirement("model", "Exists"), ["small", "special"]),
        (Requirement("model", "DoesNotExist"), ["small"]),
        (Requirement("year", "Gt", ("2019",)), ["small", "special"]),
        (Requirement("year", "Gt", ("2020",)), ["small"]),
        (Requirement("year", "Lt", ("2020",)), ["small"]),
        (Requirement("model", "In"), []),
    ],
    ids=lambda each: (
        " ".join((each.key, each.operator, *each.values)) if isinstance(each, Requirement) else ""
    ),
)
def test_affinity_says_nothing_of_labels_that_a_flavor_does_not_name(
    requirement: Requirement, expected: list[str]
) -> None:
    for name in ("small", "special"):
        limits = {"small": "0", "special": "0"} | {name: "4"}
        made = engine(SMALL, SPECIAL, queue("q", {"cpu": limits}))
        made.apply(Submit(workload("w", pods(cpu="1", affinity=affinity((requirement,))))))
        assert bool(admitted(made.cycle())) is (name in expected), name


EITHER = affinity(
    (Requirement("disk", "In", ("fast",)), Requirement("model", "In", ("y",))),
    (Requirement("disk", "In", ("slow",)), Requirement("model", "In", ("x",))),
)


@pytest.mark.parametrize(
    ("disks", "expected"),
    [(("fast", "slow"), {"cpu": "slow", "gpu": "x"}), (("fast",), None)],
    ids=["another flavor has it", "no other flavor"],
)
def test_flavors_of_several_groups_satisfy_one_term_together(
    disks: tuple[str, ...], expected: dict[str, str] | None
) -> None:
    """Each flavor by itself satisfies a term, but no node of both satisfies the same one."""
    flavors = (flavor("fast", disk="fast"), flavor("slow", disk="slow"), flavor("x", model="x"))
    made = engine(*flavors, queue("q", {"cpu": dict.fromkeys(disks, "4"), "gpu": {"x": "4"}}))
    made.apply(Submit(workload("w", pods(cpu="1", gpu="1", affinity=EITHER))))
    plan = made.cycle()
    if expected is not None:
        assert flavors_of(plan, "w") == {"main": expected}
        return
    refusal = plan.refusals["w"]
    assert refusal.reason is Reason.NO_MATCHING_FLAVOR
    assert [each.detail for each in refusal.flavors] == ["required node affinity beside fast"]


def test_flavors_of_several_groups_do_not_contradict_each_other_by_keys_that_one_names() -> None:
    made = engine(
        flavor("spot", kind="spot"),
        flavor("x", model="x"),
        queue("q", {"cpu": {"spot": "4"}, "gpu": {"x": "4"}}),
    )
    made.apply(
        Submit(workload("w", pods(cpu="1", gpu="1", selector={"kind": "spot", "model": "x", "zone": "a"})))
    )
    assert flavors_of(made.cycle(), "w") == {"main": {"cpu": "spot", "gpu": "x"}}


def test_a_label_that_a_flavor_gets_excludes_workloads_admitted_without_it() -> None:
    made = engine(SMALL, queue("q", {"cpu": {"small": "4"}}))
    made.apply(Submit(workload("first", pods(cpu="1", selector={"model": "y"}))))
    assert admitted(made.cycle()) == ["first"]
    made.apply(SetFlavor(flavor("small", size="small", model="x")))
    made.apply(Submit(workload("next", pods(cpu="1", selector={"model": "y"}))))
    assert made.cycle().refusals["next"].reason is Reason.NO_MATCHING_FLAVOR
    made.apply(SetFlavor(SMALL))
    assert admitted(made.cycle()) == ["next"]
