"""Plays a scenario on the engine with a clock that jumps, and lets checks look at each step."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import cycle as round_and_round
from typing import Final

from admitter.api.eviction_limits import MOST_EVICTIONS
from admitter.engine import commands
from admitter.engine.cycle import Engine
from admitter.engine.model import Admission, Workload
from admitter.engine.policy import Queue
from admitter.engine.tree_cycle import Plan, PlannedEviction
from tests.engine.scenarios import cases, growing, records
from tests.engine.scenarios.cases import Scenario
from tests.engine.scenarios.resized import resize
from tests.engine.scenarios.returned import tell_what_was_returned
from tests.engine.scenarios.world import Leaving, Running, World

MOST_CYCLES: Final = 60
"""So many cycles in one moment, with nothing from outside in between, are too many."""
MOST_MOMENTS: Final = 400
"""So many moments between two steps are too many: victims come back, but not for ever."""


class BrokenRuleError(AssertionError):
    """A rule does not hold."""

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(f"{rule}: {message}")
        self.rule = rule


class Check:
    """Looks on; its methods are called as things happen. `met` counts how often it had something to check."""

    rule = ""

    def __init__(self) -> None:
        self.met = 0

    def broken(self, message: str) -> BrokenRuleError:
        """The rule does not hold."""
        return BrokenRuleError(self.rule, message)

    def outside(self, play: "Play", event: object) -> None:
        """Something came from outside: a step, or an end."""

    def admitted(self, play: "Play", workload: Workload, admission: Admission) -> None:
        """A workload is about to be admitted."""

    def evicted(self, play: "Play", eviction: PlannedEviction) -> None:
        """An eviction was decided."""

    def inherited(self, play: "Play", victim: str, preemptor: Workload) -> None:
        """A victim goes for another preemptor than before."""

    def goes(self, play: "Play", victim: str, preemptor: str) -> None:
        """A victim is about to stop: from here on nothing can spare it."""

    def refused(self, victim: str) -> None:
        """A victim that was about to stop goes on: that was not written."""

    def decided(self, play: "Play", plan: Plan) -> None:
        """A cycle is over, and all has come true but what it has decided of extra pods."""

    def resized(self, play: "Play", plan: Plan) -> None:
        """What a cycle decided has come true."""

    def quiet(self, play: "Play") -> None:
        """The engine has nothing more to decide at this moment."""

    def rest(self, play: "Play") -> None:
        """Nothing happens any more by itself."""


class Play:
    """One scenario on one engine.

    Attributes:
        now: the time, in seconds.
        engine: what decides.
        world: what is true.
        log: what happened, in words.
    """

    def __init__(
        self, scenario: Scenario, checks: Iterable[Check], make: Callable[[], Engine] = Engine
    ) -> None:
        self.scenario = scenario
        self.checks = list(checks)
        self.make = make
        self.now = 0.0
        self.log: list[str] = []
        self.world = World(
            {queue.name: queue for queue in scenario.queues},
            {cohort.name: cohort for cohort in scenario.cohorts},
            dict(scenario.weights),
        )
        self.engine = make()
        self._define(self.engine)
        self.departures = round_and_round(scenario.departures)
        self._runs: dict[str, int | None] = {}
        self._ends: dict[str, float] = {}
        self._lingering: dict[str, float] = {}
        self._lose = self._refuse = False
        self._moments = 0

    def run(self) -> None:
        """Play all steps, and go on until rest."""
        for step in self.scenario.steps:
            self.pass_to(self.now + step.after)
            self.apply(step.event)
            self.settle()
        while (following := self._next_time()) is not None:
            self.pass_to(following)
        for check in self.checks:
            check.rest(self)

    def say(self, text: str) -> None:
        """Note what happens."""
        self.log.append(f"  {self.now:4g} s  {text}")

    def holds(self, uid: str) -> Admission | None:
        """The place that is kept for a workload."""
        hold = self.engine.ledger.pending_reservations.get(uid)
        return hold.admission if hold is not None else None

    def pass_to(self, time: float) -> None:
        """Let time pass; what is due in between happens in between."""
        while (following := self._next_time()) is not None and following <= time:
            self.now = max(self.now, following)
            self._moments += 1
            if self._moments > MOST_MOMENTS:
                raise BrokenRuleError("ending", f"no rest after {MOST_MOMENTS} moments without a step")
            self._happen()
            self.settle()
        self.now = time

    def _next_time(self) -> float | None:
        times = [*self._ends.values(), *self._lingering.values()]
        times += [leaving.at for leaving in self.world.leaving.values()]
        times += [running.since + self.scenario.pods for running in self._without_pods().values()]
        times += [each.shrinks_at for each in self.world.running.values() if each.shrinks_at is not None]
        times += [self.engine.due] if self.engine.due is not None else []
        return min(times, default=None)

    def _without_pods(self) -> dict[str, Running]:
        """What runs in an elastic quota and has no pods yet: there it counts how old these are."""
        return {
            uid: running
            for uid, running in self.world.running.items()
            if running.pods is None and running.admission.pool and running.workload is not None
        }

    def _happen(self) -> None:
        """What is due now: ends, pods that come, victims that go and that are gone."""
        for uid in sorted(uid for uid, time in self._ends.items() if time <= self.now):
            self.end(uid)
        for uid in sorted(uid for uid, time in self._lingering.items() if time <= self.now):
            self.outside("the last pods went")
            self._free(uid)
        for uid, running in sorted(self._without_pods().items()):
            if running.since + self.scenario.pods <= self.now:
                running.pods = self.now
                self._set_pods(self.engine, uid)
        growing.happen(self)
        for uid, leaving in sorted(self.world.leaving.items()):
            if leaving.at <= self.now and uid in self.world.leaving:
                self._leave(uid, leaving)

    def _leave(self, uid: str, leaving: Leaving) -> None:
        if not leaving.going:
            self._go(uid, leaving)
            return
        workload = self.world.running[uid].workload
        self._free(uid)
        if workload is not None:
            self.say(f"{uid} has gone, and waits again")
            self._submit(workload)

    def _go(self, uid: str, leaving: Leaving) -> None:
        """A victim stops now."""
        self.say(f"{uid} goes for {leaving.preemptor}")
        for check in self.checks:
            check.goes(self, uid, leaving.preemptor)
        records.write(self, uid)
        self.engine.apply(commands.StartEviction(uid))
        running = self.world.running[uid]
        if running.workload is not None:
            times = (*running.workload.evictions, self.now)
            running.workload = replace(running.workload, evictions=times[-MOST_EVICTIONS:])
        self._ends.pop(uid, None)
        leaving.going, leaving.at = True, self.now + next(self.departures)

    def _free(self, uid: str) -> None:
        self.world.running.pop(uid, None)
        self.world.leaving.pop(uid, None)
        self._ends.pop(uid, None)
        self._lingering.pop(uid, None)
        self.engine.apply(commands.Release(uid))

    def _submit(self, workload: Workload) -> None:
        self.world.waiting[workload.uid] = workload
        self.engine.apply(commands.Submit(workload))

    def outside(self, event: object) -> None:
        """Something comes from outside."""
        for check in self.checks:
            check.outside(self, event)

    def apply(self, event: cases.Event) -> None:
        """Let a step happen."""
        self._moments = 0
        self.outside(event)
        match event:
            case cases.Arrive(workload, runs):
                self.say(f"arrives: {cases.asks(workload)}, runs {'on' if runs is None else f'{runs} s'}")
                self._runs[workload.uid] = runs
                self._submit(workload)
            case cases.Edit(definition):
                self.say(f"edited: {cases.told(definition)}")
                kept = self.world.queues if isinstance(definition, Queue) else self.world.cohorts
                kept[definition.name] = definition  # type: ignore[assignment]
                self._define(self.engine)
            case cases.Weigh(namespace, weight):
                self.say(f"namespace {namespace}: weight {weight}")
                self.world.weights[namespace] = weight
                self.engine.apply(commands.SetWeight(namespace, weight))
            case cases.Lose():
                self._lose = True
            case cases.Refuse():
                self._refuse = True
            case cases.Repeat():
                self._repeat()
            case cases.Restart():
                self.say("restart")
                self.engine = reread(self)
            case _:
                self._to_one(event)

    def _to_one(self, event: cases.OfOne) -> None:
        """What happens to one of the running workloads, or of the waiting ones."""
        runs = not isinstance(event, cases.Withdraw | cases.Change)
        running = [uid for uid, each in self.world.running.items() if each.workload is not None]
        uids = sorted(running if runs else self.world.waiting)
        if not uids:
            return
        uid = uids[event.which % len(uids)]
        match event:
            case cases.End():
                self.end(uid)
            case cases.Delete(_, lingers):
                self.say(f"{uid} is deleted, its pods stay for {lingers} s")
                self.world.running[uid].workload = None
                growing.orphan(self.world.running[uid])
                self.engine.apply(commands.ReturnReservation(uid))
                self._ends.pop(uid, None)
                self._lingering[uid] = self.now + lingers
                self._tell(self.engine, uid)
            case cases.Withdraw():
                self.say(f"{uid} is deleted while it waits")
                del self.world.waiting[uid]
                self.engine.apply(commands.ReturnReservation(uid))
                self.engine.apply(commands.Withdraw(uid))
            case cases.Change(_, priority):
                self.say(f"{uid} gets priority {priority}")
                self._submit(replace(self.world.waiting[uid], priority=priority))
            case cases.Resize(_, pods):
                self.say(f"{uid} {resize(self.world.running[uid], pods)}")
                self._tell(self.engine, uid)
            case cases.Grow(_, pods):
                self.say(f"{uid} {growing.want(self, uid, pods)}")
            case cases.Revalue(_, priority):
                self.say(f"{uid}, which runs, gets priority {priority}")
                workload = self.world.running[uid].workload
                assert workload is not None
                self.world.running[uid].workload = replace(workload, priority=priority)
                self._tell(self.engine, uid)
            case cases.Save(_, ago):
                self.say(f"{uid} says that it has saved its work at {self.now - ago:g} s")
                self.world.running[uid].checkpoint = self.now - ago
                self._tell(self.engine, uid)

    def end(self, uid: str) -> None:
        """A workload has done its work."""
        self.outside("an end")
        self.say(f"{uid} ends")
        self._free(uid)

    def settle(self) -> None:
        """Let the engine decide until it has nothing more to decide at this moment."""
        for _ in range(MOST_CYCLES):
            due = self.engine.due
            if not self.engine.changed and (due is None or due > self.now):
                break
            self._take(self.engine.cycle(self.now))
        else:
            raise BrokenRuleError("ending", f"{MOST_CYCLES} cycles at {self.now:g} s, and more to come")
        self._follow()
        for check in self.checks:
            check.quiet(self)

    def _take(self, plan: Plan) -> None:
        """Let a plan come true."""
        self.world.told.update(plan.refusals)
        for workload, admission in plan.admissions:
            self._admit(workload, admission)
        for eviction in plan.evictions:
            self._evict(eviction)
        self._follow()
        for check in self.checks:
            check.decided(self, plan)
        if plan.resized:
            self._lose = growing.take(self, plan.resized, lost=self._lose)
            for check in self.checks:
                check.resized(self, plan)
        if plan.admissions and self._lose:
            self._lost(plan.admissions[0][0])
        if plan.evictions and self._refuse:
            self._refused(plan.evictions[0])

    def _admit(self, workload: Workload, admission: Admission) -> None:
        if workload.uid not in self.world.waiting:
            raise BrokenRuleError("quota", f"{workload.uid} is admitted, and does not wait")
        for check in self.checks:
            check.admitted(self, workload, admission)
        self.say(f"{workload.uid} is admitted: {cases.held(admission)}")
        del self.world.waiting[workload.uid]
        self.world.told.pop(workload.uid, None)
        self.world.running[workload.uid] = Running(workload, admission, self.now, workload.namespace)
        runs = self._runs[workload.uid]
        if runs is not None:
            self._ends[workload.uid] = self.now + runs
        growing.begin(self, workload.uid)

    def _evict(self, eviction: PlannedEviction) -> None:
        uid = eviction.victim.holder
        if uid not in self.world.running:
            raise BrokenRuleError("lawful", f"{uid} is evicted, and does not run")
        for check in self.checks:
            check.evicted(self, eviction)
        leaving, preemptor = self.world.leaving.get(uid), eviction.preemptor.uid
        if leaving is None:
            grace = f", and is told {eviction.grace:g} s before" if eviction.grace else ""
            self.say(f"{uid} has to go for {preemptor}{grace}")
            leaving = self.world.leaving[uid] = Leaving(self.now + eviction.grace, False, preemptor)
        elif leaving.going:
            raise BrokenRuleError("lawful", f"{uid} is evicted while it goes")
        else:
            self.say(f"{uid}, which was told, has to go for {preemptor}")
            leaving.preemptor, leaving.at = preemptor, min(leaving.at, self.now + eviction.grace)
        if leaving.at <= self.now:
            self._go(uid, leaving)

    def _follow(self) -> None:
        """Take in for which preemptors victims go now, and which pending evictions are cancelled."""
        for uid, leaving in list(self.world.leaving.items()):
            preemptor = self.engine.ledger.preemptor(uid)
            if leaving.going or preemptor == leaving.preemptor:
                continue
            if preemptor is None:
                self.say(f"{uid} stays")
                del self.world.leaving[uid]
                continue
            self.say(f"{uid} goes for {preemptor} instead of {leaving.preemptor}")
            leaving.preemptor = preemptor
            hold = self.engine.ledger.pending_reservations.get(preemptor)
            if hold is None:
                raise BrokenRuleError("lawful", f"{uid} goes for {preemptor}, for which no place is kept")
            for check in self.checks:
                check.inherited(self, uid, hold.workload)

    def _lost(self, workload: Workload) -> None:
        """The write of an admission failed: the workload competes again."""
        if workload.uid in self.world.running and workload.uid not in self.world.leaving:
            self._lose = False
            self.outside(cases.Lose())
            self.say(f"the admission of {workload.uid} is not written")
            self._free(workload.uid)
            self._submit(workload)

    def _refused(self, eviction: PlannedEviction) -> None:
        """The write of an eviction failed: the victim stays."""
        uid = eviction.victim.holder
        self._refuse = False
        self.outside(cases.Refuse())
        self.say(f"the eviction of {uid} is not written")
        self.engine.apply(commands.CancelEviction(uid))
        leaving, running = self.world.leaving.pop(uid, None), self.world.running[uid]
        if leaving is not None and leaving.going and running.workload is not None:
            running.workload = replace(running.workload, evictions=running.workload.evictions[:-1])
            records.take_back(self, uid)
            for check in self.checks:
                check.refused(uid)
        self._tell(self.engine, uid)

    def _repeat(self) -> None:
        """What the engine knows of workloads is told again."""
        for uid in sorted(self.world.running, reverse=True):
            self._tell(self.engine, uid)
        for workload in self.world.waiting.values():
            self.engine.apply(commands.Submit(workload))

    def _define(self, engine: Engine) -> None:
        """Make an engine know flavors, queues, cohorts and weights."""
        for flavor in self.scenario.flavors:
            engine.apply(commands.SetFlavor(flavor))
        engine.apply(commands.Define(tuple(self.world.queues.values()), tuple(self.world.cohorts.values())))
        for namespace, weight in self.world.weights.items():
            engine.apply(commands.SetWeight(namespace, weight))

    def _tell(self, engine: Engine, uid: str) -> None:
        """Make an engine know what a workload holds."""
        running = self.world.running[uid]
        more = running.workload, running.since, running.namespace, running.checkpoint
        engine.apply(commands.Reserve(uid, running.admission, *more))
        growing.tell(self, engine, uid)
        self._set_pods(engine, uid)

    def _set_pods(self, engine: Engine, uid: str) -> None:
        running = self.world.running[uid]
        if running.pods is not None:
            count = sum(each.count for each in running.admission.pod_sets)
            alive = tuple((running.pods, f"{uid}-{number}") for number in range(count))
            engine.apply(commands.SetPods(uid, alive))


def reread(play: Play) -> Engine:
    """Another engine that has read all that was decided, as it stands in the statuses of workloads."""
    made, world, ledger = play.make(), play.world, play.engine.ledger
    play._define(made)
    records.tell(world, made)
    for uid in sorted(world.running, reverse=True):
        play._tell(made, uid)
    promised = dict(ledger.displacements)
    for uid, hold in sorted(ledger.pending_reservations.items()):
        victims = sorted(victim for victim in world.leaving if promised.get(victim) == uid)
        for victim in victims or [""]:
            pending = ledger.is_eviction_pending(victim)
            made.apply(commands.Evict(victim, hold.workload, hold.admission, pending))
    for victim in sorted(world.leaving):
        preemptor = ledger.preemptor(victim)
        if preemptor is not None and made.ledger.preemptor(victim) is None:
            made.ledger.evict(victim, preemptor)  # it stops, though the place is not needed any more
            if victim not in promised:
                made.ledger.displacements.end(victim)
    records.start(world, made)
    for victim, preemptor in promised.items():
        made.apply(commands.Displace(victim, preemptor))
    for uid in sorted(world.waiting, reverse=True):
        if uid not in ledger.pending_reservations:
            made.apply(commands.Submit(world.waiting[uid]))
    tell_what_was_returned(play.engine, made)
    return made
