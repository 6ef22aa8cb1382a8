"""What is shown of quota and decisions, in which unit, and under which name."""

from dataclasses import replace

from prometheus_client.metrics_core import Metric

from admitter.controllers.telemetry.metrics import WAIT_BUCKETS, Metrics, StateMetrics
from admitter.engine.commands import Define, Reserve, SetFlavor, Submit, Withdraw
from admitter.engine.cycle import Engine
from admitter.engine.model import Admission, Assignment, Flavor, PodSet, Workload
from admitter.engine.policy import EvictionLimit, Group, PreemptionPolicy, Queue, Quota, Reclaim, Strategy
from benchmarks.scrape import counting, filled
from tests.metrics import against_conventions, documented, families, labels, shown


def queue(name: str, minimum: int, maximum: int | None = None) -> Queue:
    quotas = {
        ("spot", "cpu"): Quota(minimum * 1000, maximum and maximum * 1000),
        ("spot", "memory"): Quota(2**30),
    }
    return Queue(name, Strategy.BEST_EFFORT_FIFO, (Group(("cpu", "memory"), ("spot",)),), quotas, "all")


def value(metrics: Metrics, name: str, **wanted: str) -> float | None:
    """The one value of a series, or None if there is none."""
    return metrics.registry.get_sample_value(name, wanted)


async def seen(engine: Engine) -> Metrics:
    metrics = Metrics()
    metrics.state = StateMetrics(engine, counting(engine), lambda: ())
    await metrics.page()
    return metrics


async def test_quota_is_shown_in_cores_and_bytes_with_what_is_borrowed_and_free() -> None:
    engine = Engine()
    engine.apply(SetFlavor(Flavor("spot")))
    engine.apply(Define((queue("a", 2, 5), queue("b", 4))))
    flavors = (("cpu", "spot"), ("memory", "spot"))
    used = Assignment("main", 1, flavors, (("cpu", 3500), ("memory", 2**20)))
    engine.apply(Reserve("runs", Admission("a", (used,))))
    metrics = await seen(engine)
    a = {"cluster_queue": "a", "kind": "ClusterQueue", "flavor": "spot"}
    found = {
        name: value(metrics, f"admitter_quota_{name}", **a, resource="cpu")
        for name in ("used", "borrowed", "free", "min", "max")
    }
    assert found == {"used": 3.5, "borrowed": 1.5, "free": 1.5, "min": 2, "max": 5}
    assert value(metrics, "admitter_quota_used", **a, resource="memory") == 2**20
    assert value(metrics, "admitter_quota_max", **a, resource="memory") is None
    assert value(metrics, "admitter_quota_free", **(a | {"cluster_queue": "b"}), resource="cpu") == 2.5


async def test_what_a_queue_that_waits_keeps_from_others_is_shown() -> None:
    """b owns the 4 that it asks for; a borrows 1 of them."""
    engine = Engine()
    engine.apply(SetFlavor(Flavor("spot")))
    engine.apply(Define((queue("a", 2, 5), queue("b", 4))))
    engine.apply(
        Reserve("runs", Admission("a", (Assignment("main", 1, (("cpu", "spot"),), (("cpu", 3000),)),)))
    )
    engine.apply(Submit(Workload("waits", "b", 0, 0, (PodSet("main", 1, (("cpu", 4000),)),))))
    engine.cycle()
    metrics = await seen(engine)
    b = {"cluster_queue": "b", "kind": "ClusterQueue", "flavor": "spot"}
    assert value(metrics, "admitter_quota_claimed", **b, resource="cpu") == 4
    assert value(metrics, "admitter_quota_claimed", **b, resource="memory") == 0
    engine.apply(Withdraw("waits"))
    engine.cycle()
    metrics = await seen(engine)
    assert value(metrics, "admitter_quota_claimed", **b, resource="cpu") == 0


async def test_what_waits_for_limits_on_evictions_is_counted() -> None:
    engine = Engine()
    engine.apply(SetFlavor(Flavor("spot")))
    owner = replace(queue("a", 4), preemption=PreemptionPolicy(reclaim=Reclaim.ANY))
    engine.apply(Define((owner, replace(queue("b", 0), max_evictions=EvictionLimit(0, 60)))))
    used = (Assignment("main", 1, (("cpu", "spot"),), (("cpu", 4000),)),)
    lent = Workload("lent", "b", 0, 0, (PodSet("main", 1, (("cpu", 4000),)),))
    engine.apply(Reserve("lent", Admission("b", used), lent))
    for uid in ("one", "two"):
        engine.apply(Submit(Workload(uid, "a", 0, 0, (PodSet("main", 1, (("cpu", 1000),)),))))
    engine.cycle()
    metrics = await seen(engine)
    counts = {
        name: value(metrics, "admitter_eviction_limited_workloads", cluster_queue=name, kind="ClusterQueue")
        for name in "ab"
    }
    assert counts == {"a": 2, "b": 0}


async def test_what_an_elastic_quota_uses_is_shown_as_its_kind() -> None:
    engine = Engine()
    pool = "elastic_quota"
    engine.apply(
        Define(
            (Queue("eq_team_gpus", Strategy.BEST_EFFORT_FIFO, (), {(pool, "cpu"): Quota(1000)}, pool=pool),)
        )
    )
    engine.apply(
        Reserve(
            "runs", Admission("eq_team_gpus", (Assignment("m", 1, (("cpu", pool),), (("cpu", 500),)),), pool)
        )
    )
    metrics = await seen(engine)
    where = {"cluster_queue": "eq_team_gpus", "kind": "ElasticQuota", "flavor": pool, "resource": "cpu"}
    assert value(metrics, "admitter_quota_used", **where) == 0.5


async def test_series_of_a_queue_that_is_gone_are_gone_too() -> None:
    engine = Engine()
    engine.apply(SetFlavor(Flavor("spot")))
    engine.apply(Define((queue("a", 1), queue("b", 1))))
    metrics = await seen(engine)
    for name in ("a", "b"):
        metrics.admitted(name, 1.0)
        metrics.evicted(name, "Preempted")
        metrics.finished(name, "JobSucceeded")
    metrics.finished("", "JobFailed")
    engine.apply(Define(gone=("a",)))
    page = (await metrics.page()).decode()
    assert 'cluster_queue="a"' not in page
    assert (
        value(metrics, "admitter_evictions_total", cluster_queue="b", kind="ClusterQueue", reason="Preempted")
        == 1
    )
    assert (
        value(metrics, "admitter_finished_workloads_total", cluster_queue="", kind="", reason="JobFailed")
        == 1
    )


def test_a_wait_counts_in_all_buckets_that_are_long_enough() -> None:
    metrics = Metrics()
    metrics.admitted("a", 100.0)
    where = {"cluster_queue": "a", "kind": "ClusterQueue"}
    counts = [
        value(metrics, "admitter_admission_wait_seconds_bucket", **where, le=f"{float(bucket)}")
        for bucket in WAIT_BUCKETS
    ]
    assert counts == [float(bucket >= 100) for bucket in WAIT_BUCKETS]
    assert WAIT_BUCKETS[-1] == 24 * 3600


def test_each_process_has_metrics_of_its_own() -> None:
    one, other = Metrics(), Metrics()
    one.admitted("a", 0.0)
    one.leads("admitter-controller", holds=True)
    assert value(one, "admitter_leader", lease="admitter-controller") == 1
    assert value(other, "admitter_leader", lease="admitter-controller") is None
    one.leads("admitter-controller", holds=False)
    assert value(one, "admitter_leader", lease="admitter-controller") == 0


async def full_page() -> dict[str, Metric]:
    metrics, state = filled(3)
    metrics.state = state
    return families((await metrics.page()).decode())


async def test_names_units_and_texts_follow_the_conventions() -> None:
    found = await full_page()
    assert list(against_conventions(found.values())) == []


async def test_all_that_is_shown_is_documented_with_its_type_and_labels() -> None:
    found, written = await full_page(), documented()
    assert {name: family.type for name, family in found.items()} == {n: d.kind for n, d in written.items()}
    for name, family in found.items():
        if family.samples:
            assert labels(family) == written[name].labels, name


def test_what_breaks_a_convention_is_found() -> None:
    wrong = [Metric("admitter_waitMillis", "", "gauge"), Metric("admitter_x_total", "Some.", "gauge")]
    wrong += [
        Metric("admitter_wait", "How long.", "histogram"),
        Metric("admitter_size_megabytes", "Size.", "gauge"),
    ]
    assert [shown(each) for each in wrong] == [line.partition(":")[0] for line in against_conventions(wrong)][
        1:
    ]
