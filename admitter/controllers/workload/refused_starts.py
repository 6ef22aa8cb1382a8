"""Jobs that were admitted and could not be started: they compete again once they have changed, or in a while.

The API server may refuse a start for good: the Job is as large as its store takes, or a policy of another
product keeps it suspended. Or an operator makes Jobs that ask for more than their object does. A change of
the Job may end that, and may also be another note in its annotations every second. So changes count only
after a pause that doubles, from when its quota is free: else a Job would be admitted, and evicted, with each.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Final

from admitter.cache.views import JobView
from admitter.client.errors import ApiError, ConflictError, NotFoundError, is_retryable
from admitter.client.signal import Signal
from admitter.client.store import Key

TRIED_AGAIN_SECONDS: Final = 300.0
"""The policy that refuses may be gone by then."""
FIRST_PAUSE_SECONDS: Final = 10.0
"""So long a Job that has changed waits after the first refusal; after each further one twice as long, at most
`TRIED_AGAIN_SECONDS`."""
_TOO_LARGE: Final = "request is too large"
"""What etcd says; the API server passes it on as a failure of its own."""


def is_for_good(error: ApiError) -> bool:
    """Whether the API server would refuse the same start again and again."""
    passes = isinstance(error, ConflictError | NotFoundError) or is_retryable(error)
    return not passes or _TOO_LARGE in str(error)


@dataclass(eq=False)
class _Refusal:
    version: int  # of the Job that could not be started
    words: str
    number: int  # how many there were, none of them long after the one before
    counts: bool = True  # whether the Job is not to be tried as it was then
    paused: bool = True  # whether it is not to be tried either if it has changed
    held: bool = True  # whether it holds its quota yet
    timers: list[asyncio.TimerHandle] = field(default_factory=list)


@dataclass(eq=False)
class RefusedStarts:
    """Remembers which Jobs, as they were then, could not be started, and why.

    `over` says for which Workload changes of its Job count from now on, or the refusal does no more.
    """

    over: Signal[[Key]] = field(default_factory=Signal)
    _refused: dict[str, _Refusal] = field(default_factory=dict)

    def note(self, job: JobView, words: str) -> None:
        """Remember that a Job can't be started as it is, and that it is about to give its quota back."""
        earlier = self._refused.get(job.uid)
        number = 1
        if earlier is not None:
            number += earlier.number
            _cancel(earlier)
        refusal = self._refused[job.uid] = _Refusal(job.version, words, number)
        self._time(job, refusal)

    def released(self, before: JobView, after: JobView) -> None:
        """A Job has given its quota back; what was written to it changes nothing of a refusal."""
        refusal = self._refused.get(before.uid)
        if refusal is None or not refusal.held:
            return
        refusal.held, refusal.paused, refusal.counts = False, True, True
        if refusal.version == before.version:
            refusal.version = after.version
        _cancel(refusal)
        self._time(after, refusal)

    def why(self, job: JobView) -> str | None:
        """Why a Job need not be tried as it is; None if it may be."""
        refusal = self._refused.get(job.uid)
        if refusal is None or not (refusal.paused or (refusal.counts and refusal.version == job.version)):
            return None
        return refusal.words

    def _time(self, job: JobView, refusal: _Refusal) -> None:
        """Have the pause end, then the refusal, and in the end the number of refusals be forgotten."""
        key, call_later = (job.namespace, job.workload), asyncio.get_running_loop().call_later
        pause = min(TRIED_AGAIN_SECONDS, FIRST_PAUSE_SECONDS * 2 ** min(refusal.number - 1, 20))
        refusal.timers = [
            call_later(pause, self._end_pause, refusal, key),
            call_later(TRIED_AGAIN_SECONDS, self._end, refusal, key),
            call_later(2 * TRIED_AGAIN_SECONDS, self._refused.pop, job.uid, None),
        ]

    def _end_pause(self, refusal: _Refusal, key: Key) -> None:
        refusal.paused = False
        self.over(key)

    def _end(self, refusal: _Refusal, key: Key) -> None:
        refusal.paused = refusal.counts = False
        self.over(key)


def _cancel(refusal: _Refusal) -> None:
    for timer in refusal.timers:
        timer.cancel()
