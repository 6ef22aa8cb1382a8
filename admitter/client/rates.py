"""How often something may happen: so many at once, and so many a second after that."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

MOST_KNOWN: Final = 10_000
"""Sources that are told apart; the one that was heard of longest ago is forgotten, and has all again."""


@dataclass(frozen=True, slots=True)
class Rate:
    """How often.

    Attributes:
        at_once: so many after a pause.
        a_second: so many each second after that.
    """

    at_once: float
    a_second: float


class Rates:
    """What each of many sources has left, and all of them together."""

    def __init__(self, each: Rate, together: Rate, now: Callable[[], float]) -> None:
        """Know no source yet.

        Args:
            each: what one source may do.
            together: what all may do.
            now: tells the time, in seconds that only grow.
        """
        self._each = each
        self._together = together
        self._now = now
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._all = (now(), together.at_once)

    def allows(self, source: str) -> bool:
        """Whether a source may now; then it has done so."""
        now = self._now()
        mine = self._filled(self._left.pop(source, (now, self._each.at_once)), self._each, now)
        ours = self._filled(self._all, self._together, now)
        allowed = mine >= 1 and ours >= 1
        self._left[source] = (now, mine - allowed)
        self._all = (now, ours - allowed)
        if len(self._left) > MOST_KNOWN:
            self._left.popitem(last=False)
        return allowed

    @staticmethod
    def _filled(known: tuple[float, float], rate: Rate, now: float) -> float:
        since, left = known
        return min(rate.at_once, left + (now - since) * rate.a_second)
