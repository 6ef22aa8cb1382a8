"""What Kubernetes does with StatefulSets: it makes pods of low numbers, and deletes those of high ones."""

import asyncio
from collections.abc import Callable
from typing import Any

from tests.apiserver.job_controller import is_live
from tests.apiserver.server import ApiServer

Json = dict[str, Any]

ACT_SECONDS = 0.1


class StatefulSetController:
    """Makes the pods of StatefulSets in order, each once the one before runs, and deletes them in that order.

    One with the podManagementPolicy Parallel makes and deletes them at once.

    Attributes:
        works: whether it does anything.
    """

    def __init__(self, server: ApiServer, make: Callable[[Json, str], None]) -> None:
        """Act from now on; `make` makes a pod of a StatefulSet with a name."""
        self._server = server
        self._make = make
        self.works = True
        server.listen(self._changed)

    def _changed(self, plural: str, before: Json | None, after: Json | None) -> None:
        changed = after or before
        if plural not in {"statefulsets", "pods"} or changed is None:
            return
        metadata = changed["metadata"]
        named = [owner["name"] for owner in metadata.get("ownerReferences") or ()]
        for name in named if plural == "pods" else [metadata["name"]]:
            asyncio.get_running_loop().call_later(ACT_SECONDS, self._act, (metadata["namespace"], name))

    def _act(self, key: tuple[str, str]) -> None:
        """Take one step: the next one follows the change that it makes."""
        found = self._server.objects["statefulsets"].get(key)
        if found is None or not self.works:
            return
        replicas, ordered = found["spec"]["replicas"], found["spec"]["podManagementPolicy"] == "OrderedReady"
        for number in range(replicas):
            pod = self._pod(key, number)
            if pod is None:
                self._make(found, f"{key[1]}-{number}")
            elif not is_live(pod):
                self._remove(key, number)
            if ordered and (pod is None or (pod.get("status") or {}).get("phase") != "Running"):
                return
        beyond = [number for number in range(replicas, replicas + 100) if self._pod(key, number) is not None]
        for number in beyond[-1:] if ordered else beyond:
            self._remove(key, number)

    def _pod(self, key: tuple[str, str], number: int) -> Json | None:
        return self._server.objects["pods"].get((key[0], f"{key[1]}-{number}"))

    def _remove(self, key: tuple[str, str], number: int) -> None:
        self._server.remove(f"/api/v1/namespaces/{key[0]}/pods/{key[1]}-{number}")
