"""Kueue's ClusterQueues and Cohorts, of any version of its API."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from admitter.importers.dispatch import metadata
from admitter.importers.naming import Names
from admitter.importers.translation import Fidelity, Json, ManifestSource, Translation, exact, own, said
from admitter.quantities.amounts import InvalidQuantityError, to_amount, to_quantity

GROUP: Final = "kueue.x-k8s.io"
FOREIGN: Final = (GROUP,)

_FUNGIBILITY: Final = {
    "whenCanBorrow": {"Borrow": "Borrow", "MayStopSearch": "Borrow", "TryNextFlavor": "TryNextFlavor"},
    "whenCanPreempt": {"Preempt": "Preempt", "MayStopSearch": "Preempt", "TryNextFlavor": "TryNextFlavor"},
}
_REFUSED: Final = {
    "admissionChecks": "a Job starts as soon as there is quota for it: nothing else is asked",
    "admissionChecksStrategy": "a Job starts as soon as there is quota for it: nothing else is asked",
    "concurrentAdmissionPolicy": "a Job stays in the flavor that it was admitted to",
    "excludeResourcePrefixes": "what requests a resource that its queue does not list is not admitted: "
    "list it, or take it out of the requests",
}
Part = tuple[str, str]
"""Resource and flavor."""


@dataclass(slots=True)
class _Tree:
    """A cohort as it was read: without a source if it is only named.

    `nominal` is quota of its own, and `borrowing` how much may come from above.
    """

    source: ManifestSource | None
    manifest: Json
    parent: str = ""
    nominal: dict[Part, int] = field(default_factory=dict)
    borrowing: dict[Part, tuple[str, int]] = field(default_factory=dict)


@dataclass(slots=True)
class QuotaImporter:
    """Translates ClusterQueues at once, and Cohorts when all are known.

    Kueue's configuration enables fair sharing for all cohorts at once.
    """

    into: Translation
    names: Names
    fair_sharing: bool
    _cohorts: dict[str, _Tree] = field(default_factory=dict)
    _queues: dict[str, Counter[Part]] = field(default_factory=lambda: defaultdict(Counter))

    def cluster_queue(self, source: ManifestSource) -> None:
        name = self.names.take(source, "metadata.name", "ClusterQueue")
        if not name:
            return
        cohort = self._named(source, ("cohort", "cohortName"))
        nominal: dict[Part, int] = {}
        resources = [*self._flat(source, nominal), *self._grouped(source, nominal, {})]
        spec = said(cohort=cohort) | same(source, "namespaceSelector", "queueingStrategy", "stopPolicy")
        spec |= said(resources=resources, flavorFungibility=_fungibility(source))
        spec |= said(preemption=self._preemption(source), fairSharing=_fair_sharing(source))
        source.refuse_or_ignore(_REFUSED, "spec")
        _admission_scope(source)
        manifest = own("ClusterQueue", metadata(source, name, FOREIGN), spec)
        if source.add(manifest) and cohort:
            self._cohorts.setdefault(cohort, _only_named(cohort))
            self._queues[cohort].update(nominal)

    def cohort(self, source: ManifestSource) -> None:
        """A Cohort stays one; it is finished when all queues below it are known."""
        name = self.names.take(source, "metadata.name", "Cohort")
        if not name:
            return
        if name in self._cohorts and self._cohorts[name].source is not None:
            source.refused("", f"there is a Cohort {name} already: the first one counts")
            return
        parent = self._named(source, ("parent", "parentName"))
        nominal: dict[Part, int] = {}
        borrowing: dict[Part, tuple[str, int]] = {}
        resources = self._grouped(source, nominal, borrowing)
        spec = said(parent=parent, resources=resources, fairSharing=_fair_sharing(source))
        manifest = own("Cohort", metadata(source, name, FOREIGN), spec)
        self._cohorts[name] = _Tree(source, manifest, parent, nominal, borrowing)
        if parent:
            self._cohorts.setdefault(parent, _only_named(parent))

    def finish(self) -> None:
        """Make the Cohorts: their limits need what is below them, and fair sharing is enabled at the top."""
        for name, tree in self._cohorts.items():
            if tree.source is not None:
                self._limit(name, tree)
            if self.fair_sharing and not tree.parent:
                tree.manifest["spec"].setdefault("fairSharing", {})["enabled"] = True
            if tree.source is not None or tree.manifest["spec"]:  # one that is only named works without
                source = tree.source or ManifestSource({}, f"Cohort {name}", self.into)
                source.add(tree.manifest)

    def _named(self, source: ManifestSource, keys: Iterable[str]) -> str:
        """The cohort that one of some fields names, by its new name."""
        for key in keys:
            if source.text(f"spec.{key}"):
                return self.names.take(source, f"spec.{key}", "Cohort")
        return ""

    def _flat(self, source: ManifestSource, nominal: dict[Part, int]) -> Iterator[Json]:
        """`resources`, as in v1alpha1 and v1alpha2: the form that ours has too."""
        for at in source.items("spec.resources"):
            resource = source.text(f"{at}.name")
            source.translated(f"{at}.name", resource)
            flavors = []
            for place in source.items(f"{at}.flavors"):
                flavor = self.names.take(source, f"{place}.name", "ResourceFlavor")
                quota = source.mapping(f"{place}.quota")
                given = {key: exact(quota[key]) for key in ("min", "max") if key in quota}
                for key in given:
                    source.translated(f"{place}.quota.{key}", "the same")
                flavors.append({"name": flavor, "quota": given})
                nominal[resource, flavor] = _amount(resource, given.get("min", 0))
            yield {"name": resource, "flavors": flavors}

    def _grouped(
        self, source: ManifestSource, nominal: dict[Part, int], borrowing: dict[Part, tuple[str, int]]
    ) -> list[Json]:
        """`resourceGroups`: resource by resource here, with the group's flavors in each."""
        made: list[Json] = []
        for group in source.items("spec.resourceGroups"):
            resources: dict[str, list[Json]] = {
                str(name): [] for name in source.sequence(f"{group}.coveredResources")
            }
            source.translated(f"{group}.coveredResources", "resources that list the same flavors")
            for at in source.items(f"{group}.flavors"):
                flavor = self.names.take(source, f"{at}.name", "ResourceFlavor")
                for place in source.items(f"{at}.resources"):
                    resource = source.text(f"{place}.name")
                    source.translated(f"{place}.name", resource)
                    quota = _quota(source, place, resource)
                    resources.setdefault(resource, []).append({"name": flavor, "quota": quota})
                    nominal[resource, flavor] = _amount(resource, quota["min"])
                    if source.text("kind") == "Cohort" and "max" in quota:
                        quota.pop("max")
                        limit = _amount(resource, source.value(f"{place}.borrowingLimit"))
                        borrowing[resource, flavor] = f"{place}.borrowingLimit", limit
            made += [{"name": name, "flavors": flavors} for name, flavors in resources.items()]
        return made

    def _preemption(self, source: ManifestSource) -> Json:
        """The same rules, but for what is reclaimed under fair sharing."""
        made: Json = {}
        for key in ("withinClusterQueue", "reclaimWithinCohort"):
            path = f"spec.preemption.{key}"
            if source.value(path) is None:
                continue
            made[key] = source.text(path)
            if key == "reclaimWithinCohort" and self.fair_sharing and made[key] != "Never":
                words = f"{made[key]}: a queue takes back its min without regard to shares"
                source.approximated(path, words)
            else:
                source.translated(path, made[key])
        at = "spec.preemption.borrowWithinCohort"
        known = {"policy", "maxPriorityThreshold"}
        borrow = {key: each for key, each in source.mapping(at).items() if key in known}
        for key, each in borrow.items():
            source.translated(f"{at}.{key}", str(each))
        return made | said(borrowWithinCohort=borrow)

    def _limit(self, name: str, tree: _Tree) -> None:
        """Turn limits on what a cohort borrows from above into the most that is used below it."""
        assert tree.source is not None
        below = self._below(name, set())
        for (resource, flavor), (path, limit) in tree.borrowing.items():
            most = to_quantity(resource, below[resource, flavor] + limit)
            for each in tree.manifest["spec"]["resources"]:
                for quotas in each["flavors"]:
                    if (each["name"], quotas["name"]) == (resource, flavor):
                        quotas["quota"]["max"] = most
            words = f"max {most}: the quota in this cohort and below it as it is now, and the limit"
            tree.source.approximated(path, words)

    def _below(self, name: str, seen: set[str]) -> Counter[Part]:
        """Quota of a cohort, its queues, and the cohorts below it."""
        total = Counter(self._cohorts[name].nominal)
        total.update(self._queues[name])
        for other, tree in self._cohorts.items():
            if tree.parent == name and other not in seen:
                total.update(self._below(other, {*seen, name}))
        return total


def _quota(source: ManifestSource, at: str, resource: str) -> Json:
    """`nominalQuota` and its limits as `min`, `max` and `lendingLimit`."""
    nominal = exact(source.value(f"{at}.nominalQuota"))
    quota: Json = {"min": 0 if nominal is None else nominal}
    if nominal is not None:
        source.translated(f"{at}.nominalQuota", f"min {nominal}")
    borrowing = exact(source.value(f"{at}.borrowingLimit"))
    if borrowing is not None:
        try:
            amount = to_amount(resource, str(quota["min"])) + to_amount(resource, str(borrowing))
            quota["max"] = to_quantity(resource, amount)
        except InvalidQuantityError as error:
            source.refused(f"{at}.borrowingLimit", str(error))
        else:
            if source.text("kind") != "Cohort":
                source.translated(f"{at}.borrowingLimit", f"max {quota['max']}: nominalQuota and the limit")
    lending = exact(source.value(f"{at}.lendingLimit"))
    if lending is not None:
        quota["lendingLimit"] = lending
        source.translated(f"{at}.lendingLimit", "the same")
    return quota


def _amount(resource: str, quantity: object) -> int:
    """A quantity as an integer; 0 for what is none, of which the validation of the queue speaks."""
    try:
        return to_amount(resource, str(quantity))
    except InvalidQuantityError:
        return 0


def same(source: ManifestSource, *keys: str) -> Json:
    """Those of some fields of the spec that are there, which mean the same here."""
    source.account(Fidelity.TRANSLATED, dict.fromkeys(keys, "the same"), "spec")
    return {key: each for key in keys if (each := source.value(f"spec.{key}")) is not None}


def _fungibility(source: ManifestSource) -> Json:
    made: Json = {}
    for key, values in _FUNGIBILITY.items():
        path = f"spec.flavorFungibility.{key}"
        given = source.text(path)
        if given in values:
            made[key] = values[given]
            source.translated(path, values[given])
        elif given:
            source.refused(path, f"{given} is none of {', '.join(values)}")
    path = "spec.flavorFungibility.preference"
    match source.text(path):
        case "BorrowingOverPreemption":
            source.translated(path, "rather borrows than preempts, always")
        case "PreemptionOverBorrowing":
            source.refused(path, "where every flavor was passed over, borrowing comes before preempting")
    return made


def _fair_sharing(source: ManifestSource) -> Json:
    weight = exact(source.value("spec.fairSharing.weight"))
    if weight is None:
        return {}
    source.translated("spec.fairSharing.weight", "the same")
    return {"weight": weight}


def _admission_scope(source: ManifestSource) -> None:
    path = "spec.admissionScope.admissionMode"
    if source.text(path) == "NoAdmissionFairSharing":
        source.translated(path, "as always: what was used in the past plays no part")
    elif source.value("spec.admissionScope") is not None:
        words = "what was used in the past plays no part; namespaceOrdering looks at what is used now"
        source.refused("spec.admissionScope", words)


def _only_named(name: str) -> _Tree:
    return _Tree(None, own("Cohort", {"name": name}, {}))
