"""Quantities are exact."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admitter.quantities.amounts import InvalidQuantityError, display, parse_quantity, to_amount, to_quantity
from tests.shown_amounts import SHOWN_BYTES

SCALES = {
    **{suffix: 1000**power for power, suffix in enumerate(["", "k", "M", "G", "T", "P"])},
    **{suffix: 1024**power for power, suffix in enumerate(["Ki", "Mi", "Gi", "Ti", "Pi"], start=1)},
}


@pytest.mark.parametrize(
    ("resource", "quantity", "amount"),
    [
        ("cpu", "9", 9000),
        ("cpu", "500m", 500),
        ("cpu", "0.1", 100),
        ("cpu", "1u", 1),
        ("cpu", 2, 2000),
        ("memory", "36Gi", 36 * 2**30),
        ("memory", "1500M", 1_500_000_000),
        ("memory", "0.5", 1),
        ("memory", "1e3", 1000),
        ("memory", "1E3", 1000),
        ("memory", "1E", 10**18),
        ("memory", "7Ei", 7 * 2**60),
        ("nvidia.com/gpu", "+8", 8),
        ("nvidia.com/gpu", "0", 0),
    ],
)
def test_amount_of_a_quantity(resource: str, quantity: str | int, amount: int) -> None:
    assert to_amount(resource, quantity) == amount


@pytest.mark.parametrize(
    ("quantity", "complaint"),
    [
        ("", "empty"),
        ("-1", "'-1' is negative"),
        (-1, "'-1' is negative"),
        ("1e400", "larger than 2"),
        ("9Ei", "larger than 2"),
        ("1 Gi", "is not a quantity"),
        ("1gi", "is not a quantity"),
        ("NaN", "is not a quantity"),
        ("1e99999999", "is not a quantity"),
        ("٣", "is not a quantity"),
        ("1\n", "is not a quantity"),
        ("9" * 100, r"'9{37}\.\.\.' is not a quantity"),
    ],
)
def test_what_is_no_quantity_is_refused_in_words(quantity: str | int, complaint: str) -> None:
    with pytest.raises(InvalidQuantityError, match=complaint):
        parse_quantity(quantity)


@given(
    number=st.decimals(min_value=0, max_value=1000, places=6, allow_nan=False),
    suffix=st.sampled_from(sorted(SCALES)),
)
def test_parsing_is_exact(number: Decimal, suffix: str) -> None:
    assert parse_quantity(f"{number:f}{suffix}") == Decimal(f"{number:f}") * SCALES[suffix]


@given(
    st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]),
    st.integers(0, 2**60) | st.integers(0, 10**6).flatmap(lambda n: st.sampled_from([n * 10**9, n * 2**30])),
)
def test_an_amount_written_and_read_is_the_same(resource: str, amount: int) -> None:
    assert to_amount(resource, to_quantity(resource, amount)) == amount


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.sampled_from(["n", "u", "m", "", "k"]))
def test_more_is_never_counted_as_less(one: int, more: int, suffix: str) -> None:
    assert to_amount("memory", f"{one}{suffix}") <= to_amount("memory", f"{one + more}{suffix}")
    assert parse_quantity(f"{one}{suffix}") <= to_amount("memory", f"{one}{suffix}")


def test_counts_are_written_as_counts() -> None:
    assert to_quantity("nvidia.com/gpu", 1024) == "1024"
    assert to_quantity("memory", 3 * 2**30) == "3Gi"
    assert to_quantity("nvidia.com/gpu", 1000) == "1000"
    assert to_quantity("cpu", 1500) == "1500m"
    assert to_quantity("cpu", 10**9) == "1000000"


@pytest.mark.parametrize(
    "quantity", ["40G", "1500M", "1T", "3E", "40Gi", "1536Mi", "2Ti", "40000000001", "0", "1000Gi", "7680M"]
)
def test_memory_is_written_as_users_write_it(quantity: str) -> None:
    assert to_quantity("memory", to_amount("memory", quantity)) == quantity


def test_of_two_texts_as_short_the_binary_one_counts() -> None:
    assert 984375 * 2**20 == 1032192 * 10**6
    assert to_quantity("memory", 984375 * 2**20) == "984375Mi"


@pytest.mark.parametrize(
    ("resource", "amount", "shown"),
    [
        *SHOWN_BYTES,
        ("cpu", 1500, "1500m"),
        ("nvidia.com/gpu", 1024, "1024"),
        ("nvidia.com/gpu-memory", 2**30, "1Gi"),
    ],
)
def test_bytes_are_shown_in_gi(resource: str, amount: int, shown: str) -> None:
    assert display(resource, amount) == shown
