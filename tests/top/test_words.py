"""Amounts, ages and bars."""

import pytest

from admitter.insight.overview import OverviewUse
from admitter.top.words import age, amount, bar, place

GI = 2**30


@pytest.mark.parametrize(
    ("resource", "value", "expected"),
    [
        ("cpu", 0, "0"),
        ("cpu", 3, "3m"),
        ("cpu", 500, "0.5"),
        ("cpu", 1_500, "1.5"),
        ("cpu", 36_000, "36"),
        ("cpu", 12_345_678, "12.3k"),
        ("nvidia.com/gpu", 8, "8"),
        ("nvidia.com/gpu", 1_234_567, "1.23M"),
        ("memory", 1000 * GI, "1000Gi"),
        ("memory", 1023 * GI + 1, "1023Gi"),
        ("memory", 10_000 * GI, "9.77Ti"),
        ("memory", 3 * GI // 2, "1.5Gi"),
        ("memory", GI // 16, "64Mi"),
        ("memory", 123_456_789_012, "115Gi"),
        ("hugepages-2Mi", 3 * 2**21 + 1, "6Mi"),
        ("memory", 2**63 - 1, "8Ei"),
    ],
)
def test_an_amount_has_six_characters(resource: str, value: int, expected: str) -> None:
    assert amount(resource, value) == expected
    assert len(expected) <= 6


@pytest.mark.parametrize("value", [10**power + more for power in range(19) for more in (-1, 0, 1)])
@pytest.mark.parametrize("resource", ["cpu", "memory", "things"])
def test_no_amount_is_longer(resource: str, value: int) -> None:
    assert len(amount(resource, value)) <= 6


def test_an_age_is_told_in_its_largest_unit() -> None:
    assert [age(each) for each in (-3, 0, 119, 120, 7_199, 7_200, 172_799, 172_800)] == [
        *("0s", "0s", "119s", "2m", "119m", "2h", "47h", "2d"),
    ]


def gpus(used: int, minimum: int, maximum: int | None = None, borrowed: int = 0) -> OverviewUse:
    return OverviewUse("a100", "gpu", used, minimum, maximum, borrowed, 0)


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        (gpus(12, 8, 16, borrowed=4), "████│▒▒··]"),
        (gpus(0, 8, 16), "····│····]"),
        (gpus(4, 8), "████····│ "),
        (gpus(12, 8, borrowed=4), "█████│▒▒▒ "),
        (gpus(4, 0, 8, borrowed=4), "▒▒▒▒····] "),
        (gpus(8, 8, 8), "████████│]"),
        (gpus(9, 6, 8, borrowed=3), "█████│▒▒]▒"),
        (gpus(1, 1_000), "█·······│ "),
        (gpus(999, 1_000), "███████·│ "),
        (gpus(0, 0), "          "),
        (gpus(3, 0, borrowed=3), "▒▒▒▒▒▒▒▒  "),
    ],
    ids=[
        *("borrows", "nothing in use", "no max", "borrows without a max", "nothing of its own"),
        *("full", "over a max that was lowered", "a little", "nearly all", "nothing", "no limits"),
    ],
)
def test_a_bar_reads_without_colour(use: OverviewUse, expected: str) -> None:
    assert bar(use, 10) == expected


def test_a_pool_is_of_any_flavor() -> None:
    assert place(("a100", "nvidia.com/gpu")) == "nvidia.com/gpu in a100"
    assert place(("elastic_quota", "cpu")) == "cpu in any flavor"
