"""A run of faults, from an empty control plane to the report: `make test-faults`."""

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from admitter.client.transport import HttpTransport
from admitter.install.apply import install
from admitter.names import NAMESPACE, SERVICE_ACCOUNT
from admitter.sandbox.control_plane import ControlPlane
from tests.faults.administrator import Administrator
from tests.faults.api import BATCH, Api, everything_allowed
from tests.faults.chaos import Chaos
from tests.faults.crowd import Crowd
from tests.faults.follow import Auditor
from tests.faults.ledger import Ledger
from tests.faults.plan import Plan, Task
from tests.faults.pods import PodCrowd
from tests.faults.replicas import Replica, replicas
from tests.faults.scene import build
from tests.faults.tenants import OTHERS, Tenants

STANDSTILL_SECONDS: Final = 120.0
"""If no Job or pod has ended for so long, none will."""
LOOK_SECONDS: Final = 0.5


@dataclass
class Outcome:
    """What became of a run.

    Attributes:
        plan: what was planned.
        faults: how many came about, by kind.
        missed: how many found nothing to harm, by kind.
        calls: calls of controllers that failed, by how.
        counts: what the auditor counted.
        findings: the rules that were broken, in words.
        trails: what led to each.
        blind: how often and for how long, in versions, the auditor knew only the differences.
        drained: in how many seconds all came to rest after the last fault.
        starts: how often controllers were started.
        take_overs: how long no replica led after the leader was killed, in seconds.
    """

    plan: Plan
    faults: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)
    trails: list[str] = field(default_factory=list)
    blind: list[tuple[int, int]] = field(default_factory=list)
    drained: float = 0.0
    starts: int = 0
    take_overs: list[float] = field(default_factory=list)


async def play(plane: ControlPlane, folder: Path, plan: Plan, number: int) -> Outcome:
    """Play a plan on a fresh control plane.

    Args:
        plane: one with nothing installed, with an API server that is kept (`tests.faults.keeper`).
        folder: for logs; is made.
        plan: what people and faults do.
        number: of replicas.
    """
    async with await HttpTransport.connect(plane.kubeconfig, plane.context) as transport:
        await install(transport, deployment=False)
    people = await asyncio.to_thread(everything_allowed, plane, folder / "people")
    account = (NAMESPACE, SERVICE_ACCOUNT, folder / "hand")
    by_hand = await asyncio.to_thread(plane.service_account_kubeconfig, *account)
    await asyncio.to_thread((folder / "replicas").mkdir)
    ledger = Ledger()
    async with Api(people) as api, Api(by_hand) as hand, asyncio.TaskGroup() as background:
        auditor, crowd = Auditor(api, ledger, OTHERS), Crowd(api, Random(plan.seed))
        tenants = Tenants.of(api, plan) if plan.operations else None
        auditors = [auditor, *(tenants.auditors if tenants is not None else ())]
        running = [background.create_task(each.run()) for each in auditors]
        for each in auditors:
            await each.synced()
        await build(api)
        if tenants is not None:
            await tenants.build()
        running.append(background.create_task(crowd.run()))
        async with replicas(plane, folder / "replicas", number, plan.seed, direct=plan.direct) as controllers:
            chaos = Chaos(plane, controllers, Administrator(api, hand, ledger))
            ledger.server_starts = chaos.server_starts
            if tenants is not None:
                tenants.watcher.server_starts = chaos.server_starts
            outcome = await _course(plan, crowd, (auditor, ledger), chaos, tenants)
        for task in running:
            task.cancel()
    return outcome


async def _course(
    plan: Plan, crowd: Crowd, judging: tuple[Auditor, Ledger], chaos: Chaos, tenants: Tenants | None
) -> Outcome:
    """Everything that is planned, and how it comes to rest."""
    outcome, (auditor, ledger) = Outcome(plan), judging
    acting = [crowd.create(plan.tasks), chaos.run(plan.faults), _burst(plan, crowd, ledger)]
    makers = tenants.pods if tenants is not None else None
    async with asyncio.TaskGroup() as group:
        making = group.create_task(makers.run()) if makers is not None else None
        await asyncio.gather(*acting, *([tenants.run()] if tenants is not None else []))
        if makers is not None:
            makers.calm()
        began = time.monotonic()
        await _at_rest(crowd.api, auditor, ledger, makers)
        if making is not None:
            making.cancel()
    outcome.drained = time.monotonic() - began
    ledger.close()
    outcome.faults, outcome.missed = chaos.done, chaos.missed
    outcome.calls = sum((_failed(replica) for replica in chaos.replicas), Counter())
    outcome.counts, outcome.findings, outcome.trails = ledger.counts, ledger.findings, ledger.trails
    outcome.counts["created"] = crowd.created
    if tenants is not None:
        await _told(tenants, outcome)
    outcome.blind = auditor.timeline.blind
    outcome.take_overs = chaos.take_overs
    outcome.starts = sum(replica.starts for replica in chaos.replicas)
    return outcome


async def _told(tenants: Tenants, outcome: Outcome) -> None:
    """What became of tenants."""
    for words, trail in await tenants.close():
        outcome.findings.append(f"tenants: {words}")
        outcome.trails.append(f"{words}\n{trail}")
    outcome.counts["operations of tenants"] = tenants.crowd.done
    outcome.counts.update(tenants.pods.counts)
    outcome.counts["pods of tenants bound"] = tenants.watcher.counts["pods bound"]
    outcome.counts["queued pods bound"] = tenants.watcher.counts["queued pods bound"]
    outcome.counts.update(tenants.starts.counts)
    outcome.counts["use of tenants checked"] = tenants.watcher.counts["checked"]


async def _at_rest(api: Api, auditor: Auditor, ledger: Ledger, makers: PodCrowd | None) -> None:
    """Wait until all is over and the auditor has checked it, or until nothing ends any more."""
    least, moved = -1, time.monotonic()
    while True:
        listed = await api.get(f"{BATCH}/jobs", limit="1")
        await auditor.catch_up(int(listed["metadata"]["resourceVersion"]))
        left = len(ledger.unfinished()) + (makers.left if makers is not None else 0)
        if left < least or least < 0:
            least, moved = left, time.monotonic()
        if (not left and ledger.idle) or time.monotonic() > moved + STANDSTILL_SECONDS:
            return
        await asyncio.sleep(LOOK_SECONDS)


async def _burst(plan: Plan, crowd: Crowd, ledger: Ledger) -> None:
    """Many Jobs are created at once, and then deleted at once."""
    await asyncio.sleep(plan.burst_at)
    ledger.expected_gone.add("burst")
    await crowd.create(
        Task(0.0, "burst", f"burst-{number:05}", 1, 1, 600.0, "low", real=False)
        for number in range(plan.burst)
    )
    await crowd.api.delete(f"{BATCH}/namespaces/burst/jobs")


def _failed(replica: Replica) -> Counter[str]:
    fates = Counter(seen.fate for seen in (replica.proxy.seen if replica.proxy is not None else ()))
    del fates["passed"]
    return fates
