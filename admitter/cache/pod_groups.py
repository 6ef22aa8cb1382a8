"""Groups of queued pods as job objects, kept up to date pod by pod.

A group is no object of the API server: it is what its pods say. What is added up here changes by one pod at a
time, so that a change in a group of a thousand costs no more than one in a group of two.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from typing import Final

from admitter.cache.job_resources import POD_GROUP, PodSetView, titled
from admitter.cache.queued_pods import QueuedPod, pod_job, without_injected
from admitter.cache.stateful_sets import StatefulSetView
from admitter.cache.views import JobView, Json
from admitter.client.sharing import shared
from admitter.client.store import Key, Store
from admitter.names import WORKLOAD_LABEL

MOST_SHAPES: Final = 8
"""So many pod sets a Workload has at most."""
_DIGITS: Final = 12


@dataclass(frozen=True, slots=True)
class GroupView(JobView):
    """A group of queued pods; two of one name, by two users, differ in their UIDs.

    Its `problem` is one that no other pod can make good.
    """

    first: tuple[str, str] = ("", "")  # name and UID of its oldest pod, which events on the group are about

    @property
    def key(self) -> Key:
        return (self.namespace, f"{self.name}:{self.uid}")


def ended_as(pod: QueuedPod) -> str:
    """What a pod that has succeeded is remembered by in the status of its Workload."""
    return sha256(pod.uid.encode()).hexdigest()[:_DIGITS]


class PodGroup:
    """The pods of a group, and how many of each shape wait, run and have ended.

    Attributes:
        members: all of them that are there, by name.
        waiting: how many of a shape have the gate, and are not being deleted.
        running: how many of a shape have been started and use quota, also while they take their time to end.
        succeeded: those of a shape that have succeeded, as the status of a Workload remembers them, and the
            UID of the Workload that each was started for.
        gone: the same of those that have been deleted since; until the status has them they are known here.
        failed: how many have failed.
        leaving: how many of the running ones are being deleted.
        lost: how many have failed that no other pod may take the place of.
        apart: its pods that are queued by themselves, since it has no place for them, and have not ended.
        replicas: how many pods its StatefulSet is to have; None: it is not known to have one.
    """

    def __init__(self, pod: QueuedPod) -> None:
        self.namespace, self.name, self.uid = pod.namespace, pod.group, pod.group_uid
        self.queue, self.workload, self.owner = pod.queue, pod.workload, pod.owner
        self.members: dict[str, QueuedPod] = {}
        self.waiting, self.running = Counter[str](), Counter[str]()
        self.succeeded: dict[str, dict[str, str]] = {}
        self.gone: dict[str, dict[str, str]] = {}
        self.apart: dict[str, QueuedPod] = {}
        self.failed = self.leaving = self.lost = 0
        self.replicas: int | None = None
        self.created = pod.created
        self._waiting_sizes, self._running_sizes = Counter[int](), Counter[int]()
        self._oversized = Counter[int]()
        self._flags = Counter[str]()
        self._templates: dict[str, Json] = {}
        self._oldest: QueuedPod | None = pod
        self._newest: QueuedPod | None = pod

    def put(self, old: QueuedPod | None, new: QueuedPod | None) -> None:
        """A pod came, changed or went."""
        if old is not None:
            self._add(old, -1)
            del self.members[old.name]
            if new is None and old.succeeded:
                self.gone.setdefault(old.shape, {})[ended_as(old)] = old.workload_uid
            stays = new is not None or bool(self.members)  # what is under way may ask one that is gone
            if self._oldest is not None and self._oldest.uid == old.uid and stays:
                self._oldest = None
            if stays:
                self._age_again(old)
        if new is not None:
            self.members[new.name] = new
            self._add(new, 1)
            if self._oldest is not None and _is_alive(new):
                self._oldest = min(new, self._oldest, key=_age) if _is_alive(self._oldest) else new
            if self._newest is not None and _is_alive(new):
                self._newest = max(new, self._newest, key=_age) if _is_alive(self._newest) else new

    def put_apart(self, old: QueuedPod | None, new: QueuedPod | None) -> None:
        """A pod that is queued by itself came, changed or went."""
        if old is not None:
            del self.apart[old.name]
            self._age_again(old)
        if new is not None:
            self.apart[new.name] = new
            self._newest = max(new, self._newest, key=_age) if self._newest is not None else None

    def _age_again(self, gone: QueuedPod) -> None:
        if self._newest is not None and self._newest.uid == gone.uid:
            self._newest = None

    def _add(self, pod: QueuedPod, by: int) -> None:
        self._flags.update(dict.fromkeys(_flags(pod), by))
        if pod.gated:
            if not pod.deleting:
                self.waiting[pod.shape] += by
                self._waiting_sizes[pod.size] += by
                self._oversized[pod.oversized] += by
                self._know(pod)
        elif pod.running:
            self.running[pod.shape] += by
            self._running_sizes[pod.size] += by
            self.leaving += by * pod.deleting
            self._know(pod)
        elif pod.succeeded:
            ended = self.succeeded.setdefault(pod.shape, {})
            if by > 0:
                ended[ended_as(pod)] = pod.workload_uid
            else:
                ended.pop(ended_as(pod), None)
        else:
            self.failed += by
            self.lost += by * (not pod.retriable)

    def _know(self, pod: QueuedPod) -> None:
        if pod.shape not in self._templates:
            self._templates[pod.shape] = shared(without_injected(pod.template, pod.injected))

    @property
    def oldest(self) -> QueuedPod:
        """The oldest pod of those that wait or run; of others if there are none."""
        if self._oldest is None:
            pods = self.members.values()
            self._oldest = min(filter(_is_alive, pods), key=_age, default=None) or min(pods, key=_age)
        return self._oldest

    @property
    def newest(self) -> QueuedPod:
        """The newest likewise, also of those that are queued by themselves."""
        if self._newest is None:
            pods = [*self.members.values(), *self.apart.values()]
            self._newest = max(filter(_is_alive, pods), key=_age, default=None) or max(pods, key=_age)
        return self._newest

    @property
    def serving(self) -> bool:
        return self._flags["serving"] > 0

    @property
    def fast(self) -> bool:
        """Whether it is admitted before all of its pods are there."""
        return self._flags["fast"] > 0

    @property
    def retriable(self) -> bool:
        """Whether other pods may take the places of those that fail or are evicted."""
        return not self._flags["lost if it fails"]

    @property
    def sizes(self) -> list[int]:
        """The sizes that pods of it name: of those that run, if any do; else of those that wait.

        One that serves may change its size: its StatefulSet says how many it is to have, or its newest pod.
        """
        if self.serving:
            size = self.replicas if self.replicas is not None else self.newest.size
            return [max(0, size - len(self.apart))]
        named = self._running_sizes if any(self.running.values()) else self._waiting_sizes
        return sorted(size for size, pods in named.items() if pods > 0)

    @property
    def size(self) -> int:
        """The largest of them; of one with ended pods alone, that of its oldest."""
        return max(self.sizes, default=self.oldest.size)

    @property
    def alive(self) -> Counter[str]:
        """How many pods of a shape wait or run."""
        return self.waiting + self.running

    def is_over(self) -> str:
        """`Complete` or `Failed` once no pod of it will run any more, as far as they tell; else empty.

        Pods that wait may begin a new life of it: what has failed may be of an earlier one.
        """
        if self.serving or any(self.running.values()) or any(self.waiting.values()):
            return ""
        if self.lost:
            return "Failed"
        return "Complete" if sum(map(len, self.succeeded.values())) >= self.size > 0 else ""

    def pods(self, *, gated: bool) -> list[QueuedPod]:
        """Those that wait, the oldest first, or those that run."""
        if not (self.waiting if gated else self.running).total():
            return []
        found = (
            pod for pod in self.members.values() if (pod.gated and not pod.deleting if gated else pod.running)
        )
        return sorted(found, key=_age)

    def look(self) -> tuple[object, ...]:
        """All that the view of it is made of: as long as this is the same, so is the view."""
        runs = any(self.running.values())
        return (
            runs,
            any(self.waiting.values()),
            frozenset(self.alive.items()),
            tuple(self.sizes),
            frozenset(size for size, pods in self._oversized.items() if pods > 0),
            frozenset((shape, len(ended)) for shape, ended in self.succeeded.items()),
            self.failed,
            frozenset(flag for flag, pods in self._flags.items() if pods > 0),
            self.oldest.uid if not runs else "",
            self.oldest.priority_class,
            self.oldest.runtime.get("maxRuntime"),
            self.oldest.checkpoint,
        )

    def view(self, version: int) -> GroupView:
        """It as a job object."""
        oldest, runs = self.oldest, any(self.running.values())
        if not runs:
            self.created = oldest.created
        alone = pod_job(oldest)
        asked = self._asked(runs=runs)
        problem = f"its pods have {len(asked)} shapes, at most {MOST_SHAPES} are counted"
        sets = tuple(
            PodSetView(shape, pods, self._templates[shape], {}, ()) for shape, pods in sorted(asked.items())
        )
        fields = {name: getattr(alone, name) for name in JobView.__dataclass_fields__}
        return GroupView(
            **fields
            | {
                "name": titled(POD_GROUP.group, POD_GROUP.kind, self.name),
                "uid": self.uid,
                "version": version,
                "created": self.created,
                "deleting": False,
                "injected": "",
                "oversized": max((size for size, pods in self._oversized.items() if pods > 0), default=0),
                "spec": shared(
                    {**alone.spec, "suspend": not runs, "template": self._template(oldest, asked)}
                ),
                "template_metadata": {"labels": {WORKLOAD_LABEL: self.workload}} if runs else {},
                "status": self._status(runs=runs),
                "pod_sets": sets if len(sets) <= MOST_SHAPES else (),
                "resource": POD_GROUP,
                "problem": problem if len(sets) > MOST_SHAPES else "",
            },
            first=(oldest.name, oldest.uid),
        )

    def _asked(self, *, runs: bool) -> dict[str, int]:
        """How many pods of a shape it asks for: those that are missing are taken as of the oldest's shape."""
        asked = self.alive
        ended = 0 if self.serving else sum(map(len, self.succeeded.values()))
        missing = self.size - asked.total() - ended
        if self.fast and not runs and missing > 0 and len(self.sizes) == 1:
            asked[self.oldest.shape] += missing
        return dict(asked)

    def _template(self, oldest: QueuedPod, asked: dict[str, int]) -> Json:
        """A pod's spec with what is asked of the group as a whole."""
        of_pods = [self._templates[shape] for shape in asked]
        merged = {
            part: [each for template in of_pods for each in template.get(part) or ()]
            for part in ("containers", "initContainers", "resourceClaims")
        }
        name = oldest.template.get("priorityClassName")
        return merged | ({"priorityClassName": name} if name else {})

    def _status(self, *, runs: bool) -> Json:
        """What it says, in the words of a Job's status."""
        conditions = {"Suspended": {"status": str(not runs), "message": ""}}
        over = self.is_over()
        if over:
            conditions[over] = {"status": "True", "message": ""}
        made: Json = shared(
            {
                "active": int(runs),
                "terminating": 0,
                "succeeded": sum(map(len, self.succeeded.values())),
                "startTime": None,
                "conditions": conditions,
            }
        )
        return made


def _is_alive(pod: QueuedPod) -> bool:
    return not pod.over and not (pod.gated and pod.deleting)


def _age(pod: QueuedPod) -> tuple[float, str]:
    return pod.age


def _flags(pod: QueuedPod) -> list[str]:
    flags = {"serving": pod.serving, "fast": pod.fast, "lost if it fails": not pod.retriable}
    return [name for name, holds in flags.items() if holds]


class PodGroups:
    """All groups of queued pods."""

    def __init__(self, pods: Store[QueuedPod], sets: Store[StatefulSetView]) -> None:
        # with the names of GroupViews; a group of the same identity may come again once it is gone
        self.jobs: Store[JobView] = Store(remembered=0)
        self._groups: dict[str, PodGroup] = {}
        self._looks: dict[str, tuple[object, ...]] = {}
        # pods that are queued by themselves, by UID of their group, also if that has no others
        self._apart: dict[str, dict[str, QueuedPod]] = {}
        self._by_owner: defaultdict[str, set[str]] = defaultdict(set)
        self._versions = count(1)
        self._sets = sets
        pods.follow(self._changed)
        sets.listen(self._set_changed)

    def get(self, uid: str) -> PodGroup | None:
        """A group by its UID."""
        return self._groups.get(uid)

    def _changed(self, old: QueuedPod | None, new: QueuedPod | None) -> None:
        before = old.group_uid if old is not None and old.queued and old.is_member else ""
        after = new.group_uid if new is not None and new.queued and new.is_member else ""
        if before and before != after:
            self._put(before, old, None)
        if after and new is not None:
            if after not in self._groups:
                self._groups[after] = self._made(new)
            self._put(after, old if before == after else None, new)
        self._put_apart(_apart(old), _apart(new))

    def _made(self, pod: QueuedPod) -> PodGroup:
        """A group, of which this is the first pod."""
        group = PodGroup(pod)
        for apart in self._apart.get(group.uid, {}).values():
            group.put_apart(None, apart)
        if group.owner is not None:
            self._by_owner[group.owner.uid].add(group.uid)
            group.replicas = self._replicas(group)
        return group

    def _replicas(self, group: PodGroup) -> int | None:
        """How many pods the StatefulSet is to have that has the name of a group and is its owner."""
        found = self._sets.get((group.namespace, group.name))
        return found.replicas if found is not None and found.uid == _owner_uid(group) else None

    def _put_apart(self, old: QueuedPod | None, new: QueuedPod | None) -> None:
        if old is not None and new is not None and old.uid == new.uid:
            return  # its age and what it says of the group stay
        for before, after in ((old, None), (None, new)):
            pod = before or after
            if pod is None:
                continue
            apart = self._apart.setdefault(pod.group_uid, {})
            if after is not None:
                apart[after.name] = after
            else:
                del apart[pod.name]
            if not apart:
                del self._apart[pod.group_uid]
            group = self._groups.get(pod.group_uid)
            if group is not None:
                group.put_apart(before, after)
                self._look(group.uid)

    def _set_changed(self, old: StatefulSetView | None, new: StatefulSetView | None) -> None:
        for owner in {view.uid for view in (old, new) if view is not None}:
            for uid in list(self._by_owner.get(owner, ())):
                self._groups[uid].replicas = self._replicas(self._groups[uid])
                self._look(uid)

    def _put(self, uid: str, old: QueuedPod | None, new: QueuedPod | None) -> None:
        group = self._groups[uid]
        group.put(old, new)
        if not group.members:
            del self._groups[uid], self._looks[uid]
            self._forget_owner(group)
            self.jobs.delete(group_key(group), uid)
            return
        self._look(uid)

    def _forget_owner(self, group: PodGroup) -> None:
        owner = _owner_uid(group)
        if owner in self._by_owner:
            self._by_owner[owner].discard(group.uid)
            if not self._by_owner[owner]:
                del self._by_owner[owner]

    def _look(self, uid: str) -> None:
        """Have the view of a group made anew if it has changed."""
        group = self._groups[uid]
        look = group.look()
        if self._looks.get(uid) != look:
            self._looks[uid] = look
            self.jobs.apply(group.view(next(self._versions)))


def _apart(pod: QueuedPod | None) -> QueuedPod | None:
    """A pod, if it is queued by itself since its group has no place for it, and has not ended."""
    return pod if pod is not None and pod.queued and pod.beyond and not pod.over else None


def _owner_uid(group: PodGroup) -> str:
    return group.owner.uid if group.owner is not None else ""


def group_key(group: PodGroup) -> Key:
    """The key of a group's view."""
    return (group.namespace, f"{titled(POD_GROUP.group, POD_GROUP.kind, group.name)}:{group.uid}")
