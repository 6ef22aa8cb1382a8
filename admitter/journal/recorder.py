"""Writes down what an engine is told and what it decides."""

from itertools import chain

from admitter.engine.commands import Command
from admitter.engine.observer import AskedRoots
from admitter.engine.state import EngineState
from admitter.engine.tree_cycle import Plan
from admitter.journal.calls import AbandonTrees, Cycle, Looks, Resume, plan_record
from admitter.journal.files import Journal
from admitter.journal.state import known, settled


class Recorder:
    """Observes one engine, and writes to a journal from when that engine begins to decide."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._decides = False

    def applied(self, command: Command) -> None:
        if self._decides:
            self._journal.write(command)

    def decided(self, now: float, asked: AskedRoots, plan: Plan, state: EngineState) -> None:
        """Write a cycle; if the file is full, another one begins with what the engine knows by now."""
        if self._decides:
            self._journal.write(Cycle(now, _looks(asked)), plan_record(plan))
            # A cancelled eviction may cast doubt on reservations. The next cycle looks at these: no file
            # begins before that.
            self._journal.decided(
                None if state.doubtful else lambda: chain(known(state), [settled(state, now, asked)])
            )

    def resumed(self, asked: AskedRoots, state: EngineState) -> None:
        """Write which trees are looked at; a file begins where the engine begins to decide."""
        if not self._decides:
            self._decides = True
            self._journal.begin(known(state))
        self._journal.write(Resume(_looks(asked)))

    def abandoned(self, asked: AskedRoots) -> None:
        """Write which trees another process decides about."""
        if self._decides:
            self._journal.write(AbandonTrees(_looks(asked)))


def _looks(asked: AskedRoots) -> Looks:
    return Looks(tuple(asked.answers.items()))
