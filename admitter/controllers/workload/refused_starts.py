"""Jobs that were admitted and could not be started: they compete again once they have changed, or in a while.

The API server may refuse a start for good: the Job is as large as its store takes, or a policy of another
product keeps it suspended. Or an operator makes Jobs that ask for more than their object does. A change of
the Job may end that, and may also be another note in its annotations every second. So changes count only
after a pause that doubles: else a Job would be admitted, and evicted, with each of them.
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
"""So long a Job that has changed waits after the first refusal; twice as long after each further one."""
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
    number: int  # how many there were in a row
    paused: bool = True  # whether changes of the Job do not count yet


@dataclass(eq=False)
class RefusedStarts:
    """Remembers which Jobs, as they were then, could not be started, and why; for so many seconds at most.

    A pause is `over` when changes of the Job of the Workload with this key count, and when all is forgotten.
    """

    seconds: float = TRIED_AGAIN_SECONDS
    first_pause: float = FIRST_PAUSE_SECONDS
    over: Signal[[Key]] = field(default_factory=Signal)
    _refused: dict[str, _Refusal] = field(default_factory=dict)

    def note(self, job: JobView, why: object) -> str:
        """Remember that a Job can't be started; returns it in words."""
        words = f"its {job.resource.kind} can't be started: {why}"
        earlier = self._refused.get(job.uid)
        refusal = _Refusal(job.version, words, earlier.number + 1 if earlier is not None else 1)
        self._refused[job.uid] = refusal
        key, loop = (job.namespace, job.workload), asyncio.get_running_loop()
        pause = min(self.seconds, self.first_pause * 2 ** (refusal.number - 1))
        loop.call_later(pause, self._end_pause, refusal, key)
        loop.call_later(self.seconds, self._forget, job.uid, refusal, key)
        return words

    def barred(self, before: JobView, after: JobView) -> None:
        """A Job was written, with nothing that could change the refusal."""
        refusal = self._refused.get(before.uid)
        if refusal is not None and refusal.version == before.version:
            refusal.version = after.version

    def why(self, job: JobView) -> str | None:
        """Why a Job need not be tried as it is; None if it may be."""
        refusal = self._refused.get(job.uid)
        if refusal is None or not (refusal.paused or refusal.version == job.version):
            return None
        return refusal.words

    def _end_pause(self, refusal: _Refusal, key: Key) -> None:
        refusal.paused = False
        self.over(key)

    def _forget(self, uid: str, refusal: _Refusal, key: Key) -> None:
        if self._refused.get(uid) is refusal:
            del self._refused[uid]
            self.over(key)
