"""Weights of namespaces follow their ResourceQuotas."""

import pytest

from admitter.cache.namespace_views import parse_resource_quota
from admitter.cache.world import World
from admitter.engine.cycle import Engine
from admitter.policy.namespace_weights import NamespaceWeights, weight

OURS, VOLCANO = "admitter.dev/namespace.weight", "volcano.sh/namespace.weight"


class Weights:
    """An engine that follows ResourceQuotas."""

    def __init__(self) -> None:
        self.world, self.engine = World(), Engine()
        self.world.resource_quotas.listen(NamespaceWeights(self.world, self.engine).quota_changed)
        self._serial = 0

    def quota(self, namespace: str, name: str, hard: dict[str, str]) -> None:
        """Make a ResourceQuota, or change it."""
        self._serial += 1
        metadata = {
            "namespace": namespace,
            "name": name,
            "uid": f"{namespace}/{name}",
            "resourceVersion": str(self._serial),
        }
        self.world.resource_quotas.apply(parse_resource_quota({"metadata": metadata, "spec": {"hard": hard}}))

    def remove(self, namespace: str, name: str) -> None:
        """Delete one."""
        self.world.resource_quotas.delete((namespace, name), f"{namespace}/{name}")

    @property
    def known(self) -> dict[str, int]:
        """What the engine knows."""
        return dict(self.engine.ledger.weights)


def test_the_highest_of_all_quotas_of_a_namespace_counts_by_either_name() -> None:
    weights = Weights()
    weights.quota("a", "one", {OURS: "2", "pods": "7"})
    weights.quota("a", "two", {VOLCANO: "6"})
    weights.quota("b", "one", {OURS: "1", VOLCANO: "3"})
    weights.quota("c", "one", {"cpu": "9"})
    assert weights.known == {"a": 6, "b": 3}


def test_weights_are_followed_live() -> None:
    weights = Weights()
    weights.quota("a", "one", {OURS: "2"})
    weights.quota("a", "two", {OURS: "6"})
    weights.remove("a", "two")
    assert weights.known == {"a": 2}
    weights.quota("a", "one", {OURS: "1.5"})
    assert weights.known == {}
    weights.quota("a", "one", {VOLCANO: "4"})
    weights.quota("a", "one", {})
    assert weights.known == {}


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
