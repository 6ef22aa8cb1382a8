"""GPU memory as a resource: the GB that a pod needs depend on the flavor. Source: docs/design/requests.md."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from admitter.convert.gpus import DEFAULT_GPUS
from admitter.engine.commands import Release, SetFlavor, Submit
from admitter.engine.cycle import Engine
from admitter.engine.explain.explanation import Amounts
from admitter.engine.model import Flavor, Gpus, PodSet, Taint, Toleration, Workload
from admitter.engine.policy import PreemptionPolicy, Queue, WithinQueue
from admitter.engine.refusal import Reason, Rule
from admitter.names import GPU_MEMORY
from admitter.policy.messages import waiting_message
from admitter.quantities.amounts import to_amount
from admitter.quotas.elastic import POOL
from tests.engine.builders import admitted, engine, evicted, flavors_of, queue
from tests.engine.elastic import quota

H100, T4 = Flavor("h100", gpu_memory=80), Flavor("t4", gpu_memory=16)
GPU, SLICE = "nvidia.com/gpu", "nvidia.com/gpu-10gb"
BOTH = {GPU_MEMORY: {"h100": "160", "t4": "32"}}
LOWER = PreemptionPolicy(WithinQueue.LOWER_PRIORITY)


def pod(
    count: int = 1,
    more: Mapping[str, int] | None = None,
    *,
    name: str = "main",
    least: int | None = None,
    **requests: int,
) -> PodSet:
    """Pods that request whole GPUs (`gpu`), parts of 10 GB (`slice`), memory itself (`gb`), or others."""
    names = {"gpu": GPU, "slice": SLICE, "gb": GPU_MEMORY}
    asked = {names.get(short, short): n for short, n in (requests | dict(more or {})).items()}
    amounts = {resource: to_amount(resource, n) for resource, n in asked.items()}
    gpus = DEFAULT_GPUS.gpus(amounts)
    return PodSet(name, count, tuple(sorted(amounts.items())), min_count=least, gpus=gpus)


def submit(made: Engine, uid: str, *pod_sets: PodSet, priority: int = 0, name: str = "q") -> Workload:
    who = Workload(uid, name, priority, float(len(uid)), pod_sets)
    made.apply(Submit(who))
    return who


def used(made: Engine, name: str = "q") -> dict[tuple[str, str], int]:
    return dict(made.ledger.used(name))


def test_the_same_job_counts_80_gb_a_gpu_on_one_flavor_and_16_on_another() -> None:
    made = engine(H100, T4, queue("q", BOTH))
    submit(made, "first", pod(gpu=2))
    submit(made, "second", pod(gpu=2))
    plan = made.cycle()
    assert flavors_of(plan, "first") == {"main": {GPU_MEMORY: "h100"}}
    assert flavors_of(plan, "second") == {"main": {GPU_MEMORY: "t4"}}
    assert used(made) == {("h100", GPU_MEMORY): 160, ("t4", GPU_MEMORY): 32}


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        pytest.param({"h100": "80", "t4": "16"}, "h100", id="first one that is enough"),
        pytest.param({"h100": "79", "t4": "16"}, "t4", id="a GB short in the first"),
        pytest.param({"t4": "16", "h100": "80"}, "t4", id="in the listed order"),
        pytest.param({"t4": "15", "h100": "80"}, "h100", id="the smaller one is short"),
        pytest.param({"h100": "79", "t4": "15"}, None, id="short in both"),
    ],
)
def test_it_falls_through_flavors_by_memory(limits: dict[str, str], expected: str | None) -> None:
    made = engine(H100, T4, queue("q", {GPU_MEMORY: limits}))
    submit(made, "one", pod(gpu=1))
    plan = made.cycle()
    assert [flavors_of(plan, uid)["main"][GPU_MEMORY] for uid in admitted(plan)] == (
        [expected] if expected else []
    )


def test_parts_and_memory_itself_count_the_same_on_every_flavor() -> None:
    made = engine(H100, T4, queue("q", {GPU_MEMORY: {"t4": "60"}}))
    submit(made, "slice", pod(slice=2))
    submit(made, "memory", pod(2, gb=10))
    submit(made, "whole", pod(gpu=1))
    made.cycle()
    assert used(made) == {("t4", GPU_MEMORY): 20 + 20 + 16}


def test_an_elastic_quota_limits_the_sum_of_its_flavors() -> None:
    made = engine(H100, T4, quota("q", {GPU_MEMORY: 200}, flavors=["h100", "t4"]))
    submit(made, "1", pod(gpu=2))
    submit(made, "22", pod(gpu=2))
    submit(made, "333", pod(gpu=1))
    plan = made.cycle()
    assert [flavors_of(plan, uid)["main"][GPU_MEMORY] for uid in admitted(plan)] == ["h100", "t4"]
    assert used(made) == {(POOL, GPU_MEMORY): 160 + 32}, "and 16 more would be 208"
    made.apply(Release("22"))
    assert admitted(made.cycle()) == ["333"]
    assert used(made) == {(POOL, GPU_MEMORY): 160 + 16}


def test_a_queue_that_counts_memory_need_not_count_devices() -> None:
    made = engine(H100, queue("q", {GPU_MEMORY: {"h100": "100"}}))
    submit(made, "one", pod(gpu=1, slice=2))
    assert admitted(made.cycle()) == ["one"]
    assert used(made) == {("h100", GPU_MEMORY): 100}


@pytest.mark.parametrize(
    ("memory", "devices", "fits"),
    [("160", "2", True), ("159", "2", False), ("160", "1", False)],
    ids=["enough of both", "short of memory", "short of devices"],
)
def test_a_queue_that_counts_both_limits_both(memory: str, devices: str, *, fits: bool) -> None:
    limits = {GPU_MEMORY: {"h100": memory}, GPU: {"h100": devices}}
    made = engine(H100, queue("q", limits))
    submit(made, "two", pod(gpu=2))
    assert bool(admitted(made.cycle())) is fits
    if fits:
        assert used(made) == {("h100", GPU_MEMORY): 160, ("h100", GPU): 2}


@pytest.mark.parametrize(
    ("requests", "missing"),
    [
        pytest.param({"gpu": 1, "slice": 1}, (SLICE,), id="another device than the one it counts"),
        pytest.param({"gb": 10}, (GPU_MEMORY,), id="memory itself"),
    ],
)
def test_a_queue_that_counts_devices_alone_refuses_the_rest(
    requests: dict[str, int], missing: tuple[str, ...]
) -> None:
    made = engine(H100, queue("q", {GPU: {"h100": "9"}}))
    submit(made, "one", pod(1, requests))
    refusal = made.cycle().refusals["one"]
    assert (refusal.reason, refusal.resources) == (Reason.RESOURCE_NOT_COVERED, missing)


def test_what_is_no_gpu_is_still_refused_where_memory_is_counted() -> None:
    made = engine(H100, queue("q", {GPU_MEMORY: {"h100": "100"}}))
    submit(made, "one", pod(1, {"example.com/gpu-10gb": 1}, gpu=1))
    assert made.cycle().refusals["one"].resources == ("example.com/gpu-10gb",)


def test_several_pod_sets_add_up() -> None:
    made = engine(H100, T4, queue("q", {GPU_MEMORY: {"h100": "190", "t4": "99"}}))
    submit(made, "gang", pod(1, name="a", gpu=1), pod(2, name="b", gpu=1), pod(3, name="c", slice=1))
    plan = made.cycle()
    assert flavors_of(plan, "gang") == {
        "a": {GPU_MEMORY: "h100"},  # 80 of 190
        "b": {GPU_MEMORY: "t4"},  # 160 do not fit beside them
        "c": {GPU_MEMORY: "h100"},
    }
    assert used(made) == {("h100", GPU_MEMORY): 80 + 30, ("t4", GPU_MEMORY): 32}


def test_memory_shares_a_flavor_with_what_it_is_listed_with() -> None:
    limits = {GPU_MEMORY: {"h100": "80", "t4": "80"}, "cpu": {"h100": "1", "t4": "8"}}
    made = engine(H100, T4, queue("q", limits))
    submit(made, "one", pod(gpu=1, cpu=4))
    assert flavors_of(made.cycle(), "one") == {"main": {"cpu": "t4", GPU_MEMORY: "t4"}}
    assert used(made) == {("t4", GPU_MEMORY): 16, ("t4", "cpu"): 4000}


def test_with_fewer_pods_it_needs_less_memory_on_each_flavor() -> None:
    made = engine(H100, T4, queue("q", {GPU_MEMORY: {"h100": "79", "t4": "50"}}))
    submit(made, "some", pod(9, least=1, gpu=1))
    (_, admission), *_ = made.cycle().admissions
    assert admission.pod_sets[0].count == 3
    assert used(made) == {("t4", GPU_MEMORY): 48}


def waiting_for_a_place(made: Engine) -> None:
    """`low` holds a GPU, and goes for `high`, which has a pending reservation."""
    submit(made, "low", pod(gpu=1))
    made.cycle()
    submit(made, "high", pod(gpu=1), priority=9)
    assert evicted(made.cycle()) == {"low": "high"}
    assert list(made.ledger.pending_reservations) == ["high"]


def test_the_memory_of_a_flavor_changes_while_a_reservation_is_pending() -> None:
    made = engine(H100, queue("q", {GPU_MEMORY: {"h100": "100"}}, preemption=LOWER))
    waiting_for_a_place(made)
    made.apply(SetFlavor(replace(H100, gpu_memory=96)))
    assert not made.ledger.pending_reservations, "what was promised is not what it needs"
    made.apply(Release("low"))
    assert admitted(made.cycle()) == ["high"]
    assert used(made) == {("h100", GPU_MEMORY): 96}


def test_a_place_is_given_up_if_it_would_be_too_small_now() -> None:
    made = engine(H100, queue("q", {GPU_MEMORY: {"h100": "100"}}, preemption=LOWER))
    waiting_for_a_place(made)
    made.apply(SetFlavor(replace(H100, gpu_memory=141)))
    made.apply(Release("low"))
    plan = made.cycle()
    assert admitted(plan) == []
    assert plan.refusals["high"].reason is Reason.NEVER_FITS


def test_a_flavor_that_changes_nothing_of_its_memory_keeps_the_place() -> None:
    made = engine(H100, queue("q", {GPU_MEMORY: {"h100": "100"}}, preemption=LOWER))
    waiting_for_a_place(made)
    made.apply(SetFlavor(replace(H100, labels=(("kind", "h100"),))))
    assert list(made.ledger.pending_reservations) == ["high"]


def test_a_running_workload_keeps_what_it_was_counted_with() -> None:
    made = engine(H100, queue("q", {GPU_MEMORY: {"h100": "100"}}))
    submit(made, "old", pod(gpu=1))
    made.cycle()
    made.apply(SetFlavor(replace(H100, gpu_memory=10)))
    submit(made, "newer", pod(gpu=2))
    assert admitted(made.cycle()) == ["newer"]
    assert used(made) == {("h100", GPU_MEMORY): 80 + 20}


def test_a_pending_workload_is_tried_again_when_a_gpu_gets_smaller() -> None:
    made = engine(H100, queue("q", {GPU_MEMORY: {"h100": "40"}}))
    submit(made, "one", pod(gpu=1))
    assert made.cycle().refusals["one"].reason is Reason.NEVER_FITS
    made.apply(SetFlavor(replace(H100, gpu_memory=40)))
    assert admitted(made.cycle()) == ["one"]


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        pytest.param(
            1,
            f"asks for 80 {GPU_MEMORY} from ClusterQueue q: too much of the 160 {GPU_MEMORY} of h100 is in "
            f"use; too much of the 32 {GPU_MEMORY} of t4 is in use, where it would need 16 {GPU_MEMORY}",
            id="too much in use",
        ),
        pytest.param(
            3,
            f"asks for 240 {GPU_MEMORY}, which ClusterQueue q can never give: h100 has only 160 {GPU_MEMORY} "
            f"in all; t4 has only 32 {GPU_MEMORY} in all, where it would need 48 {GPU_MEMORY}",
            id="never",
        ),
    ],
)
def test_the_message_says_where_the_amount_is_another(count: int, expected: str) -> None:
    made = engine(H100, T4, queue("q", BOTH))
    submit(made, "1", pod(gpu=2))
    submit(made, "22", pod(gpu=2))
    submit(made, "asks", pod(gpu=count))
    assert waiting_message(made.cycle().refusals["asks"]) == expected


def test_the_message_says_nothing_more_where_the_amount_is_the_same() -> None:
    made = engine(H100, T4, queue("q", BOTH))
    submit(made, "asks", pod(slice=17))
    assert waiting_message(made.cycle().refusals["asks"]) == (
        f"asks for 170 {GPU_MEMORY}, which ClusterQueue q can never give: h100 has only 160 {GPU_MEMORY} in "
        f"all; t4 has only 32 {GPU_MEMORY} in all"
    )


def test_a_flavor_that_does_not_suit_leaves_the_other_amount_to_be_told() -> None:
    taint = Taint("only", "important", "NoSchedule")
    made = engine(replace(H100, taints=(taint,)), T4, queue("q", BOTH))
    submit(made, "asks", pod(gpu=3))
    refusal = made.cycle().refusals["asks"]
    assert [(each.flavor, each.rule, each.needed) for each in refusal.flavors] == [
        ("h100", Rule.TAINT, 0),
        ("t4", Rule.LIMIT, 48),
    ]


def test_the_explanation_asks_each_flavor_for_its_own_amount() -> None:
    made = engine(H100, T4, queue("q", BOTH))
    for time, (uid, asked) in enumerate((("1", pod(gpu=1)), ("22", pod(gpu=2)))):
        submit(made, uid, asked)
        made.cycle(time)
    submit(made, "asks", pod(2, gpu=1))
    made.cycle(2)
    explanation = made.explain("asks")
    assert explanation is not None
    assert explanation.amounts == {
        "main": (
            Amounts("h100", GPU_MEMORY, 160, 80, 0, 0, (), 160),
            Amounts("t4", GPU_MEMORY, 32, 0, 0, 0, (), 32),
        )
    }
    assert explanation.blocking == ("22",), "the newest of those that would help"


def test_the_explanation_of_an_elastic_quota_tells_its_sum_for_each_flavor() -> None:
    made = engine(H100, T4, quota("q", {GPU_MEMORY: 100}, flavors=["h100", "t4"]))
    submit(made, "1", pod(gpu=1))
    made.cycle()
    submit(made, "asks", pod(2, gpu=1))
    made.cycle()
    explanation = made.explain("asks")
    assert explanation is not None
    assert explanation.amounts["main"] == (
        Amounts("h100", GPU_MEMORY, 160, 20, 0, 0, (), 100),
        Amounts("t4", GPU_MEMORY, 32, 20, 0, 0, (), 100),
    )
    assert explanation.blocking == ("1",)


def test_pods_that_are_other_gpus_are_another_class() -> None:
    """The same requests, but what is a GPU among them was said anew between the two."""
    made = engine(H100, queue("q", {GPU_MEMORY: {"h100": "80"}}))
    plain = pod(1, {"example.com/gpu": 2})
    submit(made, "two", replace(plain, gpus=Gpus(2, 0, frozenset({"example.com/gpu"}))))
    submit(made, "parts", replace(plain, gpus=Gpus(0, 16, frozenset({"example.com/gpu"}))))
    plan = made.cycle()
    assert plan.refusals["two"].reason is Reason.NEVER_FITS
    assert admitted(plan) == ["parts"], "it does not stand behind one that it is not like"


def test_a_victim_that_frees_enough_for_the_smaller_gpu_is_enough() -> None:
    tolerant = PreemptionPolicy(WithinQueue.LOWER_PRIORITY)
    made = engine(H100, T4, queue("q", {GPU_MEMORY: {"h100": "79", "t4": "32"}}, preemption=tolerant))
    submit(made, "1", pod(gpu=1))
    submit(made, "22", pod(gpu=1))
    made.cycle()
    submit(made, "high", pod(gpu=1), priority=1)
    assert evicted(made.cycle()) == {"22": "high"}


def test_a_workload_that_tolerates_the_larger_gpu_pays_for_it() -> None:
    taint = Taint("only", "important", "NoSchedule")
    made = engine(replace(H100, taints=(taint,)), T4, queue("q", BOTH))
    tolerant = replace(pod(gpu=1), tolerations=(Toleration("only", "Exists"),))
    submit(made, "important", tolerant)
    submit(made, "plain", pod(gpu=1))
    made.cycle()
    assert used(made) == {("h100", GPU_MEMORY): 80, ("t4", GPU_MEMORY): 16}


def test_memory_can_be_borrowed() -> None:
    def lends(name: str) -> Queue:
        return queue(name, {GPU_MEMORY: {"h100": "80"}}, cohort="all")

    made = engine(H100, lends("q"), lends("other"))
    submit(made, "two", pod(gpu=2))
    submit(made, "more", pod(slice=1))
    plan = made.cycle()
    assert admitted(plan) == ["two"]
    assert "80 are its own" in waiting_message(plan.refusals["more"])
