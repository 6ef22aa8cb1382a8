"""The weights of namespaces, followed live: from their ResourceQuotas to the engine."""

from admitter.cache.namespace_views import ResourceQuotaView
from admitter.cache.world import World
from admitter.engine.commands import SetWeight
from admitter.engine.cycle import Engine
from admitter.quotas.weights import weight


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
