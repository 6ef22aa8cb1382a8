"""Jobs that can't be started: they give back their quota, which they would hold without using it.

The API server may refuse the start for good: the Job is as large as its store takes, or a policy of another
product keeps it suspended. The Workload competes again when the Job has changed, or after a while.
"""

import asyncio
from typing import Final

from admitter.cache.views import JobView
from admitter.client.errors import ApiError, ConflictError, NotFoundError, is_retryable
from admitter.client.signal import Signal
from admitter.client.store import Key

TRIED_AGAIN_SECONDS: Final = 300.0
"""The policy that refuses may be gone by then."""
_TOO_LARGE: Final = "request is too large"
"""What etcd says; the API server passes it on as a failure of its own."""


def is_for_good(error: ApiError) -> bool:
    """Whether the API server would refuse the same start again and again."""
    if _TOO_LARGE in str(error):
        return True
    return not isinstance(error, ConflictError | NotFoundError) and not is_retryable(error)


class RefusedStarts:
    """Remembers which Jobs, as they were then, could not be started, and why.

    Attributes:
        over: the start of the Job of the Workload with this key is to be tried again.
    """

    def __init__(self, seconds: float = TRIED_AGAIN_SECONDS) -> None:
        """A refusal counts for so many seconds at most."""
        self._seconds = seconds
        self.over: Signal[[Key]] = Signal()
        self._refused: dict[str, tuple[int, str]] = {}

    def note(self, job: JobView, error: ApiError) -> str:
        """Remember a refusal; returns it in words."""
        words = f"its Job can't be started: {error}"
        self._refused[job.uid] = (job.version, words)
        key = (job.namespace, job.workload)
        asyncio.get_running_loop().call_later(self._seconds, self._forget, job.uid, words, key)
        return words

    def barred(self, before: JobView, after: JobView) -> None:
        """A Job was written, with nothing that could change the refusal."""
        version, words = self._refused.get(before.uid, (None, ""))
        if version == before.version:
            self._refused[before.uid] = (after.version, words)

    def why(self, job: JobView) -> str | None:
        """Why a Job need not be tried as it is; None if it may be."""
        version, words = self._refused.get(job.uid, (None, None))
        return words if version == job.version else None

    def _forget(self, uid: str, words: str, key: Key) -> None:
        if self._refused.get(uid, (0, ""))[1] is words:
            del self._refused[uid]
            self.over(key)
