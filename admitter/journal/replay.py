"""Tells an engine again what a journal says, and compares what it decides."""

from dataclasses import dataclass, field
from pathlib import Path

from admitter.engine import commands
from admitter.engine.cycle import Engine
from admitter.journal.calls import AbandonTrees, Cycle, JournalError, Json, Resume, parsed, plan_record
from admitter.journal.files import lines

REFUSALS = "refusals"


@dataclass(frozen=True, slots=True)
class ReplayDifference:
    """A cycle that decides something else now."""

    line: int
    time: float  # when the cycle was, in seconds since the epoch
    then: Json  # what it decided, where that differs
    now: Json  # what it decides


@dataclass(slots=True)
class Reasons:
    """Why workloads wait, by UID, as cycles have told it up to now: a cycle tells only what is new.

    A new engine tells all at once what the one of the journal had told before the file began. So what is
    compared is what both have told in the end, of the workloads that the file tells of.
    """

    then: Json = field(default_factory=dict)
    now: Json = field(default_factory=dict)

    def take(self, then: Json, now: Json) -> None:
        """Take in what a cycle has told, and what it tells now."""
        for known, plan in ((self.then, then), (self.now, now)):
            known.update(plan.get(REFUSALS, {}))
            for uid, _ in plan.get("admissions", ()):
                known.pop(uid, None)

    def forget(self, uid: str) -> None:
        """A workload waits no longer."""
        self.then.pop(uid, None)
        self.now.pop(uid, None)

    @property
    def differing(self) -> tuple[Json, Json]:
        """The reasons that differ, as they were and as they are now."""
        uids = [uid for uid, reason in self.then.items() if self.now.get(uid) != reason]
        return {uid: self.then[uid] for uid in uids}, {uid: self.now.get(uid) for uid in uids}


@dataclass(slots=True)
class Replayed:
    """What came of one file."""

    path: Path
    version: str = ""  # of the program that wrote it
    calls: int = 0  # how many calls it has, cycles included
    cycles: int = 0
    admissions: int = 0
    evictions: int = 0
    refusals: int = 0  # how often they told one why it waits
    # the first cycle that decides something else; nothing after it was looked at
    difference: ReplayDifference | None = None

    def count(self, plan: Json) -> None:
        self.cycles += 1
        self.admissions += len(plan.get("admissions", ()))
        self.evictions += len(plan.get("evictions", ()))
        self.refusals += len(plan.get("refusals", ()))


def replay(path: Path) -> Replayed:
    """Replay a file up to its end or to the first difference.

    Raises:
        JournalError: it can't be read; the file and the line are named.
    """
    done, engine, reasons = Replayed(path), Engine(), Reasons()
    found = lines(path)
    _, header = next(found, (0, {}))
    done.version = str(header.get("admitter", ""))
    for number, line in found:
        try:
            done.difference = _repeated(engine, done, reasons, number, line)
        except JournalError as error:
            raise JournalError(f"{path}:{number}: {error}") from error
        except Exception as error:  # whatever a line that was changed makes of the engine
            words = f"can't be repeated: {type(error).__name__}: {error}"
            raise JournalError(f"{path}:{number}: {words}") from error
        if done.difference is not None:
            break
    return done


def _repeated(
    engine: Engine, done: Replayed, reasons: Reasons, number: int, line: Json
) -> ReplayDifference | None:
    """Repeat the call of one line; returns how its decisions differ."""
    call = parsed(line)
    done.calls += 1
    match call:
        case Cycle(time, looks):
            plan = plan_record(engine.cycle(time, looks.decides()))
            then = line.get("plan")
            if then is not None:
                done.count(plan)
            differing = _compared(reasons, then or {}, plan)
            return ReplayDifference(number, time, *differing) if differing is not None else None
        case commands.Withdraw(uid):
            reasons.forget(uid)
            engine.apply(call)
        case Resume(looks):
            engine.resume(looks.decides())
        case AbandonTrees(looks):
            engine.abandon_trees(looks.decides())
        case command:
            engine.apply(command)
    return None


def _compared(reasons: Reasons, then: Json, now: Json) -> tuple[Json, Json] | None:
    """What a cycle decided and what it decides, where that differs; None if it is the same."""
    reasons.take(then, now)
    names = [each for each in sorted({*now, *then} - {REFUSALS}) if now.get(each) != then.get(each)]
    parts = [{name: plan.get(name) for name in names} for plan in (then, now)]
    for part, differing in zip(parts, reasons.differing, strict=True):
        if differing:
            part[REFUSALS] = differing
    return (parts[0], parts[1]) if any(parts) else None
