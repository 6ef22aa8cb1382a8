"""Jobs, and what runs pods without being one: Deployments, ReplicaSets, StatefulSets and Pods become Jobs.

Objects of kinds that Admitter describes stay what they are. What another system holds back pod by pod
becomes a Job of as many pods, which is admitted as a whole.
"""

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Final

from admitter.importers import described
from admitter.importers.dispatch import Handler, belongs, copied, metadata
from admitter.importers.naming import Names
from admitter.importers.reading import Document
from admitter.importers.translation import Fidelity, Json, ManifestSource, Translation, below
from admitter.names import QUEUE_LABEL

DEFAULT_SCHEDULER: Final = "default-scheduler"

_ROLLOUT: Final = (
    "strategy",
    "updateStrategy",
    "minReadySeconds",
    "revisionHistoryLimit",
    "progressDeadlineSeconds",
    "paused",
    "serviceName",
    "podManagementPolicy",
    "persistentVolumeClaimRetentionPolicy",
    "ordinals",
)
_WRITTEN: Final = (
    "kubectl.kubernetes.io/last-applied-configuration",
    "controller-uid",
    "batch.kubernetes.io/controller-uid",
    "job-name",
    "batch.kubernetes.io/job-name",
)


@dataclass(frozen=True, slots=True)
class JobImporter:
    """Makes Jobs."""

    names: Names
    foreign: tuple[str, ...]  # the other system's domains; its own labels and annotations stay behind
    # the LocalQueue that an object's Job waits in; empty if the Job is to have no label, since a policy says
    # where it waits; None if it is not held back, and so stays what it is. It is called with the object and
    # the path of its pod template (empty for a Pod, which is one itself), and accounts for the labels,
    # annotations and fields that it reads
    queue: Callable[[ManifestSource, str], str | None]
    # `labels` and `annotations` that an object gets beside the label of its queue; accounts for what it reads
    marks: Callable[[ManifestSource], Mapping[str, Json]] = lambda _source: {}

    def keep_names(self, documents: Iterable[Document]) -> None:
        kinds = described.group_kinds()
        scopes = {kind: "Job/" for _, kind in self.handlers().keys() - kinds if kind != "CronJob"}
        self.names.keep_all(documents, scopes | {kind: f"{kind}/" for _, kind in kinds})

    def handlers(self) -> Mapping[tuple[str, str], Handler]:
        return {
            ("batch", "Job"): self.job,
            ("batch", "CronJob"): self.cron_job,
            ("", "Pod"): self.pod,
            ("apps", "Deployment"): self.replicated,
            ("apps", "ReplicaSet"): self.replicated,
            ("apps", "StatefulSet"): self.replicated,
            **dict.fromkeys(described.group_kinds(), self.described),
        }

    def job(self, source: ManifestSource) -> None:
        """A Job stays one and waits in its queue; one that has finished, or runs already, is left alone."""
        if described.is_child(source):
            source.translated("", "belongs to another object, which makes it again")
        elif _finished(source):
            source.translated("", "has finished: nothing is left to queue")
        elif source.value("status.active"):
            source.refused("", "runs already: what another system has admitted can't be taken over")
        elif (queue := self.queue(source, "spec.template")) is None:
            copied(source)
        else:
            self.disown(source, "spec.template")
            skipped = {"suspend"} if source.value("spec.manualSelector") else {"suspend", "selector"}
            spec = {key: deepcopy(each) for key, each in source.mapping("spec").items() if key not in skipped}
            source.translated("spec", "taken over as it is")
            self._add(source, queue, spec)

    def cron_job(self, source: ManifestSource) -> None:
        """A CronJob stays one, and the Jobs that it makes wait in their queue."""
        at = "spec.jobTemplate"
        own = {key: source.text(f"metadata.{key}") for key in ("name", "namespace")}
        meta = {**source.mapping(f"{at}.metadata"), **own}
        inner = ManifestSource(
            batch_object("CronJob", meta, source.mapping(f"{at}.spec")), source.title, Translation()
        )
        replace(self, names=Names()).part(inner)
        stays = bool(inner.into.manifests) and inner.known("")
        for found in inner.into.findings:
            if not stays or found.outcome is not Fidelity.TRANSLATED:
                outer = found.field in {"metadata.name", "metadata.namespace"}
                path = found.field if outer else f"{at}.{found.field}".rstrip(".")
                source.find(path, found.outcome, found.words)
        if stays:
            copied(source)
        for job in [] if stays else inner.into.manifests:
            marks = {key: each for key, each in job["metadata"].items() if key in {"labels", "annotations"}}
            spec = {
                **deepcopy(source.mapping("spec")),
                "jobTemplate": {"metadata": marks, "spec": job["spec"]},
            }
            for key in sorted(spec.keys() - {"jobTemplate"}):
                source.translated(f"spec.{key}", "taken over as it is")
            meta = metadata(source, own["name"], self.foreign, own["namespace"])
            source.add(batch_object("CronJob", meta, spec))

    def part(self, inner: ManifestSource) -> None:
        """A Job that is written in another object, by the rules for any Job."""
        for key in ("apiVersion", "kind"):
            inner.ignored(key)
        self.job(inner)
        inner.close()

    def pod(self, source: ManifestSource) -> None:
        """A Pod becomes a Job of one pod; one that another object has made is left to that."""
        if self.leaves(source):
            return
        queue = self.queue(source, "")
        if queue is None:
            copied(source)
        else:
            own = {part: dict(source.mapping(f"metadata.{part}")) for part in ("labels", "annotations")}
            template = {"metadata": own, "spec": deepcopy(source.mapping("spec"))}
            template["spec"].pop("nodeName", None)
            source.approximated("spec", "becomes a Job of one pod, which is made once the Job is admitted")
            self._add(source, queue, {"parallelism": 1, "completions": 1, "template": template})

    @staticmethod
    def leaves(source: ManifestSource) -> bool:
        """Whether nothing comes of a pod, or of what makes pods: another object makes it, or it has begun."""
        if source.value("metadata.ownerReferences"):
            source.translated("", "belongs to another object, which makes it again")
        elif source.value("status.phase") in ("Succeeded", "Failed"):
            source.translated("", "has finished: nothing is left to queue")
        elif source.value("status.phase") == "Running":
            source.refused("", "runs already: what another system has admitted can't be taken over")
        else:
            return False
        return True

    def described(self, source: ManifestSource) -> None:
        """An object of a kind that Admitter describes stays what it is, and waits in its queue."""
        version, kind = source.text("apiVersion"), source.text("kind")
        if (version, kind) not in described.job_kinds():
            source.refused("", f"{version} {kind} is not known to the importer")
            return
        state, templates = described.state_of(source), described.templates(source)
        if described.is_child(source):
            source.translated("", "belongs to another object, which makes it again")
        elif state:
            self._over(source, state)
        elif not (queues := [found for place in templates or [""] if (found := self.queue(source, place))]):
            copied(source)
        else:
            self._describe(source, queues[0], templates)

    @staticmethod
    def _over(source: ManifestSource, state: str) -> None:
        if state == "finished":
            source.translated("", "has finished: nothing is left to queue")
        else:
            source.refused("", "runs already: what another system has admitted can't be taken over")

    def _describe(self, source: ManifestSource, queue: str, templates: Iterable[str]) -> None:
        kind, namespace = source.text("kind"), source.text("metadata.namespace")
        name = self.names.take(source, "metadata.name", f"{kind}/{namespace}")
        if not name:
            return
        if namespace:
            source.translated("metadata.namespace", namespace)
        made = ManifestSource(described.stopped(source), source.title, Translation())
        for place in templates:
            self.disown(source, place)
            self.purge(source, made.value(place), below(place, "spec"))
        source.translated("spec", "taken over as it is")
        meta = metadata(source, name, self.foreign, namespace)
        mark(meta, {"labels": {QUEUE_LABEL: queue}}, self.marks(source))
        source.add(made.raw | {"metadata": meta})

    def replicated(self, source: ManifestSource) -> None:
        """What keeps some pods running becomes a Job of as many."""
        if self.leaves(source):
            return
        queue = self.queue(source, "spec.template")
        if queue is None:
            copied(source)
            return
        source.account(Fidelity.REFUSED, dict.fromkeys(_ROLLOUT, "a Job has nothing like it"), "spec")
        if source.value("spec.volumeClaimTemplates"):
            source.refused("spec.volumeClaimTemplates", "the pods of a Job have no claims of their own")
        replicas = source.number("spec.replicas", 1)
        if replicas < 1:
            source.approximated("spec", "runs no pods: no Job is made of it")
            return
        self.disown(source, "spec.template")
        words = f"becomes a Job of {replicas} {'pod' if replicas == 1 else 'pods'}, admitted together"
        source.approximated("spec.replicas", f"{words}; a Job ends when its pods do")
        source.account(Fidelity.TRANSLATED, {"spec.selector": "not needed: a Job knows its pods"})
        source.translated("spec.template", "taken over as it is, but for what follows")
        template = deepcopy(source.mapping("spec.template"))
        self._add(source, queue, {"parallelism": replicas, "completions": replicas, "template": template})

    def _add(self, source: ManifestSource, queue: str, spec: Json) -> None:
        old, namespace = source.text("metadata.name"), source.text("metadata.namespace")
        template = spec.get("template")
        if not old or not isinstance(template, dict) or not isinstance(template.get("spec"), dict):
            missing = "spec: has no pods" if old else "metadata.name: is missing"
            source.refused("", f"can't become a Job: {missing}")
            return
        kind = source.text("kind")
        name = self.names.take(source, "metadata.name", f"Job/{namespace}", identity=f"{kind} {old}")
        if namespace:
            source.translated("metadata.namespace", namespace)
        self._tidy(source, template)
        meta = metadata(source, name, self.foreign, namespace)
        if queue:
            mark(meta, {"labels": {QUEUE_LABEL: queue}}, self.marks(source))
            spec = {"suspend": True, **spec}
        source.add(batch_object("Job", meta, spec))

    def disown(self, source: ManifestSource, template: str) -> None:
        """Account for labels and annotations of the other system on a pod template."""
        for part in ("labels", "annotations"):
            path = f"{template}.metadata.{part}"
            for key in source.mapping(path):
                if belongs(key, self.foreign) and not source.known(below(path, key)):
                    source.refused(below(path, key), "not known to the importer")

    def _tidy(self, source: ManifestSource, template: Json) -> None:
        """Make a pod template one that a Job may have, and that names no other system."""
        pod = template["spec"]
        at = "spec" if source.text("kind") == "Pod" else "spec.template.spec"
        if pod.get("restartPolicy", "Always") == "Always":
            pod["restartPolicy"] = "OnFailure"
            words = "Always, which is the default, becomes OnFailure: the pods of a Job end"
            source.approximated(f"{at}.restartPolicy", words)
        self.purge(source, template, at)

    def purge(self, source: ManifestSource, template: Json, at: str) -> None:
        """Take out of a pod template, with its spec at a path, what names another system."""
        pod = template["spec"]
        scheduler = pod.pop("schedulerName", DEFAULT_SCHEDULER)
        if scheduler != DEFAULT_SCHEDULER:
            words = f"{scheduler} is not needed: the cluster's own scheduler places what is admitted"
            source.translated(f"{at}.schedulerName", words)
        meta = template.get("metadata")
        for part in ("labels", "annotations"):
            if isinstance(meta, dict) and isinstance(meta.get(part), dict):
                kept = meta[part].items()
                meta[part] = {k: v for k, v in kept if k not in _WRITTEN and not belongs(k, self.foreign)}
                if not meta[part]:
                    del meta[part]
        if meta == {}:
            del template["metadata"]


def mark(meta: Json, *marks: Mapping[str, Json]) -> None:
    """Put `labels` and `annotations` into the metadata of an object."""
    for each in marks:
        for part, added in each.items():
            meta[part] = {**meta.get(part, {}), **added}


def batch_object(kind: str, metadata: Json, spec: Json) -> Json:
    return {"apiVersion": "batch/v1", "kind": kind, "metadata": metadata, "spec": spec}


def _finished(source: ManifestSource) -> bool:
    conditions = source.value("status.conditions")
    return isinstance(conditions, list) and any(
        isinstance(c, dict) and c.get("type") in ("Complete", "Failed") and c.get("status") == "True"
        for c in conditions
    )
