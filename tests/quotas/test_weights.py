"""The weights of namespaces (docs/namespace-fairness.md)."""

import pytest

from admitter.quotas.weights import weight


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        pytest.param([], 1, id="none"),
        pytest.param(["3"], 3, id="one"),
        pytest.param(["2", "6", "3"], 6, id="the highest of several"),
        pytest.param(["2000m"], 2, id="a whole number in thousandths"),
        pytest.param(["1k"], 1000, id="with a suffix"),
        pytest.param(["1.5"], 1, id="a part"),
        pytest.param(["0"], 1, id="none at all"),
        pytest.param(["-4"], 1, id="negative"),
        pytest.param(["much"], 1, id="a word"),
        pytest.param([""], 1, id="nothing"),
        pytest.param(["much", "2", "0"], 2, id="what is invalid takes nothing from the others"),
    ],
)
def test_weight(entries: list[str], expected: int) -> None:
    assert weight(entries) == expected
