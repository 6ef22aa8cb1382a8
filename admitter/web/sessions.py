"""Who is logged in: a cookie says nothing but which session, and the token stays here."""

import secrets
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

COOKIE: Final = "admitter-session"
IDLE_SECONDS: Final = 8 * 3600.0
MOST: Final = 1_000


class Sessions:
    """Tokens by session."""

    def __init__(self, now: Callable[[], float], name: Callable[[], str] = secrets.token_urlsafe) -> None:
        """Prepare.

        Args:
            now: tells the time, in seconds that only grow.
            name: makes names that nobody guesses.
        """
        self._now = now
        self._name = name
        self._known: OrderedDict[str, tuple[float, str]] = OrderedDict()

    def begin(self, token: str) -> str:
        """A new session; if there are too many, the one that has been idle longest ends."""
        made = self._name()
        self._known[made] = (self._now(), token)
        if len(self._known) > MOST:
            self._known.popitem(last=False)
        return made

    def token(self, session: str) -> str | None:
        """The token of a session that goes on; None: there is none, or it has been idle for too long."""
        since, token = self._known.get(session, (0.0, ""))
        if not token or self._now() - since > IDLE_SECONDS:
            self._known.pop(session, None)
            return None
        self._known[session] = (self._now(), token)
        self._known.move_to_end(session)
        return token

    def end(self, session: str) -> None:
        """End a session; one that there is not is no error."""
        self._known.pop(session, None)
