"""Changes that users try: one at a time for each user, each with a time by which it ends."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from typing import Final

from admitter.insight.forecast.deadline import Allowance, Deadline
from admitter.insight.what_if.compare import Difference, compare
from admitter.policy.snapshot import Facts
from admitter.simulate.manifests import Change

TRIAL_SECONDS: Final = 10.0
"""How long the decisions of a tried change may take, and all of it."""


class ReplacedError(Exception):
    """The user tries another change."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One change that a user tries."""

    replaced: Event  # whether the user tries another change by now
    begun: Event  # whether it has had its turn

    def difference(
        self, known: Facts, changes: list[Change], starts: Allowance, deadline: Deadline
    ) -> Difference:
        """What the changes would do; it belongs in a thread.

        `starts` is how long it may look for starts after the decisions.

        Raises:
            ReplacedError: the user tries another change meanwhile.
            OutOfTimeError: the decisions take longer than the deadline.
        """

        def proceed() -> None:
            if self.replaced.is_set():
                raise ReplacedError
            deadline.proceed()

        self.begun.set()
        proceed()
        return compare(known, changes, allowed=starts, proceed=proceed)


class Trials:
    """Of each user the newest one: it ends the one before."""

    def __init__(self) -> None:
        self._of: dict[str, Trial] = {}

    def __len__(self) -> int:
        return len(self._of)

    @contextmanager
    def begin(self, user: str) -> Iterator[Trial]:
        """Try something; what the user was trying before is replaced."""
        self.replace(user)
        mine = self._of[user] = Trial(Event(), Event())
        try:
            yield mine
        finally:
            mine.replaced.set()  # no answer is wanted any more: a thread that goes on may end
            if self._of.get(user) is mine:
                del self._of[user]

    def replace(self, user: str) -> None:
        """End what a user tries, if anything."""
        older = self._of.pop(user, None)
        if older is not None:
            older.replaced.set()
