"""The queues of namespaces that bring their own quota, in a simulation."""

from collections.abc import Iterator
from typing import Any

from admitter.cache.world import World
from admitter.names import GENERATED_LABEL
from admitter.policy.defects import Defect
from admitter.policy.generated import KINDS
from admitter.policy.plans import NamespacePlan, plan
from admitter.simulate.manifests import Invalid

Json = dict[str, Any]


class SimulatedGenerator:
    """Says which objects to create and delete; the simulation does so at once."""

    def __init__(self, world: World) -> None:
        """Defects that the world has already are not reported."""
        self._world = world
        self._defects = self._wrong()

    def due(self) -> Iterator[tuple[Json, bool]]:
        """Manifests to apply, each with whether its object is deleted."""
        for _, made in self._plans():
            for wanted in made.put:
                yield wanted.manifest(), False
            for plural, view in made.delete:
                yield (
                    {"kind": KINDS[plural], "metadata": {"namespace": view.namespace, "name": view.name}},
                    True,
                )

    def defects(self) -> Iterator[Invalid]:
        """New defects of the annotations of namespaces."""
        before, self._defects = self._defects, self._wrong()
        for namespace, defect in self._defects.items():
            if before.get(namespace) != defect:
                yield Invalid(f"Namespace {namespace}", defect[1])

    def _wrong(self) -> dict[str, Defect]:
        return {name: made.defect for name, made in self._plans() if made.defect is not None}

    def _plans(self) -> list[tuple[str, NamespacePlan]]:
        asking = {view.name for view in self._world.namespaces if view.annotations}
        made = {view.labels.get(GENERATED_LABEL) for view in self._world.cluster_queues}
        return [(name, plan(self._world, name)) for name in sorted(asking.union(filter(None, made)))]
