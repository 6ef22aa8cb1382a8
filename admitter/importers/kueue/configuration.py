"""Kueue's own configuration: what of it is policy, and what becomes of that."""

from collections.abc import Iterable, Iterator
from typing import Final

from admitter.documents import ManifestError, parsed
from admitter.importers.described import job_kinds
from admitter.importers.reading import Document, document
from admitter.importers.translation import Fidelity, Json, ManifestSource, Translation, below

GROUP: Final = "config.kueue.x-k8s.io"
KIND: Final = "Configuration"

_PROCESS: Final = (
    "namespace",
    "webhook",
    "leaderElection",
    "metrics",
    "health",
    "pprofBindAddress",
    "controller",
    "tls",
    "clientConnection",
    "internalCertManagement",
    "queueVisibility",
)
_REFUSED: Final = {
    "multiKueue": "one cluster is looked after, not several",
    "admissionFairSharing": "what was used in the past plays no part; namespaceOrdering: WeightedShare of a "
    "ClusterQueue looks at what is used now",
    "resources.excludeResourcePrefixes": "what requests a resource that its queue does not list is not "
    "admitted: list it, or take it out of the requests",
    "resources.transformations": "requests count as they are written",
    "resources.deviceClassMappings": "devices that are claimed by class are not counted",
}
_FRAMEWORKS: Final = {
    "batch/job": (Fidelity.TRANSLATED, "Jobs with a queue's label are held back"),
    **{
        kind.lower(): (
            Fidelity.APPROXIMATED,
            f"only Jobs are held back: the importer makes one of each {kind}",
        )
        for kind in ("Pod", "Deployment", "StatefulSet")
    },
}


def unpacked(documents: Iterable[Document], into: Translation) -> list[Document]:
    """The same documents, where a ConfigMap with Kueue's configuration in it gives way to that."""
    found: list[Document] = []
    for each in documents:
        is_map = (each.group, each.kind) == ("", "ConfigMap")
        inner = list(_inside(each, into)) if is_map else []
        found += inner or [each]
    return found


def _inside(config_map: Document, into: Translation) -> Iterator[Document]:
    """The configuration in a ConfigMap; what else is in it is refused."""
    data = config_map.raw.get("data")
    for key, text in data.items() if isinstance(data, dict) else ():
        place = f"{config_map.name}: {key}"
        words = "not known to the importer"
        try:
            raws = [raw for _, raw in parsed(place, str(text)) if _is_configuration(raw)]
        except ManifestError as error:
            raws, words = [], str(error)
        if not raws:
            into.find(config_map.name, below("data", key), Fidelity.REFUSED, words)
        yield from (document(place, raw) for raw in raws)


def enables_fair_sharing(documents: Iterable[Document]) -> bool:
    return any(each.group == GROUP and _shares(each.raw) for each in documents)


def _shares(raw: Json) -> bool:
    """By a field of the section; since v1beta2 by the section itself."""
    section = raw.get("fairSharing")
    if not isinstance(section, dict):
        return False
    return section.get("enable") is True or raw.get("apiVersion") != f"{GROUP}/v1beta1"


def configuration(source: ManifestSource) -> None:
    source.account(Fidelity.TRANSLATED, dict.fromkeys(_PROCESS, "concerns Kueue's own program"))
    source.refuse_or_ignore(_REFUSED)
    _fair_sharing(source)
    _jobs_without_queue(source)
    _pods_ready(source)
    _integrations(source)
    if source.value("featureGates"):
        source.approximated("featureGates", "switch parts of Kueue: what they switch has its own lines here")
    if source.value("objectRetentionPolicies"):
        words = "a Workload goes with its Job: give Jobs ttlSecondsAfterFinished"
        source.approximated("objectRetentionPolicies", words)


def _fair_sharing(source: ManifestSource) -> None:
    if not _shares(source.raw):
        if source.mapping("fairSharing"):
            source.translated("fairSharing", "is not enabled")
        return
    path = "fairSharing.enable" if source.mapping("fairSharing") else "fairSharing"
    words = "fairSharing.enabled of each Cohort at the top of a tree"
    source.account(Fidelity.TRANSLATED, {path: words})
    strategy = "there is one strategy, which compares shares as they are after the eviction"
    source.account(Fidelity.APPROXIMATED, {"fairSharing.preemptionStrategies": strategy})


def _jobs_without_queue(source: ManifestSource) -> None:
    path = "manageJobsWithoutQueueName"
    if source.value(path) is True:
        source.approximated(path, "a PlacementPolicy says which queue Jobs without a label wait in")
    elif source.value(path) is not None:
        source.translated(path, "Jobs without a label are left alone")
    words = "write it as the namespaceSelector of a PlacementPolicy"
    source.account(Fidelity.APPROXIMATED, {"managedJobsNamespaceSelector": words})


def _pods_ready(source: ManifestSource) -> None:
    if source.value("waitForPodsReady.enable") is False:
        source.translated("waitForPodsReady", "is not enabled")
    elif source.value("waitForPodsReady") is not None:
        words = (
            "here queues and Cohorts say it: set spec.lifecycle.readyTimeout, recoveryTimeout, backoff and "
            "giveUp of these; no admission waits for the pods of another Job"
        )
        source.refused("waitForPodsReady", words)


def _integrations(source: ManifestSource) -> None:
    frameworks = source.sequence("integrations.frameworks")
    described = {
        f"{version.partition('/')[0]}/{kind.lower()}": raw["metadata"]["name"]
        for (version, kind), raw in job_kinds().items()
    }
    for index, name in enumerate(frameworks):
        path = f"integrations.frameworks[{index}]"
        job_kind = described.get(str(name))
        words = f"JobKind {job_kind}, which admitter install applies if the cluster has the kind"
        default = (Fidelity.TRANSLATED, words) if job_kind else (Fidelity.REFUSED, "no JobKind describes it")
        outcome, words = _FRAMEWORKS.get(str(name), default)
        source.find(path, outcome, f"{name}: {words}")
    source.refuse_unless_empty({"integrations.labelKeysToCopy": "a Workload has no labels of its Job"})


def _is_configuration(raw: object) -> bool:
    return (
        isinstance(raw, dict)
        and raw.get("kind") == KIND
        and str(raw.get("apiVersion")).startswith(f"{GROUP}/")
    )
