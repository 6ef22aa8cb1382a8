"""Why a pod is not ready, by its status alone."""

from typing import Any

import pytest

from admitter.cache.pod_readiness import LONGEST_DETAIL, Cause, Trouble, trouble_of

Json = dict[str, Any]

ON_NODE: Json = {"nodeName": "n"}
SCHEDULER = (
    "0/6 nodes are available: 6 Insufficient nvidia.com/gpu. preemption: 0/6 nodes are available: "
    "6 No preemption victims found for incoming pod."
)


def scheduled(status: str, message: str = "") -> Json:
    return {"conditions": [{"type": "PodScheduled", "status": status, "message": message}]}


def waiting(reason: str, message: str = "", **more: Any) -> Json:
    state = {"waiting": {"reason": reason, "message": message}}
    return {"containerStatuses": [{"name": "main", "image": "train:2", "state": state, **more}]}


def ready(value: str) -> Json:
    return {"phase": "Running", "conditions": [{"type": "Ready", "status": value}]}


@pytest.mark.parametrize(
    ("spec", "status", "trouble"),
    [
        (ON_NODE, ready("True"), None),
        (ON_NODE, {"phase": "Succeeded"}, None),
        ({}, {}, Trouble(Cause.UNANSWERED)),
        (
            {},
            scheduled("False", SCHEDULER),
            Trouble(Cause.NO_NODE, "0/6 nodes are available: 6 Insufficient nvidia.com/gpu"),
        ),
        (ON_NODE, scheduled("True"), Trouble(Cause.STARTING)),
        (ON_NODE, waiting("ImagePullBackOff"), Trouble(Cause.IMAGE, "ImagePullBackOff train:2")),
        (ON_NODE, waiting("ErrImagePull"), Trouble(Cause.IMAGE, "ErrImagePull train:2")),
        (
            ON_NODE,
            waiting("CreateContainerConfigError", 'configmap "a" not found'),
            Trouble(Cause.CONFIGURATION, 'configmap "a" not found'),
        ),
        (
            ON_NODE,
            waiting("CrashLoopBackOff", lastState={"terminated": {"exitCode": 3}}),
            Trouble(Cause.CRASHES, "container main: exit code 3"),
        ),
        (ON_NODE, waiting("ContainerCreating"), Trouble(Cause.STARTING)),
        (ON_NODE, ready("False"), Trouble(Cause.NOT_READY)),
        (ON_NODE, {"phase": "Failed", "reason": "Evicted"}, Trouble(Cause.FAILED, "Evicted")),
    ],
)
def test_the_trouble_of_a_pod(spec: Json, status: Json, trouble: Trouble | None) -> None:
    assert trouble_of({}, spec, status) == trouble


def test_a_pod_that_is_deleted_is_not_ready_for_long() -> None:
    gone = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert trouble_of(gone, ON_NODE, ready("False")) == Trouble(Cause.LEAVING)


def test_pods_in_the_same_trouble_share_it_and_keep_little() -> None:
    first, second = (trouble_of({}, {}, scheduled("False", "x" * 5000)) for _ in range(2))
    assert first is second
    assert first is not None
    assert len(first.detail) == LONGEST_DETAIL


def test_only_a_pods_own_doing_is_its_blame() -> None:
    others = {cause for cause in Cause if not cause.to_blame}
    assert others == {Cause.NO_NODE, Cause.UNANSWERED, Cause.LEAVING, Cause.MISSING}
