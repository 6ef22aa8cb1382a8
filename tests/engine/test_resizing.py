"""A holder uses more or less where it is: what is freed is used, and nothing else about it changes."""

from admitter.engine.commands import Reserve, Submit
from admitter.engine.cycle import Engine
from admitter.engine.policy import PreemptionPolicy, VictimTerms, WithinQueue
from tests.engine.builders import admitted, engine, evicted, flavor, pods, queue, use, workload

LOW = workload("low", pods(4, cpu="1"))


def of(cpu: int, since: float = 1.0) -> Reserve:
    """What the Workload `low` holds."""
    return Reserve("low", use("q", "any", cpu=str(cpu)), LOW, since)


def full(**more: PreemptionPolicy | VictimTerms) -> Engine:
    """A queue of 4 CPUs, all of which `low` holds."""
    policy = more.get("preemption", PreemptionPolicy())
    assert isinstance(policy, PreemptionPolicy)
    made = engine(flavor("any"), queue("q", {"cpu": {"any": "4"}}, preemption=policy))
    made.apply(of(4))
    return made


def test_what_becomes_free_is_used_in_the_next_cycle() -> None:
    made = full()
    made.apply(Submit(workload("next", pods(2, cpu="1"), created=2.0)))
    assert admitted(made.cycle(2.0)) == []
    made.apply(of(3))
    assert admitted(made.cycle(3.0)) == [], "two are asked for"
    made.apply(of(2))
    assert admitted(made.cycle(4.0)) == ["next"]


def test_what_is_needed_again_counts_beyond_the_quota_and_nothing_else_is_admitted() -> None:
    made = full()
    made.apply(of(2))
    made.apply(Submit(workload("next", pods(2, cpu="1"), created=2.0)))
    assert admitted(made.cycle(2.0)) == ["next"]
    made.apply(of(4))
    assert dict(made.ledger.used("q")) == {("any", "cpu"): 6000}
    made.apply(Submit(workload("third", pods(1, cpu="1"), created=3.0)))
    assert admitted(made.cycle(3.0)) == []
    made.apply(of(1))
    assert admitted(made.cycle(4.0)) == ["third"]


def test_a_victim_stays_one_and_its_eviction_is_pending_still() -> None:
    made = full(preemption=PreemptionPolicy(WithinQueue.LOWER_PRIORITY))
    made.apply(Submit(workload("high", pods(3, cpu="1"), priority=1, created=2.0)))
    assert evicted(made.cycle(2.0)) == {"low": "high"}
    made.ledger.mark_eviction_pending("low")
    made.apply(of(2))
    assert made.ledger.preemptor("low") == "high"
    assert made.ledger.is_eviction_pending("low")
    assert admitted(made.cycle(3.0)) == [], "it needs three"
    made.apply(of(1))
    assert admitted(made.cycle(4.0)) == ["high"]


def test_with_another_time_it_is_another_admission() -> None:
    made = full()
    made.apply(of(2, since=5.0))
    held = made.ledger.held("low")
    assert held is not None
    assert (held.since, dict(made.ledger.used("q"))) == (5.0, {("any", "cpu"): 2000})
