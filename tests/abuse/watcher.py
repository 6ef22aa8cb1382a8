"""An observer of bound pods against quota, which knows nothing of what the controller believes.

A pod uses quota from when it is bound to a node until it has ended, for what it requests itself, in the queue
that its Job named when it was started, or that it names itself if a user made it by hand: tenants give such
pods names that tell (`HAND`). In a managed namespace every pod does; elsewhere those with a queue, and where
an elastic quota manages all Jobs those of the other Jobs too. What does not count are, outside of managed
namespaces, pods of a Job without a queue that came to an API server at its start: it can't read quotas yet,
and lets the Job pass; the controller stops it a moment later (docs/elastic-quota.md). So it is with each
object of a described kind that names no queue.

It is fed in the order of resource versions (`tests.faults.timeline`), and limits are those of the quotas that
it sees (`tests.faults.limits`).
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from tests.abuse.scene import FLAVORS, GROUNDS, Ground
from tests.apiserver.experiments import GROUP
from tests.faults import facts
from tests.faults.api import BATCH, CORE, OWN
from tests.faults.facts import Key, QuotaFact
from tests.faults.follow import Scope
from tests.faults.limits import Limits
from tests.faults.timeline import Moment
from tests.quantities import pod_requests

Json = dict[str, Any]

HAND: Final = "hand-"
"""What names of pods that users make themselves start with."""
BOUND: Final = f"{HAND}bound-"
"""What names of those start with that may name their node: outside of managed namespaces they run at once.

A copy of a pod that waits has such a name and no node: it is a queued pod like any other.
"""
MOST_FINDINGS: Final = 50
STARTING_SECONDS: Final = 30.0
"""So long after its start what an API server has let pass may be heard of."""
LABEL: Final = "admitter.dev/queue-name"
PATHS: Final = {
    "nodes": f"{CORE}/nodes",
    "jobs": f"{BATCH}/jobs",
    "experiments": f"/apis/{GROUP}/v1/experiments",
    "pods": f"{CORE}/pods",
    "clusterqueues": f"{OWN}/clusterqueues",
    "elasticquotas": f"{OWN}/elasticquotas",
}
"""What it looks at."""


@dataclass(frozen=True, slots=True)
class JobSeen:
    """A Job, or an Experiment, which is of a described kind.

    Attributes:
        name: namespace and name.
        label: the queue that it names; empty for none.
        open: whether it may have pods.
        described: whether it is no Job.
    """

    name: str
    label: str
    open: bool
    described: bool = False


@dataclass(frozen=True, slots=True)
class PodSeen:
    """A pod.

    Attributes:
        name: namespace and name.
        label: the queue that it names itself; empty for none.
        job: the UID of the Job that controls it; empty if none does.
        node: where it is bound; empty if it is not.
        live: whether it has not ended.
        selector: the labels of nodes that it asks for.
        requests: what it requests, in thousandths, itself as one of `pods`.
    """

    name: str
    label: str
    job: str
    node: str
    live: bool
    selector: tuple[tuple[str, str], ...]
    requests: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """The labels of a node."""

    labels: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Finding:
    """What was wrong.

    Attributes:
        words: what, and with which pods.
        about: namespace and name of the Jobs involved, and further words.
    """

    words: str
    about: tuple[str, ...]


@dataclass(slots=True)
class Account:
    """What a pod uses.

    Attributes:
        queue: the one with the quota; empty for a pod that was given none.
        job: namespace and name of its Job, and the queue that this named when it was started; of a pod
            without a Job, the same of itself.
        use: how much of it now.
    """

    queue: str
    job: str
    use: tuple[tuple[Key, int], ...] = ()


def read(kind: str, raw: Json, namespaces: Collection[str]) -> object:
    """What counts of an object; None if nothing does.

    Args:
        kind: the plural of its kind.
        raw: the object.
        namespaces: those with the Jobs and pods that count.
    """
    if kind in {"clusterqueues", "elasticquotas"}:
        return facts.parse(kind, raw)
    metadata, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    if kind == "nodes":
        return NodeSeen(_pairs(metadata.get("labels")))
    name = f"{metadata['namespace']}/{metadata['name']}"
    if metadata["namespace"] not in namespaces:
        return None
    label = (metadata.get("labels") or {}).get(LABEL, "")
    if kind == "jobs":
        return JobSeen(name, label, not spec.get("suspend"))
    if kind == "experiments":
        return JobSeen(name, label, spec.get("state") != "Stopped", described=True)
    owners = metadata.get("ownerReferences") or ()
    return PodSeen(
        name,
        label,
        next((o["uid"] for o in owners if o["kind"] in {"Job", "Experiment"} and o.get("controller")), ""),
        spec.get("nodeName") or "",
        status.get("phase") not in {"Succeeded", "Failed"},
        _pairs(spec.get("nodeSelector")),
        tuple(sorted((pod_requests(spec) | Counter({"pods": 1000})).items())),
    )


def _pairs(labels: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((labels or {}).items()))


@dataclass
class Watcher:
    """Takes what the API server tells, and checks.

    Attributes:
        grounds: the namespaces with the pods that count.
        described: whether there are Experiments; without their definition they can't be listed.
        server_starts: when the API server was started anew, in seconds.
        findings: what was wrong.
        counts: how many pods were bound, and how often use was checked.
        highest: of each limit that was checked, the most that was used of it, in hundredths.
    """

    grounds: tuple[Ground, ...] = GROUNDS
    described: bool = True
    server_starts: list[float] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    highest: dict[str, int] = field(default_factory=dict)
    _limits: Limits = field(default_factory=Limits)
    _nodes: dict[str, NodeSeen] = field(default_factory=dict)
    _jobs: dict[str, JobSeen] = field(default_factory=dict)
    _started: dict[str, str | None] = field(default_factory=dict)
    _let_pass: set[str] = field(default_factory=set)
    _accounts: dict[str, Account | None] = field(default_factory=dict)
    _early: dict[str, dict[str, PodSeen]] = field(default_factory=lambda: defaultdict(dict))
    _using: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    _use: dict[str, Counter[Key]] = field(default_factory=lambda: defaultdict(Counter))
    _unchecked: dict[tuple[str, Key], int] = field(default_factory=dict)

    @property
    def scope(self) -> Scope:
        """What it has to be told of."""
        paths = {kind: path for kind, path in PATHS.items() if self.described or kind != "experiments"}
        return Scope(paths, partial(read, namespaces={ground.namespace for ground in self.grounds}))

    def take(self, uid: str, fact: object, moment: Moment) -> None:
        """Enter what became of an object; None if it was deleted.

        Args:
            uid: of the object; of a queue, its name.
            fact: what it is now.
            moment: since when.
        """
        if isinstance(fact, QuotaFact) or uid in self._limits.queues:
            quota = fact if isinstance(fact, QuotaFact) else None
            self._limits.take(uid, quota, moment.version, moment.heard)
        elif isinstance(fact, NodeSeen):
            self._nodes[uid] = fact
        elif isinstance(fact, JobSeen):
            self._job(uid, fact, moment)
        elif isinstance(fact, PodSeen):
            self._pod(uid, fact, moment)
        else:
            for pods in self._early.values():
                pods.pop(uid, None)
            if uid in self._accounts:
                self._ends(uid, self._accounts.pop(uid))

    def settle(self, moment: Moment) -> None:
        """Everything up to a moment is known again: check what use has grown meanwhile."""
        early, self._early = self._early, defaultdict(dict)
        for job in early.keys() & self._jobs.keys():  # of others nothing is beyond doubt
            self._started.setdefault(job, None)
            for uid, pod in early[job].items():
                self._pod(uid, pod, moment)
        unchecked, self._unchecked = self._unchecked, {}
        for (queue, key), before in unchecked.items():
            if self._use[queue][key] > before:
                self._within(queue, [key], moment)

    def used(self, queue: str) -> Counter[Key]:
        """What is used of a queue, in thousandths."""
        return +self._use[queue]

    def _job(self, uid: str, fact: JobSeen, moment: Moment) -> None:
        before = self._jobs.get(uid)
        self._jobs[uid] = fact
        if fact.open and (before is None or not before.open):
            self._started[uid] = fact.label if moment.exact else None
            starting = any(at <= moment.heard <= at + STARTING_SECONDS for at in self.server_starts)
            if before is None and (starting or fact.described) and not self._started[uid]:
                self._let_pass.add(uid)
            for pod_uid, pod in self._early.pop(uid, {}).items():
                self._pod(pod_uid, pod, moment)

    def _pod(self, uid: str, fact: PodSeen, moment: Moment) -> None:
        """A pod; while order is unknown, one of a Job that was not seen started yet waits for that.

        What was not heard of comes in the order of last changes, and a Job changes after its pods.
        """
        if uid not in self._accounts and fact.job and fact.job not in self._started and not moment.exact:
            self._early[fact.job][uid] = fact
            return
        if uid not in self._accounts:
            self._accounts[uid] = self._account(fact, moment)
        account = self._accounts[uid]
        if account is None:
            return
        if not fact.node or not fact.live:
            self._ends(uid, account)
            return
        use = self._of(fact, account.queue)
        if use == account.use:
            return
        self.counts["pods bound"] += not account.use
        self.counts["queued pods bound"] += not account.use and fact.job == "" and bool(fact.label)
        job = self._jobs.get(fact.job)
        self.counts["pods of a described kind bound"] += not account.use and job is not None and job.described
        before, account.use = dict(account.use), use
        total = self._use[account.queue]
        grown = [key for key, amount in use if amount > before.get(key, 0)]
        for key in grown if not moment.exact else ():
            self._unchecked.setdefault((account.queue, key), total[key])
        total.subtract(before)
        total.update(dict(use))
        self._using[account.queue][uid] = fact.name
        if not account.queue:
            self._find(moment, f"pod {fact.name} runs without any quota", [account.job])
        elif moment.exact:
            self._within(account.queue, grown, moment)

    def _ends(self, uid: str, account: Account | None) -> None:
        if account is not None and account.use:
            self._use[account.queue].subtract(dict(account.use))
            account.use = ()
            self._using[account.queue].pop(uid, None)

    def _account(self, pod: PodSeen, moment: Moment) -> Account | None:
        """Which quota a new pod uses; None if it does not count."""
        namespace, _, name = pod.name.partition("/")
        ground = next(each for each in self.grounds if each.namespace == namespace)
        job = self._jobs.get(pod.job)
        if name.startswith(BOUND) and pod.node and not ground.managed and not pod.label:
            return None
        if name.startswith(BOUND) and pod.node and moment.exact:  # it had its node from the first
            return Account("", f"{pod.name} (which names its node)")
        if name.startswith(HAND) or job is None:
            queue = ground.queue_of(pod.label)
            named = f"{pod.name} (queue that it names: {pod.label or 'none'})"
            return Account(queue, named) if queue or ground.managed else None
        label = self._started.get(pod.job, "")
        named = f"{job.name} (queue at its start: {label or 'none'})"
        if label is None:  # it was started while order was unknown
            label = job.label if ground.managed else ""
        if not label and ground.all_count and (ground.managed or pod.job not in self._let_pass):
            label = "elastic-quota"
        if not label and not ground.managed:
            return None
        return Account(ground.queue_of(label), named)

    def _of(self, pod: PodSeen, queue: str) -> tuple[tuple[Key, int], ...]:
        """What a pod uses of a queue; of what no quota names, its queue or flavor is not told."""
        known = self._limits.queues.get(queue)
        covered = {key[1] for key, _ in (*known.least, *known.most)} if known is not None else set()
        pool = queue.startswith("eq_")
        flavor = "" if pool else self._flavor(pod)
        return tuple(((flavor, r), amount) for r, amount in pod.requests if r in covered or not queue)

    def _flavor(self, pod: PodSeen) -> str:
        """The flavor of its node; of one bound to a node that it may not run on, the one that it asks for."""
        node = next((dict(n.labels) for n in (self._nodes.get(pod.node),) if n is not None), {})
        asked = dict(pod.selector)
        labels = asked if asked.items() - node.items() else node
        found = (f for f, spec in FLAVORS.items() if spec["nodeLabels"].items() <= labels.items())
        return next(found, "")

    def _within(self, queue: str, keys: Iterable[Key], moment: Moment) -> None:
        known = self._limits.queues.get(queue)
        for key in keys:
            self.counts["checked"] += 1
            limit = self._limits.of_queue(queue, key, 0, moment.heard)
            if known is not None and key not in dict((*known.least, *known.most)):
                limit = 0
            self._compare(moment, f"queue {queue}", [queue], key, limit)
            if known is not None and known.cohort:
                members = self._limits.members(known.cohort)
                together = self._limits.of_cohort(known.cohort, key, 0, moment.heard)
                self._compare(moment, f"cohort {known.cohort}", members, key, together)

    def _compare(self, moment: Moment, limited: str, queues: list[str], key: Key, limit: int | None) -> None:
        if limit is None:
            return
        used = sum(self._use[queue][key] for queue in queues)
        name = f"{limited}: {' '.join(filter(None, key))}"
        self.highest[name] = max(self.highest.get(name, 0), used * 100 // limit if limit else 0)
        if used > limit:
            pods = sorted((pod, uid) for queue in queues for uid, pod in self._using[queue].items())
            accounts = [(pod, account) for pod, uid in pods if (account := self._accounts[uid]) is not None]
            of_jobs: dict[str, list[str]] = defaultdict(list)
            for pod, account in accounts:
                if dict(account.use).get(key):
                    of_jobs[account.job].append(f"{pod.partition('/')[2]} {dict(account.use)[key]}")
            words = "; ".join(f"Job {job}: {', '.join(pods)}" for job, pods in sorted(of_jobs.items()))
            self._find(moment, f"{used} of {limit} of {name} is used. {words}", sorted(of_jobs))

    def _find(self, moment: Moment, words: str, about: list[str]) -> None:
        self.counts["findings"] += 1
        if len(self.findings) < MOST_FINDINGS:
            self.findings.append(Finding(f"at version {moment.version}: {words}", tuple(about)))
