"""Checks each start of a queued pod, and each end, against what its Workload holds at that moment.

The watcher of `tests.abuse` adds up bound pods: it would not notice a pod that runs without an admission
while there is room. Here pods and Workloads of the namespaces of queued pods are told in one order, that of
resource versions (`tests.faults.timeline`), and read with no code of Admitter's:

- a pod without its gate is marked for a Workload that holds an admission, or that a user has deleted a
  moment ago while a start was on its way;
- what is admitted of a group is all of its pods but those that have succeeded, and no more of them run. A pod
  that an eviction ends has not succeeded, however it exits. One that its user deletes in the moment in which
  it succeeds may be forgotten, when a leader dies that had not yet written it down;
- no Workload gives its quota back while a pod that was started for it may run;
- a pod that is gone before its end was deleted by a user, by an eviction that says so, or because its group
  had too many.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tests.faults.api import CORE, OWN
from tests.faults.follow import Scope
from tests.faults.timeline import Moment

Json = dict[str, Any]

GATE: Final = {"name": "admitter.dev/admission"}
GRACE_SECONDS: Final = 60.0
"""So long after its cause what was decided before may still happen."""
MOST_FINDINGS: Final = 50


@dataclass(frozen=True, slots=True)
class PodFact:
    """A queued pod.

    Attributes:
        name: namespace and name.
        group: the group that it names; empty for none.
        size: how many pods that has; of a pod by itself 1.
        workload: the UID of the Workload that it is marked for; empty for none.
        gated: whether it has to wait.
        live: whether it has not ended.
        succeeded: whether it has done its work.
        evicted: whether an eviction has written into it why it is deleted.
    """

    name: str
    group: str
    size: int
    workload: str
    gated: bool
    live: bool
    succeeded: bool
    evicted: bool

    @property
    def runs(self) -> bool:
        """Whether it has been started and has not ended."""
        return self.live and not self.gated

    @property
    def crew(self) -> tuple[str, str]:
        """Its namespace, and its group; by itself it is one of its own."""
        namespace, _, name = self.name.partition("/")
        return namespace, self.group or f"pod {name}"


@dataclass(frozen=True, slots=True)
class ClaimFact:
    """A Workload of queued pods.

    Attributes:
        name: namespace and name.
        places: for how many pods it holds quota; None: it holds none.
    """

    name: str
    places: int | None


def read(kind: str, raw: Json) -> PodFact | ClaimFact | None:
    """What counts of an object; None if nothing does.

    Args:
        kind: its collection, as in `scope`.
        raw: the object.
    """
    metadata, status = raw["metadata"], raw.get("status") or {}
    name = f"{metadata['namespace']}/{metadata['name']}"
    conditions = status.get("conditions") or ()
    if kind.endswith("/workloads"):
        made = status.get("admission")
        finished = any(c["type"] == "Finished" and c["status"] == "True" for c in conditions)
        places = sum(each["count"] for each in made["podSets"]) if made and not finished else None
        return ClaimFact(name, places)
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    group, phase = labels.get("admitter.dev/pod-group", ""), status.get("phase")
    return PodFact(
        name,
        group,
        int(annotations["admitter.dev/pod-group-size"]) if group else 1,
        annotations.get("admitter.dev/workload-uid", "") if "admitter.dev/workload" in labels else "",
        GATE in (raw["spec"].get("schedulingGates") or ()),
        phase not in {"Succeeded", "Failed"},
        phase == "Succeeded" and not is_evicted(raw),
        is_evicted(raw),
    )


def is_evicted(pod: Json) -> bool:
    """Whether an eviction has written into a pod why it is deleted."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(
        c["type"] == "DisruptionTarget" and c.get("reason") == "PreemptionByAdmitter" for c in conditions
    )


def scope(namespaces: tuple[str, ...]) -> Scope:
    """What it has to be told of.

    Args:
        namespaces: those of queued pods.
    """
    paths = {f"{n}/pods": f"{CORE}/namespaces/{n}/pods" for n in namespaces}
    paths |= {f"{n}/workloads": f"{OWN}/namespaces/{n}/workloads" for n in namespaces}
    return Scope(paths, read)


@dataclass
class Crew:
    """A group, or a pod by itself.

    Attributes:
        there: its pods that have not ended, by UID.
        succeeded: the UIDs of those that have succeeded.
        kept: of these, those that are still there, so that they can't be forgotten.
        rewritten: the UIDs of those that had ended otherwise before they were said to have succeeded: by what
            stands in for a kubelet, after a user let them fail. They may count as either.
        crowded: when it last had more pods than it may have, in seconds.
    """

    there: dict[str, PodFact] = field(default_factory=dict)
    succeeded: set[str] = field(default_factory=set)
    kept: set[str] = field(default_factory=set)
    rewritten: set[str] = field(default_factory=set)
    crowded: float | None = None


@dataclass
class Starts:
    """Takes what the API server tells, and checks.

    Attributes:
        deleted: namespace and name of the pods that users have deleted.
        findings: what was wrong, in words.
        counts: what was checked.
    """

    deleted: set[str] = field(default_factory=set)
    findings: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    _pods: dict[str, PodFact] = field(default_factory=dict)
    _claims: dict[str, ClaimFact] = field(default_factory=dict)
    _gone: dict[str, float] = field(default_factory=dict)
    """UIDs of Workloads that were deleted while they held an admission, and when, in seconds."""
    _crews: defaultdict[tuple[str, str], Crew] = field(default_factory=lambda: defaultdict(Crew))
    _done: set[tuple[str, str]] = field(default_factory=set)
    _running: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """UIDs of the pods that run, by that of the Workload."""

    def take(self, uid: str, fact: PodFact | ClaimFact | None, moment: Moment) -> None:
        """Enter what became of an object; None if it was deleted.

        Args:
            uid: of the object.
            fact: what it is now.
            moment: since when.
        """
        if isinstance(fact, ClaimFact):
            self._claim(uid, fact, moment)
        elif isinstance(fact, PodFact):
            self._pod(uid, fact, moment)
        elif uid in self._claims:
            if self._claims.pop(uid).places is not None:
                self._gone[uid] = moment.heard
        elif uid in self._pods:
            self._pod_gone(uid, moment)

    def settle(self, moment: Moment) -> None:
        """Everything up to a moment is known again: check what runs then.

        A Workload that is not there may have come and gone meanwhile, by a user's hand.
        """
        for workload, pods in self._running.items():
            if not workload or workload in self._claims:
                for uid in pods:
                    self._may_run(self._pods[uid], moment)
        for crew, found in self._crews.items():
            self._no_more_than_whole(crew, found, moment)

    def is_done(self, namespace: str, group: str) -> bool:
        """Whether as many pods of a group have succeeded as it has, also some that are gone by now."""
        return (namespace, group) in self._done

    def close(self) -> list[str]:
        """What was wrong; in the end nothing runs."""
        left = sorted(self._pods[uid].name for pods in self._running.values() for uid in pods)
        return [*self.findings, *(f"pod {name} still runs in the end" for name in left)]

    def _claim(self, uid: str, fact: ClaimFact, moment: Moment) -> None:
        before = self._claims.get(uid)
        self._claims[uid] = fact
        held = before is not None and before.places is not None
        self.counts["admissions of queued pods"] += fact.places is not None and not held
        if held and fact.places is None and moment.exact and self._running[uid]:
            names = ", ".join(sorted(self._pods[pod].name for pod in self._running[uid]))
            self._find(moment, f"the quota of Workload {fact.name} was released while {names} may run")

    def _pod(self, uid: str, fact: PodFact, moment: Moment) -> None:
        before = self._pods.get(uid)
        if before is not None and not before.live:
            if fact.succeeded and not before.succeeded:
                self._crews[fact.crew].rewritten.add(uid)
            fact = replace(fact, live=False, succeeded=before.succeeded)
        self._pods[uid] = fact
        crew = self._crews[fact.crew]
        self._enter(uid, before, fact)
        if fact.runs and (before is None or before.gated):
            self.counts["starts of queued pods"] += 1
            if moment.exact:
                self._may_run(fact, moment)
                self._whole(fact, crew, moment)
        if fact.group and len(crew.succeeded) >= fact.size:
            self._done.add(fact.crew)
        if len(crew.there) + len(crew.succeeded) > fact.size:
            crew.crowded = moment.heard
        if moment.exact:
            self._no_more_than_whole(fact.crew, crew, moment)

    def _pod_gone(self, uid: str, moment: Moment) -> None:
        pod = self._pods.pop(uid)
        crew = self._crews[pod.crew]
        self._enter(uid, pod, None)
        if not pod.live or pod.evicted or pod.name in self.deleted or not moment.exact:
            return
        crowded = crew.crowded is not None and moment.heard - crew.crowded <= GRACE_SECONDS
        if pod.gated and pod.group and crowded:
            self.counts["queued pods beyond their group deleted"] += 1
        else:
            self._find(moment, f"pod {pod.name} was lost: it is gone and had not ended ({pod})")

    def _enter(self, uid: str, before: PodFact | None, now: PodFact | None) -> None:
        """Keep what is derived of a pod."""
        if before is not None:
            self._crews[before.crew].there.pop(uid, None)
            self._crews[before.crew].kept.discard(uid)
            self._running[before.workload].discard(uid)
        if now is not None and now.live:
            self._crews[now.crew].there[uid] = now
        if now is not None and now.succeeded:
            self._crews[now.crew].succeeded.add(uid)
            self._crews[now.crew].kept.add(uid)
        if now is not None and now.runs:
            self._running[now.workload].add(uid)

    def _may_run(self, pod: PodFact, moment: Moment) -> None:
        claim = self._claims.get(pod.workload)
        if claim is not None and claim.places is not None:
            return
        gone = self._gone.get(pod.workload)
        if gone is not None and moment.heard - gone <= GRACE_SECONDS:
            self.counts["queued pods that run when their Workload was just deleted"] += 1
            return
        words = "is gone" if claim is None else "holds no admission"
        marked = f"its Workload {words}" if pod.workload else "it is marked for no Workload"
        self._find(moment, f"pod {pod.name} runs without an admission: {marked}")

    def _whole(self, pod: PodFact, crew: Crew, moment: Moment) -> None:
        """What holds quota for a pod that starts does so for all of its group."""
        claim = self._claims.get(pod.workload)
        if claim is None or claim.places is None:
            return
        if not pod.size - len(crew.succeeded | crew.rewritten) <= claim.places <= pod.size:
            words = f"pod {pod.name} was started on {claim.places} places, and its group has {pod.size} pods"
            self._find(moment, f"{words}, of which {len(crew.succeeded)} have succeeded")

    def _no_more_than_whole(self, name: tuple[str, str], crew: Crew, moment: Moment) -> None:
        running = [pod for pod in crew.there.values() if pod.runs]
        done = len(crew.kept)
        if running and len(running) + done > running[0].size:
            words = f"{len(running)} pods of {'/'.join(name)} run and {done} have succeeded"
            self._find(moment, f"{words}, of {running[0].size}")

    def _find(self, moment: Moment, words: str) -> None:
        self.counts["findings"] += 1
        if len(self.findings) < MOST_FINDINGS:
            self.findings.append(f"at version {moment.version}: {words}")
