"""Whether a pod is ready, and if not, why: told from its status alone.

Kinds of trouble are few, so that pods in the same trouble share one object.
"""

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, Final

Json = dict[str, Any]

LONGEST_DETAIL: Final = 200
"""Characters of what a scheduler or a kubelet says that are kept."""


class Cause(Enum):
    """What keeps a pod from being ready; the value is what messages say of some pods."""

    NO_NODE = "unschedulable"
    IMAGE = "can't pull their image"
    CONFIGURATION = "can't be set up"
    CRASHES = "crash"
    FAILED = "have failed"
    NOT_READY = "run and are not ready"
    STARTING = "have a node and have not started"
    UNANSWERED = "wait for a scheduler"
    LEAVING = "are being deleted"
    MISSING = "have not been made"

    @property
    def to_blame(self) -> bool:
        """Whether it is the pod's own doing; the want of a node, or of a pod, is not."""
        return self not in {Cause.NO_NODE, Cause.UNANSWERED, Cause.LEAVING, Cause.MISSING}


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a pod is not ready."""

    cause: Cause
    detail: str = ""  # in the words of the scheduler or the kubelet


_IMAGE: Final = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ErrImageInspect"}
    | {"RegistryUnavailable", "SignatureValidationFailed"}
)
_CONFIGURATION: Final = frozenset(
    {"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "PreCreateHookError"}
)
_CRASHES: Final = "CrashLoopBackOff"


def is_ready(status: Json) -> bool:
    """Whether a pod's condition Ready holds."""
    return any(
        each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions") or ()
    )


def trouble_of(metadata: Json, spec: Json, status: Json) -> Trouble | None:
    """Why a pod is not ready; None if it is, or has succeeded."""
    phase = status.get("phase") or "Pending"
    if phase == "Succeeded" or (phase == "Running" and is_ready(status)):
        return None
    if "deletionTimestamp" in metadata:
        return _shared(Cause.LEAVING)
    if phase == "Failed":
        return _shared(Cause.FAILED, _text(status.get("message") or status.get("reason")))
    scheduled = next((c for c in status.get("conditions") or () if c["type"] == "PodScheduled"), None)
    if scheduled is not None and scheduled["status"] == "False":
        return _shared(Cause.NO_NODE, _scheduler_says(str(scheduled.get("message") or "")))
    if not spec.get("nodeName"):
        return _shared(Cause.UNANSWERED)
    return _of_containers(status) or _shared(Cause.NOT_READY if phase == "Running" else Cause.STARTING)


def _of_containers(status: Json) -> Trouble | None:
    """What the first container says that has trouble."""
    containers = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    for container in containers:
        waiting = (container.get("state") or {}).get("waiting") or {}
        reason = str(waiting.get("reason") or "")
        if reason in _IMAGE:
            return _shared(Cause.IMAGE, _text(f"{reason} {container.get('image', '')}"))
        if reason in _CONFIGURATION:
            return _shared(Cause.CONFIGURATION, _text(waiting.get("message") or reason))
        ended = (container.get("state") or {}).get("terminated") or {}
        if reason == _CRASHES or ended.get("exitCode"):
            last = ended or (container.get("lastState") or {}).get("terminated") or {}
            code = f"exit code {last['exitCode']}" if "exitCode" in last else reason
            return _shared(Cause.CRASHES, _text(f"container {container.get('name', '')}: {code}"))
    return None


def _scheduler_says(message: str) -> str:
    """What a scheduler says of nodes, without what it says of claims and of preemption."""
    return _text(message.partition(". ")[0].rstrip("."))


def _text(text: object) -> str:
    return str(text or "").strip()[:LONGEST_DETAIL]


@lru_cache(maxsize=1024)
def _shared(cause: Cause, detail: str = "") -> Trouble:
    return Trouble(cause, detail)
