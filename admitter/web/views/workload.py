"""A workload: why it waits, what would let it in, when it starts, what has happened to it, and its pods.

The answer comes in two steps: `answer` at once, and `outlook` once the blocking workloads and the start are
worked out.
"""

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from admitter.cache.views import JobView, WorkloadView
from admitter.client.access import Right
from admitter.documents import ManifestError
from admitter.insight.explain.explainer import Answer, Explainer, UnknownError, no_such
from admitter.insight.explain.life import Happening, life
from admitter.insight.explain.outlook import controllers_of, first, start_of, with_blocking
from admitter.insight.explain.pods import Pods, pods_of
from admitter.insight.explain.status_summary import summary, summary_without_workload
from admitter.insight.explain.text import has_start
from admitter.insight.forecast.deadline import Deadline
from admitter.insight.forecast.estimates import NOT_IN_TIME, Estimate
from admitter.insight.forecast.playing import Playing
from admitter.insight.listing import job_name, meant
from admitter.policy.snapshot import Snapshot
from admitter.web.admissions import Eviction, Span
from admitter.web.asked import Asked, HttpRefusal
from admitter.web.earlier import last_life, with_earlier
from admitter.web.history import History
from admitter.web.masked import Sees, masked, masked_happening, masked_text, namespaces_in, texts_in, untold
from admitter.web.scene import BY_ITSELF, WebScene
from admitter.web.turns import AT_ONCE, QUEUEING_SECONDS
from admitter.web.views.cluster_map import node_keys
from admitter.web.views.rows import knows_use
from admitter.web.views.workload_json import (
    Shown,
    answer_json,
    gone_json,
    job_of,
    outlook_json,
    shortened,
    stated_json,
)

Json = dict[str, Any]

OWN: Final = frozenset({"wl", "workload", "workloads"})
JOBS: Final = frozenset({"job", "jobs"})
"""By what a name may begin, as in commands."""


async def answer(asked: Asked) -> Json:
    """The workload `name` in `namespace`: all that is known of it at once.

    If it takes long to explain, the answer has what its status says, and is not complete.
    """
    namespace, name = await _named(asked)
    explanations = Explanations(asked.scene, asked.stage.history)
    found = await asked.stage.limits.explaining.result(
        lambda _: explanations.first(namespace, name), AT_ONCE, AT_ONCE.seconds, asked.user.name
    )
    if found is None:
        return await _stated(asked, namespace, name)
    if isinstance(found, UnknownError):
        return await _gone(asked, namespace, name, found)
    told = await _told(asked, found.answer.queue, namespace)
    shown = await _shown(asked, found if told else replace(found, answer=untold(found.answer)))
    shown = replace(shown, told=told)
    deciding = controllers_of(asked.scene.controllers(), found.answer, explanations.snapshot)
    line = asked.scene.line(found.answer.queue) if told and found.answer.queue is not None else None
    return answer_json(shown, explanations.snapshot, deciding, line.waiting if line is not None else None)


async def outlook(asked: Asked) -> Json:
    """What would let it in, and its expected start."""
    namespace, name = await _named(asked)
    limits, explanations = asked.stage.limits, Explanations(asked.scene, asked.stage.history)
    now, user = asked.scene.known.taken, asked.user.name
    queue = await asyncio.to_thread(explanations.queue_of, namespace, name)
    if not await _told(asked, queue, namespace):
        return outlook_json(Answer((namespace, name), None), None, now, None)
    found = await limits.explaining.result(
        partial(explanations.blocking, namespace, name), limits.allowance, QUEUEING_SECONDS, user
    )
    if found is None:
        return outlook_json(None, NOT_IN_TIME, now, None)
    if isinstance(found, UnknownError):
        raise await _unknown(asked, found)
    estimate: Estimate | None = None
    if has_start(found):
        work = partial(explanations.start, found)
        estimate = await limits.estimating.result(work, limits.allowance, QUEUEING_SECONDS, user)
        estimate = estimate or NOT_IN_TIME
    short, more = shortened(replace(found, ahead=()))
    sees = await asked.sight.visible(namespaces_in(short, (), ()))
    deciding = controllers_of(asked.scene.controllers(), found, asked.scene.snapshot)
    return outlook_json(masked(short, _own_too(short, sees)), estimate, now, deciding, more.blocking)


@dataclass(frozen=True, slots=True)
class Found:
    """All that is known of a workload at once."""

    answer: Answer
    life: list[Happening]
    pods: Pods | None


class Explanations:
    """Explains the workloads of one scene. Its methods may take long, and belong in a thread."""

    def __init__(self, scene: WebScene, history: History) -> None:
        """Work nothing out yet: what all requests share is the scene's."""
        self._scene = scene
        self._history = history

    @property
    def snapshot(self) -> Snapshot:
        """That of the explainer."""
        return self._scene.explaining[1]

    @property
    def _explainer(self) -> Explainer:
        return self._scene.explaining[0]

    def first(self, namespace: str, name: str) -> Found | UnknownError:
        """What is known of a workload at once; an error that there is none is a result as any other."""
        try:
            found = first(self._explainer, namespace, named(self.snapshot, namespace, name))
        except (UnknownError, ManifestError) as error:
            return error if isinstance(error, UnknownError) else UnknownError(str(error))
        return self.told(found)

    def queue_of(self, namespace: str, name: str) -> str | None:
        """The engine's queue of a Workload; None if it has none, or there is no such Workload."""
        view = self.view(namespace, name)
        if view is None or view.admission is None:
            return self._scene.snapshot.queue_of(view) if view is not None else None
        return view.admission.queue

    def view(self, namespace: str, name: str) -> WorkloadView | None:
        """The Workload that is meant; None: there is none, or it may be any of several."""
        snapshot = self._scene.snapshot
        try:
            return snapshot.find(namespace, named(snapshot, namespace, name))
        except ManifestError:
            return None

    def stated(self, namespace: str, name: str) -> tuple[Found, JobView | None, Json] | UnknownError:
        """What is known of a workload without an explanation, its job object, and what its status says."""
        snapshot = self._scene.snapshot
        try:
            title = named(snapshot, namespace, name)
        except ManifestError as error:
            return UnknownError(str(error))
        view = snapshot.find(namespace, title)
        key = (namespace, job_name(view) if view is not None else title)
        answer = Answer(key, view, snapshot.queue_of(view) if view is not None else None)
        job = job_of(snapshot, answer)
        if view is not None:
            return self.told(answer), job, summary(view)
        if job is not None:
            return self.told(answer), job, summary_without_workload(job)
        return UnknownError(no_such(namespace, name))

    def told(self, found: Answer) -> Found:
        """An answer with what has happened to its Workload, and its pods."""
        world, workload = self._scene.snapshot.world, found.workload
        if workload is None:
            return Found(found, [], None)
        told = life(world, workload, self._scene.known.taken)
        spans, evictions = self._earlier(*workload.key)
        told = with_earlier(told, spans, evictions, workload.uid)
        return Found(found, told, pods_of(world, workload))

    def gone(self, namespace: str, name: str) -> Found | None:
        """What is known of a workload that is not there any more; None: nothing is."""
        kind, _, short = name.rpartition("/")
        told = last_life(*self._earlier(namespace, short if kind in OWN | JOBS else name))
        return Found(Answer((namespace, name), None), told, None) if told else None

    def _earlier(self, namespace: str, name: str) -> tuple[list[Span], list[Eviction]]:
        history = self._history
        return history.spans_of(namespace, name), history.evictions_of(namespace, name)

    def blocking(self, namespace: str, name: str, deadline: Deadline) -> Answer | UnknownError:
        """The same with the blocking workloads, if they are found in time."""
        found = self.first(namespace, name)
        return (
            found
            if isinstance(found, UnknownError)
            else with_blocking(self._explainer, found.answer, deadline)
        )

    def start(self, answer: Answer, deadline: Deadline) -> Estimate | None:
        """When it starts."""
        playing = Playing(proceed=deadline.sooner(BY_ITSELF).proceed)
        return start_of(self._scene.known, self._scene.snapshot, answer, playing)


def named(snapshot: Snapshot, namespace: str, text: str) -> str:
    """How a snapshot finds what a user has named: a Workload's own name, or the title of a job object.

    It may begin with a kind, as in commands: job/train, wl/job-train-1a2b3c4d5e, jobset/train, podgroup/tune.

    Raises:
        ManifestError: it may be any of several job objects.
    """
    world, (kind, _, name) = snapshot.world, text.rpartition("/")
    own = world.workloads.get((namespace, name if kind in OWN else text))
    if kind in OWN or own is not None:
        return own.name if own is not None else text
    if kind not in JOBS and snapshot.find(namespace, text) is not None:
        return text
    pod = world.queued_pods.get((namespace, name)) if kind in {"", "pod", "pods"} else None
    if pod is not None and world.workloads.get((namespace, pod.workload)) is not None:
        return pod.workload
    titles = {key[1] for key in world.jobs_by_namespace.get(namespace)}
    here = map(world.workloads.get, world.workloads_by_namespace.get(namespace))
    titles |= {view.job[0] for view in here if view is not None and view.job is not None}
    return meant(titles, "Job" if kind in JOBS else kind or None, name) or (name if kind in JOBS else text)


async def _named(asked: Asked) -> tuple[str, str]:
    namespace, name = asked.query.get("namespace", ""), asked.query.get("name", "")
    await asked.sight.require_namespace(namespace)
    return namespace, name


async def _unknown(asked: Asked, error: UnknownError) -> HttpRefusal:
    """There is none, without names of namespaces that the user may not see."""
    sees = await asked.sight.still_visible(error.elsewhere)
    return HttpRefusal(404, str(error.seen_by(sees)))


async def _shown(asked: Asked, found: Found) -> Shown:
    """What the user may see of it."""
    answer, more = shortened(found.answer)
    texts = texts_in(answer, found.life)
    sees = _own_too(answer, await asked.sight.visible(namespaces_in(answer, found.life, texts)))
    may_see_pods = await asked.sight.may(Right("list", "pods", answer.key[0], group=""))
    return Shown(
        masked(answer, sees),
        [masked_happening(each, sees) for each in found.life],
        found.pods,
        may_see_pods,
        await node_keys(asked),
        partial(masked_text, sees=sees),
        more.ahead,
    )


async def _told(asked: Asked, queue: str | None, namespace: str) -> bool:
    """Whether the user may know the use and the line of the queue of a Workload in a namespace."""
    if queue is None or await asked.sight.sees_tree():
        return True
    return knows_use(asked.scene.snapshot, queue, namespace)


def _own_too(answer: Answer, sees: Sees) -> Sees:
    """The namespace of an answer itself has been checked before."""
    return lambda namespace: namespace == answer.key[0] or sees(namespace)


async def _stated(asked: Asked, namespace: str, name: str) -> Json:
    """What the status says of a workload that takes long to explain."""
    explanations = Explanations(asked.scene, asked.stage.history)
    stated = await asyncio.to_thread(explanations.stated, namespace, name)
    if isinstance(stated, UnknownError):
        return await _gone(asked, namespace, name, stated)
    found, job, said = stated
    return stated_json(await _shown(asked, found), job, asked.scene.snapshot.now, said)


async def _gone(asked: Asked, namespace: str, name: str, error: UnknownError) -> Json:
    """What is remembered of a workload that is not there any more.

    Raises:
        HttpRefusal: nothing is, as the error says.
    """
    explanations = Explanations(asked.scene, asked.stage.history)
    gone = await asyncio.to_thread(explanations.gone, namespace, name)
    if gone is None:
        raise await _unknown(asked, error)
    return gone_json(await _shown(asked, gone), asked.scene.known.taken)
