"""The namespaces in which a user may list Workloads, found out by a bounded number of questions.

Kubernetes can't be asked in which namespaces a user has a right, only whether the user has it in one. So each
namespace costs a question, and there may be thousands: a refusal is remembered for some minutes, and what is
not known yet is asked a few at a time. Until all has been asked, the answer says that it is not complete.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from admitter.client.access import Rate, Rates, User
from admitter.web.sessions import party

REFUSED_SECONDS: Final = 300.0
"""For so long a refusal is not asked about again; a right that was granted meanwhile is found after that."""
OF_A_PARTY: Final = Rate(at_once=100, a_second=5)
OF_ALL_USERS: Final = Rate(at_once=300, a_second=30)
"""Questions about namespaces of which nothing is known; a party is a user, or a namespace's accounts."""
AT_A_TIME: Final = 8
MOST_PARTIES: Final = 50
MOST_OF_ONE: Final = 10
"""Users of a party with refusals that are remembered; what the idlest of it was answered is forgotten."""
MOST_OWN: Final = 500
"""Namespaces of one user that are asked about again: more is for users that may list all of them."""

MayList = Callable[[str], Awaitable[bool]]
"""Whether the user may list Workloads in a namespace; in all of them if the name is empty."""


@dataclass(frozen=True, slots=True)
class Found:
    """What is known of a user's namespaces."""

    everything: bool  # whether the user may list Workloads in all namespaces
    names: frozenset[str] = frozenset()  # those where the user may; not filled if `everything`
    complete: bool = True  # whether all have been asked about, though some may be due again

    def sees(self, namespace: str) -> bool:
        return self.everything or namespace in self.names

    @property
    def key(self) -> object:
        """Equal for users that see the same."""
        return None if self.everything else self.names


@dataclass
class _Known:
    """What was answered to one user."""

    allowed: set[str] = field(default_factory=set)
    refused: dict[str, float] = field(default_factory=dict)  # and when


class NamespaceSearch:
    """Asks, and remembers what was refused. A right that was granted is asked about again each time."""

    def __init__(self, now: Callable[[], float]) -> None:
        """Nothing is known; `now` tells the time, in seconds that only grow."""
        self._now = now
        self._known: OrderedDict[str, OrderedDict[User, _Known]] = OrderedDict()  # by party
        self._rates = Rates(OF_A_PARTY, OF_ALL_USERS, now)
        self._turns = asyncio.Semaphore(AT_A_TIME)

    async def among(self, user: User, may_list: MayList, candidates: Iterable[str]) -> Found:
        """In which of some namespaces a user may list Workloads; the likeliest come first."""
        if await may_list(""):
            return Found(everything=True)
        known = self._of(user)
        asked, complete = self._to_ask(user, known, candidates)
        answers = await asyncio.gather(*(self._ask(may_list, name) for name in asked))
        found = frozenset(name for name, allowed in zip(asked, answers, strict=True) if allowed)
        known.allowed |= found
        for name in set(asked) - found:
            known.allowed.discard(name)
            known.refused[name] = self._now()
        return Found(everything=False, names=found, complete=complete)

    def allowed(self, user: User) -> frozenset[str]:
        """The namespaces where the user was last found to have the right."""
        return frozenset(self._of(user).allowed)

    def learn(self, user: User, name: str) -> None:
        """Take in that the user has the right in a namespace, as another question has told."""
        known = self._of(user)
        known.allowed.add(name)
        known.refused.pop(name, None)

    def _of(self, user: User) -> _Known:
        """What is known of a user; the idlest of the same party, and the idlest party, may be forgotten."""
        owner = party(user.name)
        users = self._known.setdefault(owner, OrderedDict())
        known = users.setdefault(user, _Known())
        self._known.move_to_end(owner)
        users.move_to_end(user)
        if len(users) > MOST_OF_ONE:
            users.popitem(last=False)
        if len(self._known) > MOST_PARTIES:
            self._known.popitem(last=False)
        return known

    async def _ask(self, may_list: MayList, name: str) -> bool:
        async with self._turns:
            return await may_list(name)

    def _to_ask(self, user: User, known: _Known, candidates: Iterable[str]) -> tuple[list[str], bool]:
        """The namespaces to ask about now, and whether each was asked about by then.

        Those of which nothing is known come first, then the oldest refusals. Were it by name alone, the first
        refusals would be too old before the last of thousands of names was asked about.
        """
        asked: list[str] = []
        now, asking, complete = self._now(), True, True
        for name in sorted(candidates, key=lambda name: known.refused.get(name, float("-inf"))):
            if name in known.allowed and len(asked) < MOST_OWN:
                asked.append(name)
            elif now - known.refused.get(name, float("-inf")) < REFUSED_SECONDS:
                continue
            elif asking and len(asked) < MOST_OWN and self._rates.allows(party(user.name)):
                known.refused.pop(name, None)
                asked.append(name)
            else:
                asking = False
                complete = complete and name in known.refused
        return asked, complete


def likeliest(user: User, names: Iterable[str]) -> list[str]:
    """Namespaces with those first that are probably the user's: a service account's own, or of its name."""
    prefix = "system:serviceaccount:"
    own = user.name.removeprefix(prefix).partition(":")[0] if user.name.startswith(prefix) else user.name
    hints = {own, *user.groups}
    return sorted(names, key=lambda name: (name not in hints, name))
