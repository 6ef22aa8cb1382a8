"""A user with the role `edit` that tries to get more than its quota, and how long it takes to stop it."""

import json
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from admitter.sandbox.cluster import Cluster, KubectlError
from tests.cluster.objects import Json
from tests.cluster.waiting import eventually

REFUSED_SECONDS = 30
"""The API server answers in milliseconds; the rest is kubectl's, on a machine with other tests."""
UNDONE_SECONDS = 120
"""The controller answers a change in less than a second, and pods that are deleted end in some more;
so it is with the successor of one that another test kills."""

log = logging.getLogger("abuse")


@dataclass(frozen=True)
class Attacker:
    """A user that may edit one namespace.

    Attributes:
        user: the cluster, as the user sees it.
        namespace: the user's.
    """

    user: Cluster
    namespace: str

    def kubectl(self, *arguments: str, content: str | None = None) -> str:
        """Run kubectl as the user in its namespace; deletions do not wait."""
        wait = ["--wait=false"] if arguments[0] == "delete" else []
        return self.user.run_kubectl(*arguments, *wait, f"--namespace={self.namespace}", content=content)

    def create(self, *manifests: Json) -> None:
        """Create objects, past the checks of kubectl itself."""
        content = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)})
        self.kubectl("create", "--filename=-", "--validate=false", content=content)

    def patch(self, kind: str, name: str, change: Json, *options: str) -> None:
        """Merge a change into an object."""
        self.kubectl("patch", kind, name, "--type=merge", f"--patch={json.dumps(change)}", *options)

    def job(self, name: str) -> Json:
        """A Job as it is now."""
        return self.user.read("job", name, f"--namespace={self.namespace}")

    @contextmanager
    def refused(self, words: str) -> Iterator[None]:
        """What is tried in it is refused in these words, soon."""
        start = time.monotonic()
        with pytest.raises(KubectlError, match=words):
            yield
        self._took("refused", words, time.monotonic() - start, REFUSED_SECONDS)

    def undone(self, condition: Callable[[], object], what: str) -> None:
        """Wait until what was tried is undone."""
        start = time.monotonic()
        eventually(condition, what=what, timeout=UNDONE_SECONDS)
        self._took("undone", what, time.monotonic() - start, UNDONE_SECONDS)

    def _took(self, how: str, what: str, seconds: float, most: float) -> None:
        log.info("%s in %.2f s: %s", how, seconds, what)
        assert seconds < most, f"{what}: {how} only after {seconds:.1f} s"
