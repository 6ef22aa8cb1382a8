"""What only groups of queued pods do: starts one by one, pods too many, pods that are made anew, and the end.

Previous step: `workload.jobs` has found that a key is a group's. All of it follows from the pods that there
are and the status of the Workload, so a new process goes on where the last one ended.
"""

from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final
from weakref import WeakKeyDictionary

from admitter.api.conditions import ConditionType, EventReason, EvictedReason, FinishedReason, WaitingReason
from admitter.cache.job_resources import GROUP_SORT, POD, sort_of
from admitter.cache.pod_groups import PodGroup
from admitter.cache.queued_pods import QueuedPod, pod_job
from admitter.cache.timestamps import seconds
from admitter.cache.views import JobView, Json, WorkloadView
from admitter.cache.world import World, workload_path
from admitter.client.errors import NotFoundError
from admitter.client.signal import Signal
from admitter.client.store import Key
from admitter.client.transport import Transport
from admitter.controllers.telemetry.events import Events, Subject
from admitter.controllers.workload.pod_writes import pod_path, read_group, side_by_side
from admitter.controllers.workload.writes import delete_workload
from admitter.names import BEYOND_GROUP_ANNOTATION
from admitter.policy import pod_groups, status
from admitter.policy.status import Clock

SHORT_SECONDS: Final = 2.0
"""For so long a group may lack pods before its Workload says so: most are there by then."""
RECORD_SECONDS: Final = 1.0
"""So long after a pod has succeeded its Workload remembers it, and all since: then their places are free."""
REPLACED_SECONDS: Final = 10.0
"""For so long a group without pods keeps its places, if its StatefulSet is to have some."""
KEPT_SECONDS: Final = 3600.0
"""For so long a Workload stays that is over, once all pods of its group are gone."""

Start = Callable[[JobView], Awaitable[None]]
"""Starts a pod that is admitted."""


def has_had_its_time(workload: WorkloadView) -> bool:
    """Whether a Workload is over since it held quota for as long as it might."""
    ended = workload.condition(ConditionType.FINISHED)
    return workload.finished and ended.get("reason") == FinishedReason.MAX_RUNTIME_EXCEEDED


def is_group(workload: WorkloadView) -> bool:
    """Whether a Workload is that of a group."""
    return workload.job is not None and sort_of(workload.job[0]) == GROUP_SORT


@dataclass(eq=False)
class GroupJobs:
    """Brings groups and their Workloads together, one step a call."""

    world: World
    events: Events
    transport: Transport
    clock: Clock
    again: Signal[[Key, float]] = field(default_factory=Signal)  # a step is due after so many seconds
    # when what has succeeded is remembered, by UID of the Workload
    _due: dict[str, float] = field(default_factory=dict)
    # since when a group has no pods though it is to have some, by UID of the Workload
    _empty: dict[str, float] = field(default_factory=dict)
    # how many places of a group no pod has taken, and since when they have not become more
    _idle: WeakKeyDictionary[PodGroup, tuple[int, float]] = field(default_factory=WeakKeyDictionary)

    def group_of(self, job: JobView) -> PodGroup | None:
        return self.world.pod_groups.get(job.uid)

    def is_early(self, job: JobView) -> bool:
        """Whether a group without a Workload lacks pods that are likely to come in a moment.

        So does one with more pods than its StatefulSet is known to have: that was scaled up just now.
        """
        group = self.group_of(job)
        if group is None:
            return False
        behind = group.serving and group.size < group.alive.total()
        if not behind and pod_groups.complaint(None, group) is None:
            return False
        left = job.created + SHORT_SECONDS - self.clock().timestamp()
        if left > 0:
            self.again((job.namespace, job.workload), left)
        return left > 0

    def end_of(self, job: JobView, workload: WorkloadView) -> tuple[FinishedReason, str] | None:
        """How a group has ended; None if pods of it may still run."""
        group = self.group_of(job)
        if group is None or group.running.total() or group.serving:
            return None
        ended = pod_groups.succeeded_count(workload, group)
        if ended >= group.size > 0:
            return FinishedReason.JOB_SUCCEEDED, f"{ended} pods have succeeded"
        lost = _lost(group, workload) if not workload.evicting else None
        if lost is not None:
            words = lost.words or "a pod has failed that no other takes the place of"
            return FinishedReason.JOB_FAILED, words
        return None

    async def admitted(self, job: JobView, workload: WorkloadView, start: Start) -> bool:
        """Start pods that have a place, delete those that are too many, remember those that succeeded.

        A group that serves has none too many: those without a place are queued by themselves.
        False if nothing of it runs, and no pod that waits has a place: it must be admitted anew.
        """
        group = self.group_of(job)
        if group is None:
            return True
        self._empty.pop(workload.uid, None)
        free = pod_groups.places(workload, group) - group.running
        chosen: list[QueuedPod] = []
        rest: list[QueuedPod] = []
        for pod in group.pods(gated=True):
            fits = free[pod.shape] > 0 and (group.serving or pod.size == group.size)
            free[pod.shape] -= fits
            (chosen if fits else rest).append(pod)
        await side_by_side(self._start(pod, start) for pod in chosen)
        if rest:
            deleted = await self.trim(group, workload)
            left = [pod for pod in rest if pod.name not in deleted]
            if left and not chosen and not group.running.total():
                return False
            if group.serving:
                await side_by_side(map(self._part, pod_groups.beyond(workload, group, left)))
            else:
                self._tell_rest(workload, group, left, free)
        if group.serving:
            await self._lower(workload, group)
        if not await self._give_back(workload, group):
            await self._record(workload, group)
        return True

    async def _part(self, pod: QueuedPod) -> None:
        """Have a pod queued by itself that its group has no place for; as it was seen, and so not started."""
        metadata = {"resourceVersion": str(pod.version), "annotations": {BEYOND_GROUP_ANNOTATION: "true"}}
        with suppress(NotFoundError):
            self.world.take_pod(await self.transport.patch(pod_path(pod), {"metadata": metadata}))

    async def _lower(self, workload: WorkloadView, group: PodGroup) -> None:
        """Give places back that a group which serves has no use for any more, and so for good.

        All pods are read first: an earlier leader may be about to start one that is not known here.
        """
        assert workload.admission is not None
        if pod_groups.lowered(workload.admission, group) is workload.admission:
            return
        await self.read_members(workload)
        left = pod_groups.lowered(workload.admission, group)
        term = self.world.shards.epoch_of(workload.admission.queue)
        if group.members and left is not workload.admission and term is not None:
            await self._patch(workload, status.lowered(workload, left, term))

    @staticmethod
    async def _start(pod: QueuedPod, start: Start) -> None:
        with suppress(NotFoundError):  # it is gone, and a watch will say so
            await start(pod_job(pod))

    def _tell_rest(
        self, workload: WorkloadView, group: PodGroup, rest: list[QueuedPod], free: Counter[str]
    ) -> None:
        """Tell pods that were not admitted with their group why they wait."""
        assert workload.admission is not None
        known = {each.name for each in workload.admission.pod_sets}
        for pod in rest:
            if pod.size != group.size:
                words = f"it says that its group has {pod.size} pods, and those that run say {group.size}"
                self._tell(pod, WaitingReason.POD_GROUP_SIZES_DIFFER, words)
            elif pod.shape not in known or (free.total() > 0 and not group.leaving):
                words = "its group was admitted without a pod that asks for the same: it gets no place in it"
                self._tell(pod, WaitingReason.NO_PLACE_IN_GROUP, words)
            elif pod_groups.lapsed_of(workload)[pod.shape] and not group.leaving:
                words = (
                    "it came too late for its place, which was given back: it waits for the end of the others"
                )
                self._tell(pod, WaitingReason.NO_PLACE_IN_GROUP, words)

    async def trim(self, group: PodGroup, workload: WorkloadView | None) -> set[str]:
        """Delete the newest pods that wait, and are more than the size of the group; returns their names."""
        if group.serving or len(group.sizes) != 1:
            return set()
        there = group.waiting.total() + group.running.total() - group.leaving
        excess = there - pod_groups.wanted(workload, group)
        if excess <= 0:
            return set()
        waiting = [pod for pod in group.pods(gated=True) if pod.size == group.size]
        doomed = waiting[-excess:]
        await side_by_side(self._delete(pod, group) for pod in doomed)
        return {pod.name for pod in doomed}

    async def _delete(self, pod: QueuedPod, group: PodGroup) -> None:
        """Delete a pod that waits; as the API server has it now, since one that runs is not deleted."""
        with suppress(NotFoundError):
            raw = await self.transport.get(pod_path(pod))
            self.world.take_pod(raw)
            now = self.world.queued_pods.get(pod.key)
            if now is None or now.uid != pod.uid or not now.gated or now.deleting:
                return
            conditions = {"uid": now.uid, "resourceVersion": str(now.version)}
            await self.transport.delete(pod_path(pod), {"preconditions": conditions})
            words = f"deleted: group {group.name} has {group.size} pods without it"
            self.events.record(_subject(pod), EventReason.EXCESS, words)

    async def _give_back(self, workload: WorkloadView, group: PodGroup) -> bool:
        """Give places back that no pod has taken for long enough; whether that has been written."""
        now, idle = self.clock().timestamp(), pod_groups.idle(workload, group)
        known = self._idle.get(group)
        if known is None:  # a new process waits no longer than the last one would have
            since = _failed_since(group, idle.total()) or now
        else:
            since = known[1] if idle.total() <= known[0] else now
        self._idle[group] = (idle.total(), since)
        left = since + pod_groups.REMADE_SECONDS - now
        if idle and left > 0:
            self.again(workload.key, left)
        if not idle or left > 0:
            return False
        await self.read_members(workload)  # an earlier leader may have started one that is not known here
        if pod_groups.idle(workload, group) != idle:
            return False  # a change of one of its pods brings us here again
        lapsed = pod_groups.lapsed_of(workload) + idle
        ended = pod_groups.ended_json(workload, group, earlier=False)
        listed = pod_groups.with_lapsed(ended, lapsed)
        body = status.given_back(workload, listed, lapsed.total(), pod_groups.REMADE_SECONDS)
        await self._patch(workload, body)
        return True

    async def _record(self, workload: WorkloadView, group: PodGroup) -> None:
        """Remember in the status which pods have succeeded, once they have done so for a while."""
        now, due = self.clock().timestamp(), self._due.get(workload.uid)
        if group.serving or (due is None and not any(group.succeeded.values()) and not group.gone):
            return
        if (
            due is None or now >= due
        ):  # not at each change: to compare all of them takes as long as they are many
            ended = pod_groups.ended_json(workload, group, earlier=False)
            listed = pod_groups.with_lapsed(ended, pod_groups.lapsed_of(workload))
            self._due.pop(workload.uid, None)
            if _number(listed) == _number(workload.status.get("succeededPods") or []):
                return
            if due is not None:
                await self._patch(workload, status.remembered(workload, listed))
                return
            due = self._due[workload.uid] = now + RECORD_SECONDS
        self.again(workload.key, due - now)

    async def waiting(self, job: JobView, workload: WorkloadView) -> bool:
        """Delete pods that are too many; whether there is anything that the Workload is to ask for."""
        group = self.group_of(job)
        if group is None:
            return True
        await self.trim(group, workload)
        if pod_groups.complaint(workload, group) is None:
            return True
        return await self._is_awaited(workload) and group.waiting.total() > 0

    async def without_waiting(self, job: JobView) -> bool:
        """Delete pods of a group that wait, since it is over; whether none runs.

        The start of one may be on its way: it must not arrive once the quota is free.
        """
        group = self.group_of(job)
        if group is not None:
            await side_by_side(self._delete(pod, group) for pod in group.pods(gated=True))
        return group is None or not group.running.total()

    async def over(self, job: JobView) -> None:
        """The Workload of a group is over: pods that are made now are too many, or begin a new life of it."""
        group = self.group_of(job)
        if group is None or not group.waiting.total() or group.running.total():
            return
        workload = self.world.workloads.get((job.namespace, job.workload))
        if workload is not None and has_had_its_time(workload) and await self._kept_out(group, workload):
            return
        evicted = workload is not None and (
            workload.condition(ConditionType.FINISHED).get("reason") == FinishedReason.EVICTED
        )
        if not evicted and (group.failed or any(group.succeeded.values())):
            doomed = group.pods(gated=True)
            await side_by_side(self._delete(pod, group) for pod in doomed)
        elif workload is not None:
            await delete_workload(workload, self.transport)

    async def _kept_out(self, group: PodGroup, workload: WorkloadView) -> bool:
        """Keep pods out of a group that has had its time; whether there are any.

        Those that waited when it ended are deleted. Those that a controller makes anew wait, since it would
        only make others. What a user makes later begins a new life of the group, also in the same second.
        """
        ended = seconds(workload.condition(ConditionType.FINISHED)["lastTransitionTime"])
        waiting = group.pods(gated=True)
        words = str(workload.condition(ConditionType.FINISHED).get("message", ""))
        made_anew = [pod for pod in waiting if pod.owner is not None]
        for pod in made_anew:
            self._tell(pod, FinishedReason.MAX_RUNTIME_EXCEEDED, words)
        left = [pod for pod in waiting if pod.owner is None and pod.created < ended]
        await side_by_side(self._delete(pod, group) for pod in left)
        return bool(made_anew or left)

    async def without_pods(self, workload: WorkloadView) -> None:
        """The Workload of a group of which no pod is there."""
        await self.read_members(workload)
        if self.world.job_of(workload.key) is not None:
            return  # its change brings us here again
        if workload.finished:
            ended = seconds(workload.condition(ConditionType.FINISHED)["lastTransitionTime"])
            left = ended + KEPT_SECONDS - self.clock().timestamp()
            if left > 0:
                self.again(workload.key, left)
            else:
                await delete_workload(workload, self.transport)
        elif workload.admission is not None and workload.evicting:
            await self.free(workload)
        elif workload.admission is not None and self._is_replaced(workload):
            return
        elif workload.admission is not None or not workload.is_true(ConditionType.EVICTED):
            await delete_workload(workload, self.transport)
        else:
            await self._is_awaited(workload)

    def _is_replaced(self, workload: WorkloadView) -> bool:
        """Whether a StatefulSet of which the last pod went is about to make it anew, as in a rollout."""
        assert workload.job is not None
        made_by = self.world.stateful_sets.get((workload.namespace, workload.job[0].rpartition("/")[2]))
        now = self.clock().timestamp()
        if made_by is not None and made_by.replicas > 0:
            left = self._empty.setdefault(workload.uid, now) + REPLACED_SECONDS - now
            if left > 0:
                self.again(workload.key, left)
                return True
        self._empty.pop(workload.uid, None)
        return False

    async def _is_awaited(self, workload: WorkloadView) -> bool:
        """Whether pods of an evicted group that waits may still be made anew; if not, it is over."""
        if not workload.is_true(ConditionType.EVICTED):
            return True
        freed = seconds(workload.condition(ConditionType.QUOTA_RESERVED)["lastTransitionTime"])
        left = freed + pod_groups.REMADE_SECONDS - self.clock().timestamp()
        if left > 0:
            self.again(workload.key, left)
            return True
        words = f"evicted, and its pods were not made anew within {pod_groups.REMADE_SECONDS:.0f} s"
        await self._patch(workload, status.finished(workload, FinishedReason.EVICTED, words, self.clock()))
        return False

    async def free(self, workload: WorkloadView) -> None:
        """Give back what an evicted group held; it waits again if others may take the places of its pods."""
        if workload.retriable:
            body = status.freed(workload, self.clock())
            group = self.world.pod_groups.get((workload.job or ("", ""))[1])
            ended = pod_groups.ended_json(workload, group, earlier=True)
            if ended:
                body["status"]["succeededPods"] = ended
            await self._patch(workload, body)
            return
        await self._patch(workload, status.finished(workload, *evicted_end(workload), self.clock()))

    async def read_members(self, workload: WorkloadView) -> None:
        """Take in the pods of a group as the API server has them now."""
        assert workload.job is not None
        await read_group(workload.namespace, workload.job[0], self.world, self.transport)

    async def _patch(self, workload: WorkloadView, body: Json) -> None:
        raw = await self.transport.patch(f"{workload_path(workload.key)}/status", body)
        self.world.read_workloads.take(raw)

    def _tell(self, pod: QueuedPod, reason: str, message: str) -> None:
        self.events.record(_subject(pod), reason, message, lasting=True)


def evicted_end(workload: WorkloadView) -> tuple[FinishedReason, str]:
    """How a Workload has ended that is over with its eviction."""
    evicted = workload.condition(ConditionType.EVICTED)
    timed_out = evicted.get("reason") == EvictedReason.MAX_RUNTIME_EXCEEDED
    reason = FinishedReason.MAX_RUNTIME_EXCEEDED if timed_out else FinishedReason.EVICTED
    return reason, str(evicted.get("message", ""))


def _lost(group: PodGroup, workload: WorkloadView) -> QueuedPod | None:
    """A pod that a Workload has started, that has failed, and that no other may take the place of."""
    if not group.lost:
        return None
    failed = (pod for pod in group.members.values() if pod.phase == "Failed" and not pod.retriable)
    return next((pod for pod in failed if pod.workload_uid == workload.uid), None)


def _failed_since(group: PodGroup, places: int) -> float:
    """When the last pod of a group has failed, if so many have that it is of their places; else 0."""
    failed = [pod.failed_at for pod in group.members.values() if pod.phase == "Failed"]
    return max(failed) if places and len(failed) >= places and all(failed) else 0.0


def _number(listed: list[Json]) -> int:
    return sum(len(each.get(part) or ()) for each in listed for part in ("pods", "earlier"))


def _subject(pod: QueuedPod) -> Subject:
    return Subject(POD.api_version, POD.kind, pod.namespace, pod.name, pod.uid)
