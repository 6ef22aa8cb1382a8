"""What has to be true of every scenario, each rule with arithmetic of its own."""

# ruff: noqa: ARG002  # each method takes what all checks are told, and some need less

from collections.abc import Hashable, Iterator
from dataclasses import replace
from typing import Final

from admitter.engine.cycle import Engine
from admitter.engine.model import Admission, FlavorResource, Workload
from admitter.engine.policy import BorrowWithin, Reclaim, Strategy, WithinQueue
from admitter.engine.refusal import Reason
from admitter.engine.tree_cycle import PlannedEviction
from tests.engine.scenarios import cases, claims
from tests.engine.scenarios.arithmetic import Quotas, uncovered, ways
from tests.engine.scenarios.driver import Check, Play, reread
from tests.engine.scenarios.growing import real
from tests.engine.scenarios.world import add

SELDOM: Final = 4
BOOKS: Final = ("real", "planned")


class Quota(Check):
    """No admission passes a limit, or adds to what passes it; neither does what is promised."""

    rule = "quota"

    def admitted(self, play: Play, workload: Workload, admission: Admission) -> None:
        use = real(play.world)
        too_much = play.world.quotas().too_much(workload.queue, dict(admission.usage), use)
        self.met += 1
        if admission.queue != workload.queue or too_much:
            raise self.broken(f"{workload.uid} passes {too_much}")

    def quiet(self, play: Play) -> None:
        quotas, world = play.world.quotas(), play.world
        for uid in play.engine.ledger.pending_reservations:
            use = planned(play, without=uid)
            admission = play.holds(uid)
            assert admission is not None
            self.met += 1
            too_much = quotas.too_much(admission.queue, dict(admission.usage), use)
            if too_much:
                raise self.broken(f"the place of {uid} passes {too_much}")
        used = real(world)
        for name in world.queues:
            expected = {key: n for key, n in used.get(name, {}).items() if n}
            if {key: n for key, n in play.engine.ledger.used(name).items() if n} != expected:
                raise self.broken(f"{name} is said to use {play.engine.ledger.used(name)}, not {expected}")


def planned(play: Play, without: str = "") -> dict[str, dict[FlavorResource, int]]:
    """What is in use once all victims are gone and all promised places are taken, perhaps but for one."""
    stays = [uid for uid in play.world.running if play.engine.ledger.preemptor(uid) is None]
    sums = play.world.use(stays)
    for uid, hold in play.engine.ledger.pending_reservations.items():
        if uid != without:
            add(sums, hold.admission)
    return sums


class Lawful(Check):
    """The policies of the queues allow each eviction, and it is for something that waits.

    What inherits a victim that was told may go by the policies of when that was decided, too.
    """

    rule = "lawful"

    def __init__(self) -> None:
        super().__init__()
        self._decided: dict[str, tuple[float, Quotas]] = {}

    def evicted(self, play: Play, eviction: PlannedEviction) -> None:
        uid, quotas = eviction.victim.holder, play.world.quotas()
        victim = play.world.running[uid].workload
        self.met += 1
        self._decided[uid] = (play.now, quotas)
        objection = "of which only the pods are left"
        if victim is not None:
            objection = _objection(quotas, victim, eviction.preemptor)
        if objection:
            raise self.broken(f"{uid} has to go for {eviction.preemptor.uid}, {objection}")

    def inherited(self, play: Play, victim: str, preemptor: Workload) -> None:
        workload = play.world.running[victim].workload
        self.met += 1
        if workload is not None:
            _, before = self._decided[victim]
            objection = _objection(play.world.quotas(), workload, preemptor)
            if objection and _objection(before, workload, preemptor):
                raise self.broken(f"{victim} has to go for {preemptor.uid} instead, {objection}")

    def goes(self, play: Play, victim: str, preemptor: str) -> None:
        # At once it may be in, since others have not gone yet; later there is no need of the victim's place.
        if preemptor in play.world.running and self._decided[victim][0] < play.now:
            raise self.broken(f"{victim} goes for {preemptor}, which runs")


def _objection(quotas: Quotas, victim: Workload, preemptor: Workload) -> str:
    """What policies have against an eviction, whatever is in use; empty if nothing."""
    queue = quotas.queues[preemptor.queue]
    policy, lower = queue.preemption, victim.priority < preemptor.priority
    if victim.queue == preemptor.queue:
        if policy.within is WithinQueue.NEVER:
            return "in a queue that never does that"
        newer = policy.within is WithinQueue.LOWER_OR_NEWER_EQUAL_PRIORITY
        newer = newer and victim.priority == preemptor.priority and preemptor.rank < victim.rank
        by_share = queue.by_namespace and victim.namespace != preemptor.namespace
        return "" if lower or newer or by_share else "which is not above it"
    if quotas.root(victim.queue) != quotas.root(preemptor.queue):
        return "in another tree"
    reclaims = policy.reclaim is Reclaim.ANY or (policy.reclaim is Reclaim.LOWER_PRIORITY and lower)
    borrows = policy.borrow is BorrowWithin.GUARANTEED_SHARE or (
        policy.borrow is BorrowWithin.LOWER_PRIORITY
        and lower
        and (policy.threshold is None or victim.priority <= policy.threshold)
    )
    return "" if reclaims or borrows else "of which the queue may not do that"


class Promises(Check):
    """What evicts is admitted, unless it is deleted or changed, or a higher priority takes its place."""

    rule = "promises"

    def __init__(self) -> None:
        super().__init__()
        self._owed: dict[str, tuple[Workload, str]] = {}

    def goes(self, play: Play, victim: str, preemptor: str) -> None:
        workload = play.world.waiting.get(preemptor)
        if workload is not None:
            self._owed.setdefault(preemptor, (workload, victim))

    def admitted(self, play: Play, workload: Workload, admission: Admission) -> None:
        quotas = play.world.quotas()
        if self._owed.pop(workload.uid, None) is not None:
            self.met += 1
        for uid, (owner, _) in list(self._owed.items()):
            same = quotas.root(owner.queue) == quotas.root(workload.queue)
            if same and workload.priority > owner.priority:
                del self._owed[uid]

    def outside(self, play: Play, event: object) -> None:
        """What changes quota may leave no room for places; what changes workloads is seen from these.

        So may one that needs more again than it holds.
        """
        if isinstance(event, cases.Edit | cases.Weigh | cases.Refuse | cases.Resize):
            self._owed.clear()

    def rest(self, play: Play) -> None:
        for uid, (workload, victim) in self._owed.items():
            if play.world.waiting.get(uid) == workload:
                raise self.broken(f"{victim} went for {uid}, which waits on")
        for uid in play.engine.ledger.pending_reservations:
            raise self.broken(f"at rest a place is kept for {uid}, which is not let in")


class Ending(Check):
    """Evictions come to an end: no state comes twice, and there are not too many of them."""

    rule = "ending"

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[Hashable, int] = {}
        self._evictions = 0

    def outside(self, play: Play, event: object) -> None:
        self._seen.clear()
        self._evictions = 0

    def evicted(self, play: Play, eviction: PlannedEviction) -> None:
        self.met += 1
        self._evictions += 1
        most = (len(play.world.running) + len(play.world.waiting)) ** 2
        if self._evictions > most:
            raise self.broken(f"{self._evictions} evictions with nothing from outside in between")

    def quiet(self, play: Play) -> None:
        ledger, world = play.engine.ledger, play.world
        state = (
            frozenset((uid, r.admission, ledger.preemptor(uid)) for uid, r in world.running.items()),
            frozenset(world.waiting),
            frozenset((uid, hold.admission) for uid, hold in ledger.pending_reservations.items()),
        )
        if self._seen.setdefault(state, self._evictions) != self._evictions:
            raise self.broken("evictions lead back to where they began")


class Idle(Check):
    """At rest nothing waits beside free quota that it fits into.

    Not checked: what waits behind the head of a strict queue, or in a queue that is stopped, and what would
    borrow what is kept for an owner.
    """

    rule = "idle"

    def rest(self, play: Play) -> None:
        quotas, use = play.world.quotas(), play.world.use(play.world.running)
        flavors = {flavor.name: flavor for flavor in play.scenario.flavors}
        for workload in self.eligible(play):
            self.met += 1
            for smaller in {workload.pod_sets: workload, least(workload).pod_sets: least(workload)}.values():
                for usage in ways(smaller, play.world.queues[workload.queue], flavors):
                    if claims.withheld(play, workload, usage, use):
                        continue
                    if not quotas.too_much(workload.queue, usage, use):
                        raise self.broken(f"{workload.uid} waits, and {_words(usage)} are free for it")

    @staticmethod
    def eligible(play: Play) -> Iterator[Workload]:
        """What would have to start if it fitted."""
        waiting = play.world.waiting.values()
        for workload in waiting:
            queue = play.world.queues[workload.queue]
            if not queue.admits or workload.uid in play.engine.ledger.pending_reservations:
                continue
            others = [other for other in waiting if other.queue == queue.name]
            if queue.strategy is Strategy.STRICT_FIFO:
                namespaces = {other.namespace for other in others}
                if queue.by_namespace and len(namespaces) > 1:
                    continue  # which of them is first is a matter of shares
                if min(others, key=lambda other: other.rank) is not workload:
                    continue
            yield workload


def _words(usage: dict[FlavorResource, int]) -> str:
    return " and ".join(f"{amount} {resource} of {flavor}" for (flavor, resource), amount in usage.items())


def least(workload: Workload) -> Workload:
    """A workload with as few pods as it can do with."""
    sets = tuple(replace(p, count=p.min_count or p.count, min_count=None) for p in workload.pod_sets)
    return replace(workload, pod_sets=sets)


class Rebuilt(Check):
    """An engine that has read what was decided has the same books, and decides nothing new.

    It costs as much as all else, so it is checked at rest, and else at one moment of several.
    """

    rule = "rebuilt"

    def __init__(self) -> None:
        super().__init__()
        self._moments = 0

    def quiet(self, play: Play) -> None:
        self._moments += 1
        if (self._moments + play.scenario.seed) % SELDOM == 0:
            self.rest(play)

    def rest(self, play: Play) -> None:
        made = reread(play)
        for book in BOOKS:
            before, after = (self._numbers(play, engine, book) for engine in (play.engine, made))
            if before != after:
                differing = {key: (before[key], after[key]) for key in before if before[key] != after[key]}
                raise self.broken(f"the {book} book differs: {differing}")
        plan = made.cycle(play.now)
        self.met += bool(play.world.waiting)
        words = [f"admits {workload.uid}" for workload, _ in plan.admissions]
        words += [f"evicts {each.victim.holder} for {each.preemptor.uid}" for each in plan.evictions]
        words += [f"promises {uid} a place" for uid in plan.planned]
        words += [f"resizes {each.holder}" for each in plan.resized]
        gone = sorted(
            play.engine.ledger.pending_reservations.keys() - made.ledger.pending_reservations.keys()
        )
        words += [f"gives up the place of {uid}" for uid in gone if uid not in plan.planned]
        if words:
            raise self.broken(f"another engine {', '.join(words)}")

    @staticmethod
    def _numbers(play: Play, engine: Engine, book: str) -> dict[Hashable, tuple[int, int]]:
        quotas = play.world.quotas()
        keys = {key for queue in play.world.queues.values() for key in queue.quotas}
        return {
            (node, key): (cell.used, cell.total)
            for node in quotas.parent
            for key in keys
            for cell in (getattr(engine.ledger, book).at(node, key),)
        }


class Reasons(Check):
    """At rest everything that waits in a queue has been told why, and it is not a place that is gone."""

    rule = "reasons"

    def rest(self, play: Play) -> None:
        for uid, workload in play.world.waiting.items():
            queue = play.world.queues[workload.queue]
            if not queue.admits:
                continue
            self.met += 1
            told = play.world.told.get(uid)
            if told is None:
                raise self.broken(f"{uid} waits without a reason")
            if told.reason is Reason.PREEMPTING:
                raise self.broken(f"{uid} was told that its place is made, and no place is made")
            if uncovered(workload, queue) != (told.reason is Reason.RESOURCE_NOT_COVERED) and (
                told.reason is not Reason.BEHIND_HEAD
            ):
                raise self.broken(f"{uid} is told {told.reason}")
