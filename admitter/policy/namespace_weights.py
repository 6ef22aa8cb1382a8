"""The weights of namespaces that share a queue, from their ResourceQuotas (docs/namespace-fairness.md)."""

from collections.abc import Iterable
from typing import Final

from admitter.cache.namespace_views import ResourceQuotaView
from admitter.cache.world import World
from admitter.engine.commands import SetWeight
from admitter.engine.cycle import Engine
from admitter.quantities.amounts import InvalidQuantityError, parse_quantity

DEFAULT_WEIGHT: Final = 1


class NamespaceWeights:
    """Keeps the engine's weights equal to what ResourceQuotas say."""

    def __init__(self, world: World, engine: Engine) -> None:
        self._world = world
        self._engine = engine

    def quota_changed(self, old: ResourceQuotaView | None, new: ResourceQuotaView | None) -> None:
        """A ResourceQuota came, changed or went."""
        before, after = (view.weights if view is not None else () for view in (old, new))
        view = new or old
        if view is None or before == after:
            return
        keys = self._world.resource_quotas_by_namespace.get(view.namespace)
        quotas = (self._world.resource_quotas.get(key) for key in keys)
        entries = [entry for quota in quotas if quota is not None for entry in quota.weights]
        self._engine.apply(SetWeight(view.namespace, weight(entries)))


def weight(entries: Iterable[str]) -> int:
    """The highest of the weights in a namespace's ResourceQuotas, as quantities: 2000m is 2.

    What is no positive whole number counts as 1, and so does their absence.
    """
    return max(map(_weight, entries), default=DEFAULT_WEIGHT)


def _weight(entry: str) -> int:
    try:
        value = parse_quantity(entry)
    except InvalidQuantityError:
        return DEFAULT_WEIGHT
    return int(value) if value.denominator == 1 and value > 0 else DEFAULT_WEIGHT
