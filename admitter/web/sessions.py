"""Sessions of logged-in users: a cookie names only the session, and the token stays here."""

import secrets
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from admitter.web.shares import PartyShares

COOKIE: Final = "admitter-session"
IDLE_SECONDS: Final = 8 * 3600.0
MOST: Final = 5_000
MOST_OF_ONE: Final = 50
"""Sessions of one user, or of all service accounts of a namespace: the idlest of these ends first."""


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
