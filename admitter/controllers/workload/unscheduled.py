"""Pods of which no scheduler says anything: their template may name one that does not exist.

Where a scheduler finds no node for a pod, the conditions of the pod say so. Where none has the name, nothing
is said, the pods wait for ever, and their Workload holds its quota: at least its user gets an event.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Final

from admitter.api.conditions import EventReason
from admitter.cache.pod_views import PodView
from admitter.cache.world import World
from admitter.client.store import Key
from admitter.controllers.telemetry.events import Events, subject_of
from admitter.policy.status import Clock

ANSWER_SECONDS: Final = 30.0
"""A scheduler that works answers in less, also when a burst of pods has just been made."""
AGAIN_SECONDS: Final = 5.0
"""A process that does not lead looks so often whether it is the one that tells by now."""


@dataclass(eq=False)
class UnscheduledPods:
    """Sends one event for each Workload with pods that no scheduler has answered for."""

    world: World
    events: Events
    clock: Clock
    _timers: dict[Key, asyncio.TimerHandle] = field(default_factory=dict)
    _told: set[Key] = field(default_factory=set)

    def pod_changed(self, pod: PodView, *, gone: bool = False) -> None:
        """A pod came, is another one now, or went."""
        key = (pod.namespace, pod.workload)
        if gone or not pod.unanswered_scheduler:
            self._told.discard(key)
        elif key not in self._timers and key not in self._told:
            self._look_later(key, max(0.0, self._left(pod)))

    def _left(self, pod: PodView) -> float:
        """For how many seconds a scheduler may still answer for a pod; a restart does not begin them anew."""
        return pod.created + ANSWER_SECONDS - self.clock().timestamp()

    def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _look_later(self, key: Key, seconds: float) -> None:
        self._timers[key] = asyncio.get_running_loop().call_later(seconds, self._look, key)

    def _look(self, key: Key) -> None:
        """Tell, if a pod still waits for an answer and has done so for long enough."""
        del self._timers[key]
        waiting = [pod for pod in self.world.pods_named(key) if pod.live and pod.unanswered_scheduler]
        if not waiting:
            return
        oldest = min(waiting, key=lambda pod: pod.created)
        left = self._left(oldest)
        if left > 0:
            self._look_later(key, left)
        elif self.events.closed or not self.world.owners.owns(key):
            self._look_later(key, AGAIN_SECONDS)  # the leader tells; that may be this process by then
        else:
            self._told.add(key)
            self._tell(key, oldest.unanswered_scheduler)

    def _tell(self, key: Key, scheduler: str) -> None:
        job = self.world.job_of(key)
        if job is None:
            return
        words = (
            f"no scheduler has said anything of its pods for {ANSWER_SECONDS:.0f} s: their schedulerName is "
            f"{scheduler}, and there may be none of that name. They hold their quota until they are gone: "
            f"delete the {job.resource.kind}, or pause it by its Workload's spec.active=false and correct "
            "the name"
        )
        self.events.record(subject_of(job), EventReason.NO_SCHEDULER, words, lasting=True)
