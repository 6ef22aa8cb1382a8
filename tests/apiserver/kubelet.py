"""What Kubernetes does with pods that have no Job: those without a gate run, and come to their end."""

import asyncio
from collections.abc import Callable
from typing import Any

from admitter.client.errors import api_error
from admitter.names import QUEUE_LABEL
from tests.apiserver.job_controller import is_live
from tests.apiserver.server import ApiServer

Json = dict[str, Any]

ACT_SECONDS = 0.2
STOP_SECONDS = 3.0


class Kubelet:
    """Scheduler and kubelet of one server, for pods that name a queue.

    Attributes:
        lasts: for how many seconds a pod runs.
        phase: how a pod ends.
    """

    def __init__(self, server: ApiServer, lasts: Callable[[Json], float] = lambda _: 30.0) -> None:
        """Act from now on."""
        self.lasts = lasts
        self.phase: Callable[[Json], str] = lambda _: "Succeeded"
        self._server = server
        server.grace = _grace
        server.policies.append(_of_kubernetes)
        server.listen(self._changed)

    def _changed(self, plural: str, before: Json | None, after: Json | None) -> None:
        if plural != "pods" or after is None or not is_queued(after) or _gates(after):
            return
        if before is None or _gates(before):
            asyncio.get_running_loop().call_later(ACT_SECONDS, self._run, after)

    def _now(self, pod: Json) -> Json | None:
        metadata = pod["metadata"]
        now = self._server.objects["pods"].get((metadata["namespace"], metadata["name"]))
        return now if now is not None and now["metadata"]["uid"] == metadata["uid"] else None

    def _run(self, pod: Json) -> None:
        now = self._now(pod)
        if now is not None and is_live(now) and "deletionTimestamp" not in now["metadata"]:
            self._say(now, "Running")
            asyncio.get_running_loop().call_later(self.lasts(now), self._finish, now)

    def _finish(self, pod: Json) -> None:
        now = self._now(pod)
        if now is not None and is_live(now) and "deletionTimestamp" not in now["metadata"]:
            self._say(now, self.phase(now))

    def _say(self, pod: Json, phase: str) -> None:
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/status"
        self._server.write(path, {"status": {"phase": phase}})


def is_queued(pod: Json) -> bool:
    """Whether it is no pod of a Job."""
    return QUEUE_LABEL in (pod["metadata"].get("labels") or {})


def _gates(pod: Json) -> list[Json]:
    return pod["spec"].get("schedulingGates") or []


def _grace(plural: str, raw: Json) -> float:
    """Pods that have been started take their time to end."""
    started = plural == "pods" and is_queued(raw) and not _gates(raw) and is_live(raw)
    return STOP_SECONDS if started else 0.0


def _of_kubernetes(plural: str, before: Json | None, after: Json | None) -> None:
    """Gates only go, and only while there is one are labels of nodes added to what a pod selects."""
    if plural != "pods" or before is None or after is None:
        return
    old, new = before["spec"], after["spec"]
    added = [gate for gate in _gates(after) if gate not in _gates(before)]
    selector = old.get("nodeSelector") or {}
    narrowed = all((new.get("nodeSelector") or {}).get(k) == v for k, v in selector.items())
    if added or (old.get("nodeSelector") != new.get("nodeSelector") and not (_gates(before) and narrowed)):
        raise api_error(422, {"reason": "Invalid", "message": "spec: pod updates may not change fields"})
