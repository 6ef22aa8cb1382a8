"""A busy cluster that never was: teams submit Jobs, and the simulator decides with the controller's own code.

Everything follows from a seed and from when it begins. Previous step: `admitter.web.demo.jobs` makes Jobs.
Next step: `admitter.web.demo.mirror` gives the page facts of each moment, as of a real cluster.
"""

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from admitter.cache.views import JobView, WorkloadView, at, timestamp
from admitter.names import API_VERSION, WORKLOAD_LABEL, WORKLOAD_UID_ANNOTATION
from admitter.policy import growing
from admitter.policy.lifecycle import Phase
from admitter.policy.pod_readiness import in_words, troubles
from admitter.policy.snapshot import QUEUED_PODS, Facts, Snapshot, sources_of
from admitter.simulate.items import Event, Item, Key
from admitter.simulate.manifests import Change, Timeline
from admitter.simulate.simulator import Simulator
from admitter.web.demo import hardware, teams
from admitter.web.demo.jobs import Submissions
from admitter.web.demo.pods import Pods
from admitter.web.demo.special import special_jobs
from admitter.web.demo.statuses import Statuses

Json = dict[str, Any]

PAST_SECONDS: Final = 6 * 3600.0
"""So much of the past is there at the beginning."""
STEP_SECONDS: Final = 60.0
"""How often teams look how many of their Jobs wait, and submit more or fewer."""
KEPT_SECONDS: Final = 6 * 3600.0
"""So long after its end a Job is deleted."""
BEFORE_SECONDS: Final = 40 * 86400.0
"""Definitions are so much older than the Jobs."""
_VERSIONS: Final = {"PriorityClass": "scheduling.k8s.io/v1", "Namespace": "v1", "Node": "v1"}


class DemoCluster:
    """The cluster. Its time moves on with `advance`; it is not thread-safe."""

    def __init__(self, seed: int, now: float, past: float = PAST_SECONDS) -> None:
        """Begin so many seconds before `now`, in seconds since the epoch; nothing has happened yet."""
        self.start = float(math.floor(now - past))
        self.now = self._step = self.start
        self._submissions = Submissions(seed, self.start, now)
        definitions = list(self._definitions(now))
        self.snapshot = Snapshot(Facts(self.start))  # the simulation's, which goes on
        self._simulator = Simulator(Timeline(self.start, definitions, []), self.snapshot)
        list(self._simulator.run(until=self.start))
        self._statuses = Statuses(self.snapshot, self._simulator.items, self.start - BEFORE_SECONDS)
        self._pods = Pods(self.snapshot.world)
        self._jobs: dict[str, tuple[int, tuple[int, int], JobView]] = {}
        self._ended: deque[tuple[float, Json]] = deque()
        self.revision = 0  # grows with every change
        self._simulator.add([*special_jobs(self.start, now), *self._submissions.first()])

    def _definitions(self, now: float) -> Iterator[Change]:
        born = timestamp(at(self.start - BEFORE_SECONDS))
        made = [*hardware.flavors(), *hardware.nodes(now, self.start - BEFORE_SECONDS), *teams.definitions()]
        for serial, raw in enumerate(made):
            raw["metadata"]["creationTimestamp"] = born
            version = _VERSIONS.get(raw["kind"], API_VERSION)
            yield Change(self.start, serial, {"apiVersion": version, **raw})

    def advance(self, now: float, watch: Callable[[Snapshot], None] = lambda _: None) -> None:
        """Let all happen up to a moment, in seconds since the epoch; `watch` is called each minute.

        What happens does not depend on how often this is called.
        """
        while self.now < now:
            if self.now >= self._step:
                self._begin_step(watch)
            until = min(now, self._step)
            for event in self._simulator.run(until=until, decided=self._statuses.decided):
                self._take(event)
            assert self._simulator.endless is None, "the made-up rules evict nothing in turns"
            self._simulator.gone.clear()
            self.now = until

    def _begin_step(self, watch: Callable[[Snapshot], None]) -> None:
        self._pods.settle()
        self._statuses.come()
        self.snapshot.now = self.now
        watch(self.snapshot)
        self._step += STEP_SECONDS
        self._simulator.add(self._submissions.until(self._step, self._waiting()))
        self._simulator.add(self._due(self._step))

    def _waiting(self) -> Iterator[Key]:
        """Namespace and name of the Jobs that wait."""
        for item in self._simulator.items.values():
            if item.phase is Phase.PENDING and item.job is not None:
                yield item.job.key

    def _due(self, now: float) -> Iterator[Change]:
        """The deletions of Jobs that ended long ago."""
        while self._ended and self._ended[0][0] + KEPT_SECONDS <= now:
            ended, manifest = self._ended.popleft()
            yield Change(max(self.now, ended + KEPT_SECONDS), 0, manifest, gone=True)

    def _take(self, event: Event) -> None:
        """Take in a step of a Workload."""
        self.revision += 1
        job = self.snapshot.world.job_of(event.key)
        assert job is not None, "it is deleted only after its end"
        if event.kind == "Evicted":
            pods = self._pods.of(job.uid, event.time)
            self._statuses.trouble[job.uid] = in_words(troubles(pods, len(pods)), len(pods))
        self._statuses.failing = self._submissions.failing
        uid = self._statuses.happened(event)
        view = self._statuses.views[uid]
        match event.kind:
            case "Admitted":
                after = self._simulator.items[uid].ready_after
                self._pods.start(view, job.name, event.time, after if after is not None else 20.0)
            case "Resized":
                assert view.admission is not None
                extra = sum(growing.living(view).values())
                self._pods.resize(uid, growing.admitted_pods(view.admission) + extra)
            case "Preempted" | "Evicted":
                self._pods.stop(uid)
            case "Finished":
                self._pods.stop(uid)
                self._end(job, event.time)

    def _end(self, job: JobView, time: float) -> None:
        manifest = {"kind": "Job", "metadata": {"namespace": job.namespace, "name": job.name}}
        self._ended.append((time, manifest))
        self._submissions.forget(job.key)

    def facts(self) -> Facts:
        """All that is known of the cluster now."""
        self._statuses.settle(self.now)
        world = self.snapshot.world
        views: dict[str, dict[tuple[str, str], Any]] = {
            plural: {view.key: view for view in source.store} for plural, source in sources_of(world).items()
        }
        del views[QUEUED_PODS]
        views["workloads"] = {view.key: view for view in self._statuses.views.values()}
        views["pods"] = {view.key: view for view in self._pods.views(self.now)}
        views["jobs"] = {job.key: job for job in map(self._job, self._simulator.items.values()) if job}
        return Facts(self.now, views=views)

    def _job(self, item: Item) -> JobView | None:
        """A Job as it is now; the same object as before, if nothing has changed."""
        if item.job is None:
            return None
        view, counts = self._statuses.views[item.view.uid], self._pods.count(item.view.uid, self.now)
        known = self._jobs.get(view.uid)
        if known is None or known[:2] != (view.version, counts):
            known = self._jobs[view.uid] = (view.version, counts, _as_it_is(item, view, counts))
        return known[2]


def _as_it_is(item: Item, view: WorkloadView, counts: tuple[int, int]) -> JobView:
    """The Job of an item with the status that Kubernetes' Job controller would write."""
    job, (there, ready) = item.job, counts
    assert job is not None
    if item.phase is Phase.PENDING and not item.runs:
        return job
    labels, annotations = {WORKLOAD_LABEL: view.name}, {WORKLOAD_UID_ANNOTATION: view.uid}
    conditions: dict[str, Json] = {"Suspended": {"status": "False" if there else "True", "message": ""}}
    if view.finished:
        failed = view.condition("Finished")["reason"] == "JobFailed"
        conditions = {"Failed" if failed else "Complete": {"status": "True", "message": ""}}
    status = {
        **job.status,
        "active": there,
        "ready": ready,
        "startTime": timestamp(at(item.runs[-1].start)) if item.phase.runs or view.finished else None,
        "conditions": conditions,
        "succeeded": job.count() if view.finished and "Complete" in conditions else 0,
    }
    return replace(
        job,
        version=view.version,
        spec={
            **job.spec,
            "suspend": not (item.phase.runs or view.finished),
            "parallelism": there or job.spec["parallelism"],
        },
        template_metadata={"labels": labels, "annotations": annotations},
        status=status,
    )
