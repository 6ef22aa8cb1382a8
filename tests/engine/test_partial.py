"""With how many pods a workload starts that can do with fewer: by arithmetic, whatever their number."""

from collections import Counter
from fractions import Fraction
from itertools import pairwise
from math import lcm

from hypothesis import example, given
from hypothesis import strategies as st

from admitter.engine.commands import Submit
from admitter.engine.flavors.partial_admission import largest_that_fits, left_out
from admitter.engine.model import Workload
from tests.engine.builders import admitted, engine, flavor, pods, queue, workload

MOST = 2**31 - 1


def listed(spare: list[int]) -> list[int]:
    """The pod set of each pod that can be left out, first to be left out first: written down one by one."""
    common = lcm(*(count for count in spare if count))
    places = [
        ((2 * pod + 1) * (common // count), number)
        for number, count in enumerate(spare)
        for pod in range(count)
    ]
    return [number for _, number in sorted(places)]


@given(st.lists(st.integers(0, 30), min_size=1, max_size=6))
@example([1, 3, 3, 9])
@example([2, 2, 2])
@example([0, 5])
def test_the_candidates_left_out_are_as_if_all_were_listed(spare: list[int]) -> None:
    order = listed(spare)
    for total in range(len(order) + 1):
        expected = Counter(order[:total])
        assert left_out(spare, total) == [expected[number] for number in range(len(spare))]


@given(st.lists(st.integers(0, MOST), min_size=1, max_size=8), st.fractions(0, 1))
def test_large_numbers_are_spread_as_evenly_as_small_ones(spare: list[int], part: Fraction) -> None:
    total = int(sum(spare) * part)
    less = left_out(spare, total)
    assert sum(less) == total
    for count, fewer in zip(spare, less, strict=True):
        assert abs(fewer * sum(spare) - count * total) <= len(spare) * sum(spare)


def test_one_more_is_left_out_at_a_time() -> None:
    spare = [7, 3, 11]
    ways = [left_out(spare, total) for total in range(sum(spare) + 1)]
    for before, after in pairwise(ways):
        assert sorted(b - a for a, b in zip(before, after, strict=True)) == [0, 0, 1]


def test_a_few_attempts_find_the_largest_form_of_two_thousand_million_pods() -> None:
    attempts: list[int] = []

    def attempt(form: Workload) -> int | None:
        count = form.pod_sets[0].count
        attempts.append(count)
        return count if count <= 4 else None

    assert largest_that_fits(workload("w", pods(MOST, cpu="1", min_count=1)), attempt) == 4
    assert len(attempts) <= 32


def test_a_workload_of_two_thousand_million_pods_starts_with_what_fits() -> None:
    made = engine(flavor("default"), queue("q", {"cpu": {"default": "4"}}))
    made.apply(Submit(workload("w", pods(MOST, cpu="1", min_count=1))))
    plan = made.cycle()
    assert admitted(plan) == ["w"]
    assert plan.admissions[0][1].pod_sets[0].count == 4
