"""In which flavor a workload is evicted, if none of them is free (docs/design/preemption.md)."""

from dataclasses import replace

import pytest

from admitter.engine.commands import Reserve, Submit
from admitter.engine.cycle import Engine
from admitter.engine.policy import PreemptionPolicy, Reclaim, VictimTerms, WithinQueue
from tests.engine.builders import engine, evicted, flavor, pods, queue, use, workload
from tests.engine.preempting import LOWER

BOTH = (flavor("on-demand"), flavor("spot"))


def full(preemption: PreemptionPolicy = LOWER, runtime: float = 0) -> Engine:
    """Alpha uses 6 of its 10 on demand and 5 of its 10 spot; beta borrows the other 5 spot."""
    alpha = queue("alpha", {"cpu": {"on-demand": "10", "spot": "10"}}, cohort="c", preemption=preemption)
    alpha = replace(alpha, victim_terms=VictimTerms(runtime=runtime))
    made = engine(*BOTH, alpha, queue("beta", {"cpu": {"on-demand": "0", "spot": "0"}}, cohort="c"))
    for uid, name, kind, cpu in (
        ("demand", "alpha", "on-demand", "6"),
        ("spot", "alpha", "spot", "5"),
        ("other", "beta", "spot", "5"),
    ):
        made.apply(Reserve(uid, use(name, kind, cpu=cpu), workload(uid, pods(cpu=cpu), queue=name)))
    return made


def asks(made: Engine, priority: int = 1) -> dict[str, str]:
    """The victims for one of alpha that asks for 5."""
    made.apply(Submit(workload("high", pods(cpu="5"), queue="alpha", priority=priority, created=9)))
    return evicted(made.cycle(9))


def test_the_earlier_flavor_is_preempted_in_if_it_is_enough_that_one_of_the_own_goes() -> None:
    """With its victim still in, it would borrow on demand: 11 of 10; once that is out, it does not."""
    assert asks(full()) == {"demand": "high"}


BOTH_RULES = PreemptionPolicy(WithinQueue.LOWER_PRIORITY, Reclaim.ANY)


@pytest.mark.parametrize(
    ("preemption", "terms", "priority"),
    [
        pytest.param(PreemptionPolicy(reclaim=Reclaim.ANY), 0, 1, id="none of the own may be evicted"),
        pytest.param(BOTH_RULES, 0, 0, id="none of the own has a lower priority"),
        pytest.param(BOTH_RULES, 60, 1, id="none of the own has run for long enough"),
    ],
)
def test_what_is_taken_back_comes_before_an_earlier_flavor_that_would_be_borrowed(
    preemption: PreemptionPolicy, terms: float, priority: int
) -> None:
    assert asks(full(preemption, terms), priority) == {"other": "high"}


def test_what_can_be_taken_back_in_a_later_flavor_does_not_come_before_an_earlier_one() -> None:
    assert asks(full(BOTH_RULES)) == {"demand": "high"}


def test_the_later_flavor_is_preempted_in_if_the_earlier_one_would_still_be_borrowed() -> None:
    made = engine(
        *BOTH,
        queue("alpha", {"cpu": {"on-demand": "2", "spot": "10"}}, cohort="c", preemption=LOWER),
        queue("beta", {"cpu": {"on-demand": "4", "spot": "0"}}, cohort="c"),
    )
    for kind, cpu in (("on-demand", "6"), ("spot", "10")):
        made.apply(Reserve(kind, use("alpha", kind, cpu=cpu), workload(kind, pods(cpu=cpu), queue="alpha")))
    assert asks(made) == {"spot": "high"}
