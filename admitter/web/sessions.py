"""Sessions of logged-in users, and limited places that all of them share.

A cookie names only the session, and the token stays here. A user with many sessions takes none from others.
"""

import secrets
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

COOKIE: Final = "admitter-session"
IDLE_SECONDS: Final = 8 * 3600.0
MOST: Final = 5_000
MOST_OF_ONE: Final = 50
"""Sessions of one user, or of all service accounts of a namespace: the idlest of these ends first."""
_SERVICE_ACCOUNT: Final = "system:serviceaccount:"


def party(user: str) -> str:
    """The party of a user: all service accounts of a namespace are one, since they are easily made."""
    if user.startswith(_SERVICE_ACCOUNT):
        return "system:serviceaccounts:" + user.removeprefix(_SERVICE_ACCOUNT).partition(":")[0]
    return user


class PartyShares:
    """Places by party, in the order of their last use; the party with most places gives up one first."""

    def __init__(self, most: int, most_of_one: int) -> None:
        self._most = most
        self._most_of_one = most_of_one
        self._of: OrderedDict[str, OrderedDict[str, None]] = OrderedDict()
        self._party: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._party)

    def __contains__(self, name: str) -> bool:
        return name in self._party

    def take(self, name: str, user: str) -> str | None:
        """Take a place under a new name; returns the name that loses its own if there was no room.

        That is the idlest of its party, or of the party with most places.
        """
        owner = party(user)
        self._of.setdefault(owner, OrderedDict())
        self._party[name] = owner
        self.use(name)
        if len(self._of[owner]) > self._most_of_one:
            giver = owner
        elif len(self._party) > self._most:
            giver = max(self._of, key=lambda each: len(self._of[each]))
        else:
            return None
        lost = next(iter(self._of[giver]))
        self.leave(lost)
        return lost

    def use(self, name: str) -> None:
        owner = self._party[name]
        self._of.move_to_end(owner)
        self._of[owner][name] = None
        self._of[owner].move_to_end(name)

    def leave(self, name: str) -> None:
        """Give a place up; an unknown name is no error."""
        owner = self._party.pop(name, None)
        if owner is not None:
            del self._of[owner][name]
            if not self._of[owner]:
                del self._of[owner]


class Sessions:
    """Tokens by session."""

    def __init__(self, now: Callable[[], float], name: Callable[[], str] = secrets.token_urlsafe) -> None:
        """The clock gives seconds that only grow, and the names can't be guessed."""
        self._now = now
        self._name = name
        self._known: OrderedDict[str, tuple[float, str]] = OrderedDict()
        self._shares = PartyShares(MOST, MOST_OF_ONE)

    def __len__(self) -> int:
        return len(self._known)

    def begin(self, token: str, user: str) -> str:
        """A new session of a user; those idle for too long end, and one more if there are too many."""
        made = self._name()
        self._known[made] = (self._now(), token)
        while self._idle(next(iter(self._known))):
            self.end(next(iter(self._known)))
        lost = self._shares.take(made, user)
        if lost is not None:
            self.end(lost)
        return made

    def _idle(self, session: str) -> bool:
        return self._now() - self._known[session][0] > IDLE_SECONDS

    def token(self, session: str) -> str | None:
        """The token of a session that goes on; None: there is none, or it has been idle for too long."""
        if session not in self._known:
            return None
        if self._idle(session):
            self.end(session)
            return None
        token = self._known[session][1]
        self._known[session] = (self._now(), token)
        self._known.move_to_end(session)
        self._shares.use(session)
        return token

    def end(self, session: str) -> None:
        """End a session; an unknown one is no error."""
        self._known.pop(session, None)
        self._shares.leave(session)
