"""Volcano's Jobs, and pods of its scheduler, as Jobs that wait in a LocalQueue called after their queue.

Rules: the API `batch.volcano.sh/v1alpha1` for Jobs, `scheduling.volcano.sh/v1beta1` for PodGroups.
"""

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Final

from admitter.importers.jobs import JobImporter, batch_object
from admitter.importers.naming import Names
from admitter.importers.queue_tree import LocalQueues
from admitter.importers.translation import Fidelity, Json, ManifestSource, below

DOMAINS: Final = ("volcano.sh",)
"""Prefixes of labels and annotations that mean nothing here."""

SCHEDULER: Final = "volcano"
DEFAULT_QUEUE: Final = "default"
"""The queue of what names none."""

_QUEUE: Final = "scheduling.volcano.sh/queue-name"
_OF_KINDS: Final = ("metadata.labels[volcano.sh/queue-name]", "spec.runPolicy.schedulingPolicy.queue")
"""Where objects of other kinds name their queue."""
_GROUP: Final = "scheduling.k8s.io/group-name"
_OVER: Final = ("Completed", "Failed", "Terminated", "Aborted")
_UNDER_WAY: Final = ("Running", "Restarting", "Completing")
"""Phases of a Job."""
_METADATA: Final = ("name", "namespace", "labels", "annotations")
"""What the Jobs of all tasks have of the Job."""

_GROUP_FIELDS: Final = {
    "minMember": "all pods of each Job are admitted together, but not the Jobs of several objects",
    "minTaskMember": "all pods of each Job are admitted together, but not the Jobs of several objects",
    "minResources": "what a Job's pods request is counted",
    "priorityClassName": "the priority of a Job is that of its pods",
}
_JOB_FIELDS: Final = {
    "volumes": "write volumes into the pod templates",
    "networkTopology": "nodes are the scheduler's matter",
    "minSuccess": "a Job is complete when all of its pods are",
    "runningEstimate": "Jobs have no field for how long they will run",
}
_TASK_FIELDS: Final = {
    "topologyPolicy": "nodes are the scheduler's matter",
    "partitionPolicy": "all pods of a Job are alike",
    "dependsOn": "Jobs do not wait for each other",
}


@dataclass(slots=True)
class QueueFinder:
    """Finds the queues of objects with pods; `wanted` are those that were named."""

    names: Names
    local_queues: LocalQueues
    wanted: set[str] = field(default_factory=set)
    _groups: dict[tuple[str, str], str] = field(default_factory=dict)

    def group(self, source: ManifestSource) -> None:
        """A PodGroup says the queue of its pods, and leaves nothing else."""
        name, queue = source.text("metadata.name"), source.text("spec.queue")
        self._groups[source.text("metadata.namespace"), name] = queue or DEFAULT_QUEUE
        source.translated("metadata", "nothing is left of the PodGroup itself")
        if queue:
            source.translated("spec.queue", "the LocalQueue of its pods")
        source.account(Fidelity.APPROXIMATED, _GROUP_FIELDS, "spec")

    def queue(self, source: ManifestSource, template: str) -> str | None:
        """The LocalQueue of an object with pods, as `JobImporter` asks; None if they are not Volcano's."""
        place = below(below(template, "metadata"), "annotations")
        pod = below(template, "spec")
        self.local_queues.count(source, pod)
        group, own = source.text(f"{place}[{_GROUP}]"), source.text(f"{place}[{_QUEUE}]")
        at = f"{place}[{_QUEUE}]" if own else next(filter(source.value, _OF_KINDS), "")
        own = source.text(at) if at else ""
        queue = own or self._groups.get((source.text("metadata.namespace"), group), "")
        words = "the queue of the group; its Jobs are admitted one by one"
        source.account(Fidelity.APPROXIMATED, {f"{place}[{_GROUP}]": words})
        if not queue and source.value(f"{pod}.schedulerName") != SCHEDULER:
            return None
        name = self.local_queue(source, queue or DEFAULT_QUEUE)
        if own:
            source.translated(at, f"LocalQueue {name}")
        return name

    def local_queue(self, source: ManifestSource, queue: str) -> str:
        """The LocalQueue in the namespace of an object that leads to a queue."""
        self.wanted.add(queue)
        name = self.names.of("ClusterQueue", queue)
        self.local_queues.lead(source, name)
        return name

    def job(self, source: ManifestSource) -> None:
        """Of a Job of Volcano's: one Job if there is one task, else one a task, each admitted by itself."""
        phase = source.value("status.state.phase")
        if phase in _OVER:
            source.translated("", "has finished: nothing is left to queue")
            return
        if phase in _UNDER_WAY:
            source.refused("", "runs already: what another system has admitted can't be taken over")
            return
        tasks = source.items("spec.tasks")
        if not tasks:
            source.refused("", "has no tasks")
            return
        queue = self.local_queue(source, source.text("spec.queue") or DEFAULT_QUEUE)
        source.account(Fidelity.TRANSLATED, {"spec.queue": f"LocalQueue {queue}"})
        common = _common(source, tasks)
        for place in tasks:
            self._task(source, place, queue, deepcopy(common), alone=len(tasks) == 1)
        for part in _METADATA:
            if source.value(f"metadata.{part}"):
                source.translated(f"metadata.{part}", "of the Job, or of each task's Job: see there")

    def _task(self, source: ManifestSource, place: str, queue: str, spec: Json, *, alone: bool) -> None:
        """A Job of a task's pods, by the rules for any Job."""
        name, task = source.text("metadata.name"), source.text(f"{place}.name")
        replicas = source.number(f"{place}.replicas", 1)
        made = name if alone else f"{name}-{task or place.rpartition('[')[2].rstrip(']')}"
        _account_for_task(source, place, made, replicas, alone=alone)
        if replicas < 1:
            return
        self.local_queues.count(source, f"{place}.template.spec")
        template = deepcopy(source.mapping(f"{place}.template"))
        priority = source.text("spec.priorityClassName")
        pod = template.get("spec")
        if priority and isinstance(pod, dict):
            pod.setdefault("priorityClassName", priority)
            if not source.known("spec.priorityClassName"):
                source.translated("spec.priorityClassName", "of the pods")
        if source.value(f"{place}.maxRetry") is not None:
            spec["backoffLimit"] = source.number(f"{place}.maxRetry", 3)
        metadata = {part: found for part in _METADATA if (found := source.value(f"metadata.{part}"))}
        counts = {"parallelism": replicas, "completions": replicas}
        raw = batch_object("Job", {**metadata, "name": made}, {**counts, **spec, "template": template})
        inner = ManifestSource(raw, source.title if alone else f"{source.title} {place}", source.into)
        JobImporter(self.names, DOMAINS, lambda _source, _template: queue).part(inner)


def _common(source: ManifestSource, tasks: list[str]) -> Json:
    """What is the same in the Jobs of all tasks."""
    spec: Json = {}
    if source.value("spec.maxRetry") is not None:
        spec["backoffLimit"] = source.number("spec.maxRetry", 3)
        source.approximated("spec.maxRetry", "backoffLimit: how often pods fail, not how often all restart")
    if source.value("spec.ttlSecondsAfterFinished") is not None:
        spec["ttlSecondsAfterFinished"] = source.number("spec.ttlSecondsAfterFinished", 0)
        source.translated("spec.ttlSecondsAfterFinished", "the same")
    words = "not needed: the cluster's own scheduler places what is admitted"
    source.account(Fidelity.TRANSLATED, {"spec.schedulerName": words})
    _account_for_gang(source, tasks)
    for plugin in source.mapping("spec.plugins"):
        place = below("spec.plugins", plugin)
        if plugin == "env":
            spec["completionMode"] = "Indexed"
            source.approximated(place, "completionMode: Indexed: the index is in JOB_COMPLETION_INDEX")
        else:
            source.refused(place, "pods of a Job get no Service and no keys")
    _account_for_policies(source, "spec.policies")
    source.refuse_unless_empty(_JOB_FIELDS, "spec")
    return spec


def _account_for_gang(source: ManifestSource, tasks: list[str]) -> None:
    if source.value("spec.minAvailable") is None:
        return
    least = source.number("spec.minAvailable", 0)
    pods = sum(source.number(f"{task}.replicas", 1) for task in tasks)
    if len(tasks) > 1:
        source.approximated("spec.minAvailable", "the pods of each task start together, the tasks one by one")
    elif least < pods:
        source.approximated("spec.minAvailable", f"all {pods} pods start together, not only {least}")
    else:
        source.translated("spec.minAvailable", "all pods of a Job start together")


def _account_for_policies(source: ManifestSource, path: str) -> None:
    for place in source.items(path):
        match source.value(f"{place}.event"), source.value(f"{place}.action"):
            case "PodEvicted", "RestartJob":
                source.translated(place, "a Job that is evicted waits again")
            case "TaskCompleted", "CompleteJob":
                source.approximated(place, "the Job of the task is complete; those of other tasks run on")
            case _:
                source.refused(place, "a Job has backoffLimit and podFailurePolicy for that")


def _account_for_task(source: ManifestSource, place: str, made: str, replicas: int, *, alone: bool) -> None:
    source.account(Fidelity.TRANSLATED, {"template": f"of Job {made}: see there"}, place)
    words = f"Job {made} of {replicas} {'pod' if replicas == 1 else 'pods'}"
    if alone:
        source.account(Fidelity.TRANSLATED, {"name": words, "replicas": words}, place)
    else:
        words += ", which is admitted by itself"
        source.account(Fidelity.APPROXIMATED, {"name": words, "replicas": words}, place)
    enough = source.number(f"{place}.minAvailable", 0) >= replicas
    outcome = Fidelity.TRANSLATED if enough else Fidelity.APPROXIMATED
    source.account(outcome, {"minAvailable": f"all {replicas} pods start together"}, place)
    source.account(Fidelity.APPROXIMATED, {"maxRetry": "backoffLimit"}, place)
    _account_for_policies(source, f"{place}.policies")
    source.refuse_unless_empty(_TASK_FIELDS, place)
