"""Volcano's Jobs, and pods of its scheduler, as Jobs that wait in a LocalQueue called after their queue.

Rules: the API `batch.volcano.sh/v1alpha1` for Jobs, `scheduling.volcano.sh/v1beta1` for PodGroups.
"""

from copy import deepcopy
from typing import Final

from admitter.api.base import is_resource
from admitter.importers.jobs import JobImporter
from admitter.importers.naming import Names
from admitter.importers.translation import Json, ManifestSource, Translation, below
from admitter.names import API_VERSION

DOMAINS: Final = ("volcano.sh",)
"""Prefixes of labels and annotations that mean nothing here."""

SCHEDULER: Final = "volcano"
DEFAULT_QUEUE: Final = "default"
"""The queue of what names none."""

_QUEUE: Final = "scheduling.volcano.sh/queue-name"
_GROUP: Final = "scheduling.k8s.io/group-name"
_OVER: Final = ("Completed", "Failed", "Terminated", "Aborted")
_UNDER_WAY: Final = ("Running", "Restarting", "Completing")
"""Phases of a Job."""

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


class QueueFinder:
    """Finds the queues of objects with pods, and makes the LocalQueues that lead there."""

    def __init__(self, names: Names, into: Translation) -> None:
        """Prepare.

        Args:
            names: of all that is made.
            into: what is being made.
        """
        self._names = names
        self._into = into
        self._known: dict[str, str] = {}
        self._groups: dict[tuple[str, str], str] = {}
        self._made: set[tuple[str, str]] = set()
        self._wanted: set[str] = set()
        self.requested: set[str] = set()
        """All resources that pods request."""

    def know(self, old: str, new: str) -> None:
        """There is a queue, which has a name here."""
        self._known[old] = new

    def missing(self, there: set[str]) -> list[str]:
        """Queues that are named but not there."""
        return sorted(self._wanted - there)

    def group(self, source: ManifestSource) -> None:
        """A PodGroup says the queue of its pods, and leaves nothing else."""
        name, queue = source.text("metadata.name"), source.text("spec.queue")
        self._groups[source.text("metadata.namespace"), name] = queue or DEFAULT_QUEUE
        source.translated("metadata", "nothing is left of the PodGroup itself")
        if queue:
            source.translated("spec.queue", "the LocalQueue of its pods")
        for key, words in _GROUP_FIELDS.items():
            if source.value(f"spec.{key}") is not None:
                source.approximated(f"spec.{key}", words)

    def queue(self, source: ManifestSource, template: str) -> str | None:
        """The LocalQueue of an object with pods; None if they are not Volcano's.

        Args:
            source: the object.
            template: the path of its pod template; empty for a Pod.
        """
        pod = below(template, "spec") if template else "spec"
        place = below(template, "metadata.annotations") if template else "metadata.annotations"
        self.count(source, pod)
        group, own = source.text(f"{place}[{_GROUP}]"), source.text(f"{place}[{_QUEUE}]")
        queue = own or self._groups.get((source.text("metadata.namespace"), group), "")
        if source.value(f"{place}[{_GROUP}]") is not None:
            source.approximated(
                f"{place}[{_GROUP}]", "the queue of the group; its Jobs are admitted one by one"
            )
        if not queue and source.value(f"{pod}.schedulerName") != SCHEDULER:
            return None
        name = self.local_queue(source, queue or DEFAULT_QUEUE)
        if own:
            source.translated(f"{place}[{_QUEUE}]", f"LocalQueue {name}")
        return name

    def local_queue(self, source: ManifestSource, queue: str) -> str:
        """The LocalQueue in the namespace of an object that leads to a queue."""
        self._wanted.add(queue)
        name, namespace = self._names.of("ClusterQueue", queue), source.text("metadata.namespace")
        if (namespace, name) not in self._made:
            self._made.add((namespace, name))
            metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
            made = {"apiVersion": API_VERSION, "kind": "LocalQueue", "metadata": metadata}
            self._into.add({**made, "spec": {"clusterQueue": name}}, source.title)
        return name

    def count(self, source: ManifestSource, pod: str) -> None:
        """Note which resources a pod requests."""
        for part in ("containers", "initContainers"):
            for container in source.items(f"{pod}.{part}"):
                for kind in ("requests", "limits"):
                    resources = source.mapping(f"{container}.resources.{kind}")
                    self.requested |= {name for name in resources if is_resource(name)}


class VolcanoJobImporter:
    """Makes a Job of each task of Volcano's Jobs."""

    def __init__(self, names: Names, finder: QueueFinder) -> None:
        """Prepare.

        Args:
            names: of all that is made.
            finder: knows the queues.
        """
        self._names = names
        self._finder = finder

    def job(self, source: ManifestSource) -> None:
        """One Job if there is one task, else one a task: these are admitted one by one."""
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
        queue = self._finder.local_queue(source, source.text("spec.queue") or DEFAULT_QUEUE)
        if source.value("spec.queue") is not None:
            source.translated("spec.queue", f"LocalQueue {queue}")
        common = self._common(source, tasks)
        for place in tasks:
            self._task(source, place, queue, deepcopy(common), alone=len(tasks) == 1)
        for part in ("name", "namespace", "labels", "annotations"):
            if source.value(f"metadata.{part}"):
                source.translated(f"metadata.{part}", "of the Job, or of each task's Job: see there")

    def _common(self, source: ManifestSource, tasks: list[str]) -> Json:
        """What is the same in the Jobs of all tasks."""
        spec: Json = {}
        if source.value("spec.maxRetry") is not None:
            spec["backoffLimit"] = source.number("spec.maxRetry", 3)
            source.approximated(
                "spec.maxRetry", "backoffLimit: how often pods fail, not how often all restart"
            )
        if source.value("spec.ttlSecondsAfterFinished") is not None:
            spec["ttlSecondsAfterFinished"] = source.number("spec.ttlSecondsAfterFinished", 0)
            source.translated("spec.ttlSecondsAfterFinished", "the same")
        if source.value("spec.schedulerName") is not None:
            source.translated(
                "spec.schedulerName", "not needed: the cluster's own scheduler places what is admitted"
            )
        if source.value("spec.minAvailable") is not None:
            self._gang(source, tasks)
        for plugin in source.mapping("spec.plugins"):
            place = below("spec.plugins", plugin)
            if plugin == "env":
                spec["completionMode"] = "Indexed"
                source.approximated(place, "completionMode: Indexed: the index is in JOB_COMPLETION_INDEX")
            else:
                source.refused(place, "pods of a Job get no Service and no keys")
        self._policies(source, "spec.policies")
        _refuse(source, "spec", _JOB_FIELDS)
        return spec

    def _gang(self, source: ManifestSource, tasks: list[str]) -> None:
        least = source.number("spec.minAvailable", 0)
        pods = sum(source.number(f"{task}.replicas", 1) for task in tasks)
        if len(tasks) > 1:
            source.approximated(
                "spec.minAvailable", "the pods of each task start together, the tasks one by one"
            )
        elif least < pods:
            source.approximated("spec.minAvailable", f"all {pods} pods start together, not only {least}")
        else:
            source.translated("spec.minAvailable", "all pods of a Job start together")

    def _policies(self, source: ManifestSource, path: str) -> None:
        for place in source.items(path):
            what = source.value(f"{place}.event"), source.value(f"{place}.action")
            if what == ("PodEvicted", "RestartJob"):
                source.translated(place, "a Job that is evicted waits again")
            elif what == ("TaskCompleted", "CompleteJob"):
                source.approximated(place, "the Job of the task is complete; those of other tasks run on")
            else:
                source.refused(place, "a Job has backoffLimit and podFailurePolicy for that")

    def _task(self, source: ManifestSource, place: str, queue: str, spec: Json, *, alone: bool) -> None:
        """A Job of a task's pods, by the rules for any Job."""
        name, task = source.text("metadata.name"), source.text(f"{place}.name")
        replicas = source.number(f"{place}.replicas", 1)
        made = name if alone else f"{name}-{task or place.rpartition('[')[2].rstrip(']')}"
        self._account_for_task(source, place, made, replicas, alone=alone)
        if replicas < 1:
            return
        self._finder.count(source, f"{place}.template.spec")
        template = deepcopy(source.mapping(f"{place}.template"))
        priority = source.text("spec.priorityClassName")
        pod = template.get("spec")
        if priority and isinstance(pod, dict):
            pod.setdefault("priorityClassName", priority)
            if not source.known("spec.priorityClassName"):
                source.translated("spec.priorityClassName", "of the pods")
        if source.value(f"{place}.maxRetry") is not None:
            spec["backoffLimit"] = source.number(f"{place}.maxRetry", 3)
        parts = ("name", "namespace", "labels", "annotations")
        metadata = {
            part: source.value(f"metadata.{part}") for part in parts if source.value(f"metadata.{part}")
        }
        counts = {"parallelism": replicas, "completions": replicas}
        raw = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {**metadata, "name": made},
            "spec": {**counts, **spec, "template": template},
        }
        inner = ManifestSource(raw, source.title if alone else f"{source.title} {place}", source.into)
        for key in ("apiVersion", "kind"):
            inner.ignored(key)
        JobImporter(self._names, DOMAINS, lambda _source, _template: queue).job(inner)
        inner.close()

    def _account_for_task(
        self, source: ManifestSource, place: str, made: str, replicas: int, *, alone: bool
    ) -> None:
        words = f"Job {made} of {replicas} {'pod' if replicas == 1 else 'pods'}"
        if source.value(f"{place}.template") is not None:
            source.translated(f"{place}.template", f"of Job {made}: see there")
        fields = [
            f"{place}.{key}" for key in ("name", "replicas") if source.value(f"{place}.{key}") is not None
        ]
        for path in fields:
            if alone:
                source.translated(path, words)
            else:
                source.approximated(path, f"{words}, which is admitted by itself")
        least = source.value(f"{place}.minAvailable")
        if least is not None:
            enough = source.number(f"{place}.minAvailable", 0) >= replicas
            (source.translated if enough else source.approximated)(
                f"{place}.minAvailable", f"all {replicas} pods start together"
            )
        if source.value(f"{place}.maxRetry") is not None:
            source.approximated(f"{place}.maxRetry", "backoffLimit")
        self._policies(source, f"{place}.policies")
        _refuse(source, place, _TASK_FIELDS)


def _refuse(source: ManifestSource, path: str, fields: dict[str, str]) -> None:
    for key, why in fields.items():
        if source.value(f"{path}.{key}"):
            source.refused(f"{path}.{key}", why)
