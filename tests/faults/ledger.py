"""The auditor's books: what every object holds, and every rule that was broken, in words.

It is fed with what the API server says, in the order of resource versions (`tests.faults.timeline`), and
knows nothing of Admitter's code. What a Workload was given counts until it is taken back or over, and
beyond that for as long as its Job may still run: while the Job is not suspended, says that it has pods but
not that it is suspended, or pods that carry its label live.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from tests.faults.facts import Admission, Fact, JobFact, Key, PodFact, QuotaFact, WorkloadFact
from tests.faults.limits import GRACE_SECONDS, Limits
from tests.faults.timeline import Moment

MOST_FINDINGS: Final = 200
RESTART_SECONDS: Final = 30.0
"""So long after the API server's restart there may be pods that the Job controller has made twice.

It makes them again if the answer to their creation was lost, and deletes the surplus.
"""
Place = tuple[str, Key]
"""A queue, and a flavor and resource of it."""


@dataclass(slots=True)
class Account:
    """The Workload of a name, and what is known of it and those that had the name before.

    Attributes:
        fact: as it was seen last.
        born: the resource version at which it was seen first; 0 if it may have been there long before.
        told: the resource version at which the controller had written why it waits; 0 if it has not.
        last: what it was given last.
        since: the resource version at which that was.
        admissions: how often it was given something, at the most.
        gone: whether it is deleted.
        ended: when that was heard of, in seconds.
    """

    fact: WorkloadFact
    born: int
    told: int = 0
    last: Admission | None = None
    since: int = 0
    admissions: int = 0
    gone: bool = False
    ended: float = 0.0

    @property
    def holds(self) -> Admission | None:
        """What it holds by its own status."""
        return None if self.gone or self.fact.finished else self.fact.admission

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return self.fact.name.split("/")[0]


@dataclass(slots=True)
class Work:
    """A Job, and what is known of it.

    Attributes:
        fact: as it was seen last.
        starts: how often its suspension ended.
        opened: when that was heard of last, in seconds; 0 if it may have been long before.
        used_up: how many admissions its starts have used up.
        gone: whether it is deleted.
    """

    fact: JobFact
    starts: int = 0
    opened: float = 0.0
    used_up: int = 0
    gone: bool = False

    @property
    def open(self) -> bool:
        """Whether it may get pods at any moment."""
        return not self.gone and not self.fact.suspended and not self.fact.finished

    @property
    def runs(self) -> bool:
        """Whether it has pods, or may get some."""
        return self.open or (not self.gone and self.fact.active > 0)


@dataclass
class Ledger:
    """Takes facts and checks them.

    Attributes:
        findings: what was wrong, in words.
        trails: what led to it: the last that was heard of the Job.
        counts: Jobs, admissions and so on.
        expected_gone: names of Jobs, or of namespaces, that a user deletes on purpose.
        limits: of all queues.
        server_starts: when the API server was started anew, in seconds.
    """

    findings: list[str] = field(default_factory=list)
    trails: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    expected_gone: set[str] = field(default_factory=set)
    limits: Limits = field(default_factory=Limits)
    server_starts: list[float] = field(default_factory=list)
    _accounts: dict[str, Account] = field(default_factory=dict)
    _jobs: dict[str, Work] = field(default_factory=dict)
    _pods: dict[str, PodFact] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)
    _names_of_job: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    _live: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    _done: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    _twice: Counter[str] = field(default_factory=Counter)
    _waiting: dict[str, dict[str, None]] = field(default_factory=lambda: defaultdict(dict))
    _holding: dict[str, dict[str, None]] = field(default_factory=lambda: defaultdict(dict))
    _booked: dict[str, list[Admission]] = field(default_factory=dict)
    _use: dict[str, Counter[Key]] = field(default_factory=lambda: defaultdict(Counter))
    _unproven: set[str] = field(default_factory=set)
    _unchecked: dict[Place, int] = field(default_factory=dict)
    _trails: dict[str, deque[str]] = field(default_factory=lambda: defaultdict(lambda: deque(maxlen=30)))

    def take(self, uid: str, fact: Fact | None, moment: Moment) -> None:
        """Enter what became of an object; None if it was deleted.

        Args:
            uid: of the object; of a queue, its name.
            fact: what it is now.
            moment: since when.
        """
        if isinstance(fact, QuotaFact) or uid in self.limits.queues:
            queue = fact if isinstance(fact, QuotaFact) else None
            self.limits.take(uid, queue, moment.version, moment.heard)
        elif isinstance(fact, WorkloadFact):
            self._workload(fact, moment)
        elif uid in self._names:
            self._workload_gone(uid, moment)
        elif isinstance(fact, JobFact):
            self._job(fact, moment)
        elif uid in self._jobs:
            self._job_gone(self._jobs[uid], moment)
        elif isinstance(fact, PodFact) or uid in self._pods:
            self._pod(uid, fact if isinstance(fact, PodFact) else None, moment)

    def settle(self, moment: Moment) -> None:
        """Everything up to a moment is known again: check what happened while it was not."""
        for uid in sorted(self._unproven):
            job = self._jobs[uid]
            if job.open and not any(a.last is not None for a in self._accounts_of(uid)):
                self._find(moment, f"Job {job.fact.name} is not suspended and was never admitted")
        self._unproven.clear()
        unchecked, self._unchecked = self._unchecked, {}
        grown = [(queue, key) for (queue, key), before in unchecked.items() if self._use[queue][key] > before]
        self._within("what was not seen", grown, 0, moment)

    def use(self, queue: str) -> Counter[Key]:
        """What is used of a queue's quota."""
        return self._use[queue]

    def unfinished(self) -> list[str]:
        """The Jobs that are not over."""
        return [job.fact.name for job in self._jobs.values() if not job.gone and not job.fact.finished]

    @property
    def idle(self) -> bool:
        """Whether nothing is used."""
        return not any(any(use.values()) for use in self._use.values())

    def close(self) -> None:
        """Say what is not as it has to be in the end, when everything has come to rest."""
        for name in self.unfinished():
            self._find(None, f"Job {name} is not finished in the end")
        for name, use in sorted(self._use.items()):
            left = {key: amount for key, amount in use.items() if amount}
            if left:
                self._find(None, f"{left} of queue {name} is still used in the end")

    def _find(self, moment: Moment | None, words: str, job: str = "") -> None:
        self.counts["findings"] += 1
        if len(self.findings) < MOST_FINDINGS:
            self.findings.append(f"at version {moment.version}: {words}" if moment is not None else words)
            self.trails.append("\n".join((words, *self._trails.get(job, ()))))

    def _note(self, job: str, what: Fact | None, moment: Moment) -> None:
        """Keep what was heard of a Job, so that a finding can be understood."""
        doubt = "" if moment.exact else " (order unknown)"
        self._trails[job].append(f"{moment.version}{doubt}: {what}")

    def _accounts_of(self, job: str) -> list[Account]:
        return [self._accounts[name] for name in sorted(self._names_of_job[job])]

    def _workload(self, fact: WorkloadFact, moment: Moment) -> None:
        self._note(fact.job, fact, moment)
        account = self._accounts.get(fact.name)
        before = account.holds if account is not None and account.fact.uid == fact.uid else None
        if account is None:
            account = self._accounts[fact.name] = Account(fact, 0)
        if fact.uid not in self._names:
            account.born, account.told = (moment.version if moment.exact else 0), 0
            self._names[fact.uid] = fact.name
            self._names_of_job[fact.job].add(fact.name)
        account.fact, account.gone = fact, False
        if fact.told and not account.told:
            account.told = moment.version
        self._compare(account, before, moment)
        self._rebook(fact.name, moment)
        if account.holds is not None and before is None and moment.exact:
            self._order(account, moment)

    def _workload_gone(self, uid: str, moment: Moment) -> None:
        account = self._accounts[self._names.pop(uid)]
        if account.fact.uid == uid:
            self._note(account.fact.job, None, moment)
            account.gone, account.ended = True, moment.heard
            self._list(account)
            self._rebook(account.fact.name, moment)

    def _compare(self, account: Account, before: Admission | None, moment: Moment) -> None:
        """Look at what a Workload holds and held."""
        fact, holds, job = account.fact, account.holds, self._jobs.get(account.fact.job)
        if holds is not None and (before is None or not moment.exact):
            account.admissions += 1
            account.last, account.since = holds, moment.version
        if holds is not None and before is None:
            self.counts["admissions"] += 1
            others = (a for a in self._accounts_of(fact.job) if a is not account)
            if fact.job and any(other.holds is not None for other in others):
                self._find(moment, f"two Workloads of the Job of {fact.name} are admitted")
        elif holds is not None and holds != before and moment.exact:
            self._find(
                moment, f"Workload {fact.name} was admitted again without having been released", fact.job
            )
            account.last = holds
        elif holds is None and before is not None and not fact.finished:
            self.counts["releases"] += 1
            if moment.exact and job is not None and job.open:
                self._find(moment, f"the quota of {fact.name} was released while its Job may run", fact.job)
        self._list(account)

    def _list(self, account: Account) -> None:
        """Enter a Workload among those of its namespace that wait, or that hold something."""
        waits = account.holds is None and not account.fact.finished and not account.gone
        for index, belongs in ((self._waiting, waits), (self._holding, account.holds is not None)):
            if belongs:
                index[account.namespace][account.fact.name] = None
            else:
                index[account.namespace].pop(account.fact.name, None)

    def _job(self, fact: JobFact, moment: Moment) -> None:
        self._note(fact.uid, fact, moment)
        job = self._jobs.get(fact.uid)
        if job is None:
            job = self._jobs[fact.uid] = Work(fact)
            self.counts["jobs"] += 1
            suspended, finished = True, False
        else:
            suspended, finished = job.fact.suspended, job.fact.finished
        job.fact = fact
        self.counts["finished"] += fact.finished and not finished
        if suspended and not fact.suspended:
            self._started(job, moment)
        for name in self._names_of_job[fact.uid]:
            self._rebook(name, moment)

    def _job_gone(self, job: Work, moment: Moment) -> None:
        job.gone = True
        namespace = job.fact.name.split("/")[0]
        if not job.fact.finished:
            self.counts["deleted"] += 1
            if not self.expected_gone & {job.fact.name, namespace}:
                self._find(moment, f"Job {job.fact.name} was lost: it is gone and was not finished")
        for name in self._names_of_job[job.fact.uid]:
            self._rebook(name, moment)
        self._trails.pop(job.fact.uid, None)

    def _started(self, job: Work, moment: Moment) -> None:
        job.starts += 1
        job.opened = moment.heard if moment.exact else 0.0
        self.counts["starts"] += 1
        accounts = self._accounts_of(job.fact.uid)
        admissions = sum(account.admissions for account in accounts)
        if not moment.exact:
            self._unproven.add(job.fact.uid)
        elif self._was_on_its_way(job, accounts, moment):
            self.counts["starts on an admission just deleted"] += 1
        elif not any(account.holds is not None for account in accounts):
            self._find(moment, f"Job {job.fact.name} was started without an admission", job.fact.uid)
        elif admissions <= job.used_up:
            self._find(moment, f"Job {job.fact.name} was started twice on one admission", job.fact.uid)
        job.used_up = admissions

    @staticmethod
    def _was_on_its_way(job: Work, accounts: list[Account], moment: Moment) -> bool:
        """Whether a start may have been sent before a user deleted the Workload that it was for.

        It can't be called back. What it uses counts all the same, and its Job has to stop: a second start on
        the same admission is a fault.
        """
        if any(account.holds is not None for account in accounts):
            return False
        unused = sum(account.admissions for account in accounts) > job.used_up
        deleted = (account for account in accounts if account.gone and account.last is not None)
        return unused and any(moment.heard - account.ended <= GRACE_SECONDS for account in deleted)

    def _pod(self, uid: str, fact: PodFact | None, moment: Moment) -> None:
        known = self._pods.get(uid)
        pod = fact or known
        assert pod is not None
        if fact is None:
            del self._pods[uid]
        else:
            self._pods[uid] = fact
            self.counts["pods"] += known is None
            if fact.succeeded:
                self._done[fact.job].add(uid)
        if fact is not None and fact.live:
            self._live[pod.workload].add(uid)
        else:
            self._live[pod.workload].discard(uid)
        self._runs_once(pod, moment)
        self._rebook(pod.workload, moment)

    def _runs_once(self, pod: PodFact, moment: Moment) -> None:
        """Of one admission no more pods live, or do their work, than the Job asks for.

        Pods of a Job that is evicted may still do their work; then it is done anew by the next admission. If
        the API server ends before it answers, the Job controller makes pods twice, with or without Admitter.
        """
        job = self._jobs.get(pod.job)
        if job is None:
            return
        live, most, name = len(self._live[pod.workload]), job.fact.parallelism, job.fact.name
        if most < live <= 2 * most and self._answers_were_lost(job, moment):
            self.counts["Jobs with pods made twice by the Job controller"] += pod.job not in self._twice
            self._twice[pod.job] = max(self._twice[pod.job], live - most)
        elif live > most and moment.exact:
            self._find(moment, f"{live} pods of Job {name} live, which may have {most}", pod.job)
        done, times = len(self._done[pod.job]), max(1, sum(a.admissions for a in self._accounts_of(pod.job)))
        if done > most * times + self._twice[pod.job]:
            words = f"Job {name} ran twice: {done} pods succeeded, admissions: {times}, of {most} pods each"
            self._find(moment, words, pod.job)

    def _answers_were_lost(self, job: Work, moment: Moment) -> bool:
        """Whether the API server died, not long ago, while the Job controller may have made a Job's pods."""
        return any(job.opened <= at <= moment.heard <= at + RESTART_SECONDS for at in self.server_starts)

    def _rebook(self, name: str, moment: Moment) -> None:
        """Enter anew what a Workload, its Job and its pods use together; check if that made use grow."""
        before = self._add_up(self._booked.pop(name, ()))
        held = self._held(name)
        if held:
            self._booked[name] = held
        after = self._add_up(held)
        changed = [place for place in {**before, **after} if before[place] != after[place]]
        for queue, key in changed:
            if not moment.exact:
                self._unchecked.setdefault((queue, key), self._use[queue][key])
            self._use[queue][key] += after[queue, key] - before[queue, key]
        if moment.exact:
            account = self._accounts.get(name)
            grown = [place for place in changed if after[place] > before[place]]
            self._within(name, grown, account.born if account is not None else 0, moment)

    @staticmethod
    def _add_up(admissions: Iterable[Admission]) -> Counter[Place]:
        total: Counter[Place] = Counter()
        for admission in admissions:
            for key, amount in admission.use:
                total[admission.queue, key] += amount
        return total

    def _held(self, name: str) -> list[Admission]:
        account = self._accounts.get(name)
        pods = [self._pods[uid].admission for uid in sorted(self._live[name])]
        if account is not None and account.holds is not None:
            return self._left(account, account.holds, pods)
        if pods or account is None or account.last is None:
            return pods
        job = self._jobs.get(account.fact.job)
        return self._left(account, account.last, []) if job is not None and job.runs else []

    def _left(self, account: Account, holds: Admission, pods: list[Admission]) -> list[Admission]:
        """What counts of an admission: all, or what it says is left, but never less than its pods use."""
        left = account.fact.left
        if left is None or account.fact.admission != holds:
            return [holds]
        said = self._add_up([left])
        return pods if any(amount > said[key] for key, amount in self._add_up(pods).items()) else [left]

    def _within(self, cause: str, grown: Iterable[Place], born: int, moment: Moment) -> None:
        """Nothing may be used beyond a limit: neither of the queue's own, nor of its cohort's."""
        for queue, key in grown:
            self.counts["checked"] += 1
            words = f"{cause} made the use of {' '.join(key).strip()} in"
            used = self._use[queue][key]
            most = self.limits.of_queue(queue, key, born, moment.heard)
            if most is not None and used > most:
                self._find(moment, f"{words} {queue} {used}, of {most}; {self._users(queue)}")
            known = self.limits.queues.get(queue)
            if known is None or not known.cohort:
                continue
            together = sum(self._use[member][key] for member in self.limits.members(known.cohort))
            most = self.limits.of_cohort(known.cohort, key, born, moment.heard)
            if most is not None and together > most:
                users = "; ".join(filter(None, map(self._users, sorted(self.limits.members(known.cohort)))))
                self._find(moment, f"{words} cohort {known.cohort} {together}, of {most}; {users}")

    def _users(self, queue: str) -> str:
        """The Workloads that use a queue's quota, so that a finding can be understood."""
        booked = (n for n, held in self._booked.items() if any(each.queue == queue for each in held))
        known = ((name, self._accounts.get(name)) for name in sorted(booked))
        jobs = ((name, account, self._jobs.get(account.fact.job)) for name, account in known if account)
        return "; ".join(
            f"{name}: gone {account.gone}, holds {account.holds is not None}, last {account.last} of version "
            f"{account.since}, pods {len(self._live[name])}, Job {job.fact if job is not None else None}"
            for name, account, job in jobs
        )

    def _order(self, account: Account, moment: Moment) -> None:
        """In a strict queue no Workload takes what an earlier one waits for.

        An earlier one counts if the controller had written why it waits before the one that was admitted
        existed: then the process that decided knew of it. An admission may arrive long after it was decided,
        so what even earlier ones were given meanwhile does not count: they may have taken the place of one of
        which the admission was not written.
        """
        holds, place = account.holds, self._place(account)
        queue = self.limits.queues.get(holds.queue) if holds is not None else None
        if holds is None or place is None or queue is None or not queue.strict:
            return
        self.counts["order checked"] += 1
        waiting = [self._accounts[name] for name in self._waiting[account.namespace]]
        known = [other for other in waiting if 0 < other.told < account.born]
        earlier = [other for other in known if (self._place(other) or place) < place]
        if not earlier:
            return
        last = max(self._place(other) or place for other in earlier)
        needed = Counter(dict(holds.use))
        for other in (self._accounts[name] for name in self._holding[account.namespace]):
            later = other.since > account.born and (self._place(other) or last) < last
            if other is not account and other.holds is not None and not later:
                needed.update(dict(other.holds.use))
        asked: Counter[str] = Counter()
        for other in earlier:
            asked.update(dict(other.fact.asks))
        for key, _ in holds.use:
            most = self.limits.of_queue(holds.queue, key, account.born, moment.heard)
            if most is not None and needed[key] + asked[key[1]] > most:
                names = ", ".join(sorted(other.fact.name for other in earlier))
                words = f"{account.fact.name} overtook one of {names} in {holds.queue}"
                self._find(moment, words, account.fact.job)
                return

    def _place(self, account: Account) -> tuple[str, str] | None:
        """What its order goes by; None if its Job is gone or over."""
        job = self._jobs.get(account.fact.job)
        if job is None or job.gone or job.fact.finished:
            return None
        return (job.fact.created, account.fact.uid)
