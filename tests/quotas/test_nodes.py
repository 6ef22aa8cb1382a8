"""What nodes give to a tree: which flavor a node counts for, sums, and what is left for the root."""

from datetime import UTC, datetime
from typing import Any

import pytest

from admitter.api.cluster_queue import ClusterQueueSpec
from admitter.api.cohort import CohortSpec
from admitter.cache.node_views import parse_node
from admitter.convert import definitions
from admitter.convert.gpus import GpuSettings
from admitter.engine.model import Flavor, Taint, Toleration
from admitter.engine.policy import Group, Quota
from admitter.names import ANY_NODE, GPU_MEMORY
from admitter.quotas import hierarchy, nodes
from admitter.quotas.nodes import NodeCapacity
from tests.quotas.test_hierarchy import resources

Json = dict[str, Any]

SINCE = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
SPOT = Taint("spot", "true", "NoSchedule")
PLAIN = Flavor("plain")
ANY = Flavor(ANY_NODE)
GPUS = GpuSettings(32, {"example.com/gpu": None})


def node(*taints: Taint, cpu: int = 1000, schedulable: bool = True, **labels: str) -> NodeCapacity:
    return NodeCapacity(labels, taints, schedulable, {"cpu": cpu})


def flavor(name: str, *taints: Taint, tolerations: tuple[Toleration, ...] = (), **labels: str) -> Flavor:
    return Flavor(name, tuple(sorted(labels.items())), taints, tolerations)


@pytest.mark.parametrize(
    ("made", "flavors", "expected"),
    [
        pytest.param(node(), (PLAIN,), "plain", id="no-labels-suit-every-node"),
        pytest.param(node(zone="a"), (flavor("a", zone="a"), PLAIN), "a", id="the-most-labels"),
        pytest.param(
            node(zone="a", disk="ssd"),
            (flavor("a", zone="a"), flavor("z", zone="a", disk="ssd"), flavor("ssd", disk="ssd")),
            "z",
            id="the-most-labels-of-several",
        ),
        pytest.param(
            node(zone="a", disk="ssd"),
            (flavor("z", zone="a"), flavor("ssd", disk="ssd")),
            "ssd",
            id="by-name",
        ),
        pytest.param(node(zone="b"), (flavor("a", zone="a"),), None, id="another-label"),
        pytest.param(node(), (flavor("a", zone="a"), ANY), ANY_NODE, id="any-node-has-the-rest"),
        pytest.param(node(), (ANY, PLAIN), "plain", id="a-flavor-that-is-defined-before-any-node"),
        pytest.param(node(SPOT), (PLAIN, ANY), None, id="a-taint-is-for-others"),
        pytest.param(node(SPOT), (flavor("s", SPOT), PLAIN), "s", id="a-taint-of-the-flavor"),
        pytest.param(
            node(SPOT), (flavor("s", tolerations=(Toleration("spot", "Exists"),)),), "s", id="tolerated"
        ),
        pytest.param(node(SPOT, Taint("b", "", "NoExecute")), (flavor("s", SPOT),), None, id="one-of-two"),
        pytest.param(
            node(Taint("spot", "false", "NoSchedule")), (flavor("s", SPOT),), None, id="another-value"
        ),
        pytest.param(node(schedulable=False), (PLAIN, ANY), None, id="cordoned"),
    ],
)
def test_a_node_counts_for_one_flavor_or_none(
    made: NodeCapacity, flavors: tuple[Flavor, ...], expected: str | None
) -> None:
    for order in (flavors, flavors[::-1]):
        found = nodes.totals([made], order, GPUS)
        assert found == ({(expected, "cpu"): 1000} if expected else {})


def test_no_node_counts_twice() -> None:
    many = [node(zone="a"), node(zone="a", disk="ssd"), node(disk="ssd"), node(), node(SPOT, zone="a")]
    flavors = [flavor("a", zone="a"), flavor("ssd", disk="ssd"), PLAIN, ANY]
    found = nodes.totals(many, flavors, GPUS)
    assert found == {("a", "cpu"): 2000, ("ssd", "cpu"): 1000, ("plain", "cpu"): 1000}


@pytest.mark.parametrize(
    ("allocatable", "memory"),
    [
        pytest.param({"nvidia.com/gpu": 4}, 320, id="whole-ones-of-the-flavor"),
        pytest.param({"nvidia.com/mig-1g.10gb": 7}, 70, id="parts-by-their-name"),
        pytest.param({"nvidia.com/gpu": 1, "nvidia.com/gpu-10gb": 2}, 100, id="both"),
        pytest.param({"example.com/gpu": 2}, 160, id="what-the-settings-say"),
        pytest.param({GPU_MEMORY: 40}, 40, id="as-memory"),
        pytest.param({GPU_MEMORY: 40, "nvidia.com/gpu": 1}, 40, id="as-it-says-itself"),
        pytest.param({"cpu": 1}, None, id="none"),
    ],
)
def test_memory_of_gpus_is_counted_by_the_flavor(allocatable: dict[str, int], memory: int | None) -> None:
    large = Flavor("large", gpu_memory=80)
    found = nodes.totals([NodeCapacity({}, (), True, allocatable)], [large], GPUS)
    assert found.get(("large", GPU_MEMORY)) == memory


@pytest.mark.parametrize(
    ("spec", "status", "schedulable", "taints"),
    [
        pytest.param({}, {}, True, 0, id="says-nothing"),
        pytest.param({"unschedulable": True}, {}, False, 0, id="cordoned"),
        pytest.param({}, {"conditions": [{"type": "Ready", "status": "True"}]}, True, 0, id="ready"),
        pytest.param({}, {"conditions": [{"type": "Ready", "status": "Unknown"}]}, False, 0, id="lost"),
        pytest.param({}, {"conditions": [{"type": "DiskPressure", "status": "True"}]}, True, 0, id="other"),
        pytest.param({"taints": [{"key": "a", "effect": "NoSchedule"}]}, {}, True, 1, id="repels"),
        pytest.param({"taints": [{"key": "a", "effect": "PreferNoSchedule"}]}, {}, True, 0, id="prefers"),
    ],
)
def test_what_is_read_of_a_node(spec: Json, status: Json, schedulable: bool, taints: int) -> None:
    metadata = {"name": "n", "uid": "u", "resourceVersion": "1", "labels": {"a": "b"}}
    status = {**status, "allocatable": {"cpu": "3920m", "memory": "1Gi", "nos.nebuly.com/gpu-memory": "8"}}
    made = parse_node({"metadata": metadata, "spec": spec, "status": status}).node
    assert (made.schedulable, len(made.taints), made.labels) == (schedulable, taints, {"a": "b"})
    assert made.allocatable == {"cpu": 3920, "memory": 2**30, GPU_MEMORY: 8}


@pytest.mark.parametrize(
    ("spec", "ready", "told"),
    [
        pytest.param({}, {}, (True, 0.0, False, ""), id="says nothing"),
        pytest.param({"unschedulable": True}, {"status": "True"}, (True, SINCE, True, ""), id="cordoned"),
        pytest.param(
            {}, {"status": "False", "message": "full"}, (False, SINCE, False, "full"), id="not ready"
        ),
        pytest.param({}, {"status": "Unknown", "reason": "Lost"}, (False, SINCE, False, "Lost"), id="lost"),
        pytest.param(
            {}, {"status": "False", "message": "x" * 999}, (False, SINCE, False, "x" * 200), id="long"
        ),
        pytest.param({}, {"status": "True", "message": "is ready"}, (True, SINCE, False, ""), id="ready"),
    ],
)
def test_since_when_a_node_can_not_be_used_and_why(
    spec: Json, ready: Json, told: tuple[bool, float, bool, str]
) -> None:
    metadata = {"name": "n", "uid": "u", "resourceVersion": "1"}
    conditions = [{"type": "Ready", "lastTransitionTime": "2026-01-01T00:00:00Z", **ready}] if ready else []
    made = parse_node({"metadata": metadata, "spec": spec, "status": {"conditions": conditions}})
    assert (made.ready, made.since, made.cordoned, made.trouble) == told
    assert made.node.schedulable == (made.ready and not made.cordoned)


def test_a_quantity_that_is_none_is_left_out() -> None:
    assert nodes.amounts({"cpu": "4", "example.com/odd": "many"}) == {"cpu": 4000}


def root(found: dict[tuple[str, str], int], queues: list[Json], cohorts: list[Json], **spec: Any) -> Any:
    """The quotas of a root over some queues and cohorts, each given by its resources."""
    branch = hierarchy.branch("root", CohortSpec.model_validate({"capacityFrom": "Nodes", **spec}))
    made = [
        definitions.queue(f"q{number}", ClusterQueueSpec.model_validate({"resources": listed}))
        for number, listed in enumerate(queues)
    ]
    between = [
        definitions.cohort(f"c{number}", CohortSpec.model_validate({"resources": listed}))
        for number, listed in enumerate(cohorts)
    ]
    below = nodes.Demand()
    for queue in made:
        below.add(queue.quotas, queue.groups)
    for cohort in between:
        below.add(cohort.quotas)
    return nodes.root(branch, found, below).quotas


def cpus(flavor: str = "a", **quota: int) -> Any:
    return resources(cpu={flavor: quota})


@pytest.mark.parametrize(
    ("queues", "cohorts", "declared", "expected"),
    [
        pytest.param([cpus()], [], None, Quota(10_000, 10_000), id="nobody-has-min"),
        pytest.param([cpus(min=3), cpus(min=4)], [], None, Quota(3000, 10_000), id="what-they-leave"),
        pytest.param([cpus(min=3)], [cpus(min=4)], None, Quota(3000, 10_000), id="min-of-cohorts-too"),
        pytest.param([cpus(min=8), cpus(min=8)], [], None, Quota(0, 10_000), id="more-than-there-is"),
        pytest.param([cpus(min=3)], [], 6, Quota(7000, 6000), id="a-lesser-max"),
        pytest.param([cpus(min=3)], [], 60, Quota(7000, 10_000), id="a-larger-max"),
    ],
)
def test_the_root_has_what_nodes_have_beyond_the_min_below(
    queues: list[Json], cohorts: list[Json], declared: int | None, expected: Quota
) -> None:
    spec = {} if declared is None else {"resources": cpus(max=declared)}
    found = root({("a", "cpu"): 10_000, ("b", "cpu"): 5000}, queues, cohorts, **spec)
    assert found == {("a", "cpu"): expected}, "and of flavors that are not named it has nothing"


def test_what_is_named_and_on_no_node_is_not_there() -> None:
    assert root({}, [cpus(min=3)], []) == {("a", "cpu"): Quota(0, 0)}


def test_a_root_without_resources_has_all_that_nodes_can_allocate() -> None:
    branch = hierarchy.branch("root", CohortSpec.model_validate({"capacityFrom": "Nodes"}))
    found = {(ANY_NODE, "cpu"): 4000, (ANY_NODE, "pods"): 110, ("a", "cpu"): 1000, ("a", "gpu"): 2}
    every = nodes.everything(branch, {"a"}, found)
    assert every.groups == (Group(("cpu", "memory", "gpu", "pods"), ("a", ANY_NODE)),)
    quotas = nodes.root(every, found, nodes.Demand()).quotas
    assert {key: quota for key, quota in quotas.items() if quota.minimum} == {
        key: Quota(amount, amount) for key, amount in found.items()
    }
    assert quotas[ANY_NODE, "gpu"] == Quota(0, 0)


def test_without_any_node_everything_is_still_cpu_and_memory() -> None:
    branch = hierarchy.branch("root", CohortSpec.model_validate({"capacityFrom": "Nodes"}))
    assert nodes.everything(branch, (), {}).groups == (Group(("cpu", "memory"), (ANY_NODE,)),)


def test_the_largest_nodes_of_a_flavor_are_those_that_no_other_exceeds_in_everything() -> None:
    def sized(cpu: int, memory: int, **labels: str) -> NodeCapacity:
        return NodeCapacity(labels, (SPOT,), schedulable=False, allocatable={"cpu": cpu, "memory": memory})

    small, wide, tall = sized(2, 2, zone="a"), sized(8, 1, zone="a"), sized(2, 9, zone="a", rack="7")
    unregistered = NodeCapacity({"zone": "a"}, allocatable={"memory": 99})
    flavors = [flavor("a", zone="a"), flavor("b", zone="b"), PLAIN]
    found = nodes.largest([small, wide, tall, sized(3, 3, zone="b"), unregistered], flavors)
    assert {name: {shape.allocatable for shape in shapes} for name, shapes in found.items()} == {
        "a": {(("cpu", 8), ("memory", 1)), (("cpu", 2), ("memory", 9))},
        "b": {(("cpu", 3), ("memory", 3))},
        "plain": {(("cpu", 8), ("memory", 1)), (("cpu", 2), ("memory", 9)), (("cpu", 3), ("memory", 3))},
    }
    assert {shape.labels for shape in found["a"]} == {(("zone", "a"),)}, "only labels that flavors name"
