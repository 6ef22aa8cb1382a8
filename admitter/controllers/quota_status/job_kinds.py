"""Whether JobKinds work, as their condition `Active` says it: what their informers found, and their policies.

Policies are no objects of Admitter's, and older servers lack their kind, so they are asked for now and then.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import structlog

from admitter.api.conditions import ActiveReason
from admitter.cache.declared_kinds import described_by
from admitter.cache.job_resources import JOB
from admitter.cache.world import World
from admitter.client.errors import ClusterError, NotFoundError
from admitter.client.policies import GROUP, MUTATING, mutating_version
from admitter.client.signal import Signal
from admitter.client.transport import Transport
from admitter.following.kind_informers import KindInformers
from admitter.names import KIND_POLICY
from admitter.policy.defects import Defect

LOOK_SECONDS: Final = 30.0
MISSING_SECONDS: Final = 5.0
"""So soon it is looked again for policies that were missing: they are applied after their JobKind."""

log = structlog.get_logger(__name__)


@dataclass(eq=False)
class JobKindConditions:
    """Looks whether the policies of JobKinds that work are there."""

    world: World
    kinds: KindInformers
    transport: Transport
    found: dict[str, Defect | None] = field(default_factory=dict)  # by name, of those that were looked at

    def __post_init__(self) -> None:
        self.changed: Signal[[str]] = Signal()  # what is wrong with a JobKind of this name
        self._again = asyncio.Event()
        self.kinds.judged.listen(self._again.set)

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            self._again.clear()
            await self._look()
            lacking = any(each and each[0] is ActiveReason.NO_POLICY for each in self.found.values())
            with suppress(TimeoutError):
                async with asyncio.timeout(MISSING_SECONDS if lacking else LOOK_SECONDS):
                    await self._again.wait()

    async def _look(self) -> None:
        for name, known in list(self.kinds.problems.items()):
            problem = known if known is not None else await self._without_policy(name)
            if name not in self.found or self.found[name] != problem:
                self.found[name] = problem
                self.changed(name)
        for name in self.found.keys() - self.kinds.problems.keys():
            del self.found[name]

    async def _without_policy(self, name: str) -> Defect | None:
        """That the policy that stops its objects is not there; that of Jobs is no part of any JobKind."""
        view = self.world.job_kinds.get(("", name))
        if view is None or described_by(view) == (JOB.group, JOB.kind):
            return None
        try:
            version = await mutating_version(self.transport)
            if version is not None:
                plural = MUTATING["MutatingAdmissionPolicy"]
                await self.transport.get(f"/apis/{GROUP}/{version}/{plural}/{KIND_POLICY}{name}")
        except NotFoundError:
            words = f"its policies are missing: run admitter install --only-kinds --kinds {name}"
            return ActiveReason.NO_POLICY, words
        except ClusterError as error:
            log.warning("policies of a kind not looked at", kind=name, error=str(error))
            return ActiveReason.NO_POLICY, f"it is not known whether its policies are there: {error}"
        return None
