"""A pod that no node of a flavor has room for never starts there, so it does not hold that quota."""

from dataclasses import replace

import pytest

from admitter.engine.commands import SetFlavor, Submit
from admitter.engine.cycle import Engine
from admitter.engine.model import Flavor, NodeShape, PodSet
from admitter.engine.refusal import Reason, Rule
from admitter.policy.messages import flavor_sentence
from tests.engine.builders import admitted, engine, flavor, flavors_of, pods, queue, workload

GI = 2**30


def node(cpu: int, memory: int = 64, **more: int | str) -> NodeShape:
    """A node with some CPUs, GiB of memory, further resources and labels."""
    labels = tuple((key, value) for key, value in sorted(more.items()) if isinstance(value, str))
    amounts = {key: value for key, value in more.items() if isinstance(value, int)}
    return NodeShape(labels, (("cpu", cpu * 1000), *amounts.items(), ("memory", memory * GI)))


def sized(name: str, *shapes: NodeShape, **labels: str) -> Flavor:
    return Flavor(name, tuple(labels.items()), shapes=shapes)


SMALL = sized("small", node(4, 16))
LARGE = sized("large", node(8, 16), node(4, 64))
BOTH = queue("q", {"cpu": {"small": "100", "large": "100"}, "memory": {"small": "900Gi", "large": "900Gi"}})


def asked(made: Engine, *pod_sets: PodSet) -> tuple[Reason, list[str]] | dict[str, dict[str, str]]:
    """The flavors that a workload gets, or the reason why it gets none and a sentence for each flavor."""
    made.apply(Submit(workload("w", *pod_sets)))
    plan = made.cycle()
    if plan.admissions:
        return flavors_of(plan, "w")
    refusal = plan.refusals["w"]
    assert {each.rule for each in refusal.flavors} == {Rule.NODES}
    return refusal.reason, [flavor_sentence(each) for each in refusal.flavors]


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (pods(9, cpu="4", memory="16Gi"), {"main": {"cpu": "small", "memory": "small"}}),
        (pods(1, cpu="5", memory="1Gi"), {"main": {"cpu": "large", "memory": "large"}}),
        (pods(1, cpu="1", memory="64Gi"), {"main": {"cpu": "large", "memory": "large"}}),
        (
            pods(1, cpu="9", memory="1Gi"),
            (
                Reason.NEVER_FITS,
                [
                    "the largest node of small has 4 cpu, and a pod needs 9 cpu",
                    "the largest node of large has 8 cpu, and a pod needs 9 cpu",
                ],
            ),
        ),
        (
            pods(1, cpu="5", memory="17Gi"),
            (
                Reason.NEVER_FITS,
                [
                    "the largest node of small has 4 cpu, and a pod needs 5 cpu",
                    "no node of large has all that a pod requests",
                ],
            ),
        ),
    ],
    ids=["as large as a node", "more CPU", "more memory", "larger than all", "much of both"],
)
def test_a_pod_gets_a_flavor_with_a_node_that_is_large_enough(pod: PodSet, expected: object) -> None:
    assert asked(engine(SMALL, LARGE, BOTH), pod) == expected


def test_a_resource_that_the_queue_does_not_count_is_needed_all_the_same() -> None:
    lenient = replace(queue("q", {"cpu": {"small": "9"}}), lenient=True)
    made = engine(sized("small", node(4, gpu=1)), lenient)
    assert asked(made, pods(1, cpu="1", gpu="2")) == (
        Reason.NEVER_FITS,
        ["the largest node of small has 1 gpu, and a pod needs 2 gpu"],
    )


def test_a_flavor_without_known_nodes_takes_pods_of_any_size() -> None:
    made = engine(flavor("small"), queue("q", {"cpu": {"small": "100"}}))
    assert asked(made, pods(1, cpu="100")) == {"main": {"cpu": "small"}}


def two_groups(*shapes: NodeShape) -> Engine:
    """CPUs in zones, GPUs by model; each flavor has those of the nodes with its label."""
    made = [
        sized(name, *(shape for shape in shapes if (key, name) in shape.labels), **{key: name})
        for key, name in (("zone", "a"), ("zone", "b"), ("model", "x"), ("model", "y"))
    ]
    quotas = {"cpu": {"a": "9", "b": "9"}, "gpu": {"x": "9", "y": "9"}}
    return engine(*made, queue("q", quotas))


def test_flavors_of_two_groups_are_of_one_node() -> None:
    made = two_groups(node(4, zone="a"), node(4, gpu=2, zone="b", model="y"), node(4, gpu=8, model="x"))
    assert asked(made, pods(1, cpu="1", gpu="2")) == {"main": {"cpu": "b", "gpu": "y"}}


def test_no_node_is_of_two_flavors() -> None:
    places = [node(4, gpu=2, zone=zone) for zone in "ab"]
    made = two_groups(*places, *(node(4, gpu=8, model=model) for model in "xy"))
    sentences = ["no node of x is of a too", "no node of y is of a too"]
    assert asked(made, pods(1, cpu="1", gpu="2")) == (Reason.NEVER_FITS, sentences)


def test_a_refused_workload_is_tried_again_once_a_larger_node_is_there() -> None:
    made = engine(SMALL, queue("q", {"cpu": {"small": "100"}}))
    assert asked(made, pods(1, cpu="5")) == (
        Reason.NEVER_FITS,
        ["the largest node of small has 4 cpu, and a pod needs 5 cpu"],
    )
    assert not made.cycle().refusals
    made.apply(SetFlavor(replace(SMALL, shapes=(node(4), node(8)))))
    assert admitted(made.cycle()) == ["w"]
