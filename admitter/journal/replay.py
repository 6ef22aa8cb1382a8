"""Tells an engine again what a journal says, and compares what it decides."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from admitter.engine.cycle import Engine
from admitter.journal.calls import AbandonTrees, Cycle, JournalError, Json, Resume, parsed, plan_record
from admitter.journal.files import lines

_SETTLED: Final = frozenset({"refusals"})
"""What a cycle may say beyond the journal: a new engine gives each waiting workload its reason."""


@dataclass(frozen=True, slots=True)
class ReplayDifference:
    """A cycle that decides something else now."""

    line: int
    time: float  # when the cycle was, in seconds since the epoch
    then: Json  # what it decided, where that differs
    now: Json  # what it decides


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
    done, engine = Replayed(path), Engine()
    found = lines(path)
    _, header = next(found, (0, {}))
    done.version = str(header.get("admitter", ""))
    for number, line in found:
        try:
            done.difference = _repeated(engine, done, number, line)
        except JournalError as error:
            raise JournalError(f"{path}:{number}: {error}") from error
        except Exception as error:  # whatever a line that was changed makes of the engine
            words = f"can't be repeated: {type(error).__name__}: {error}"
            raise JournalError(f"{path}:{number}: {words}") from error
        if done.difference is not None:
            break
    return done


def _repeated(engine: Engine, done: Replayed, number: int, line: Json) -> ReplayDifference | None:
    """Repeat the call of one line; returns how its decisions differ."""
    call = parsed(line)
    done.calls += 1
    match call:
        case Cycle(time, looks):
            plan = plan_record(engine.cycle(time, looks.decides()))
            return _compared(done, number, time, line.get("plan"), plan)
        case Resume(looks):
            engine.resume(looks.decides())
        case AbandonTrees(looks):
            engine.abandon_trees(looks.decides())
        case command:
            engine.apply(command)
    return None


def _compared(
    done: Replayed, number: int, time: float, then: Json | None, now: Json
) -> ReplayDifference | None:
    """Count a cycle, if the journal says what it decided; returns how that differs."""
    if then is None:
        then = {name: now[name] for name in now.keys() & _SETTLED}
    else:
        done.count(now)
    if now == then:
        return None
    names = [name for name in sorted({*now, *then}) if now.get(name) != then.get(name)]
    parts = ({name: plan.get(name) for name in names} for plan in (then, now))
    return ReplayDifference(number, time, *parts)
