"""Weights of namespaces follow their ResourceQuotas."""

from admitter.cache.namespace_views import parse_resource_quota
from admitter.cache.world import World
from admitter.engine.cycle import Engine
from admitter.policy.namespace_weights import NamespaceWeights

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
