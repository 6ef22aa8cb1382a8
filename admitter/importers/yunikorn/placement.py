"""YuniKorn's placement rules, as a PlacementPolicy, and the queue that a pod names, as its Job's LocalQueue.

Rules: docs/design/import.md and docs/design/namespaces.md; fields: YuniKorn's user guide, *App Placement
Rules*.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from admitter.importers.naming import Names
from admitter.importers.queue_tree import LocalQueues
from admitter.importers.reading import Document
from admitter.importers.translation import Fidelity, Json, ManifestSource, Translation, below, own
from admitter.importers.yunikorn.queues import YuniKornTree
from admitter.names import PARENT_QUEUE_ANNOTATIONS, ROOT_COHORT
from admitter.quotas.namespaces import NAME_LABEL

LABELS: Final = ("yunikorn.apache.org/queue", "queue")
"""Labels that name a pod's queue; the first that is there counts."""

POLICY: Final = "yunikorn"

SCHEDULER: Final = "yunikorn"

_PARENT_TAG: Final = "namespace.parentqueue"
_SOURCES: Final = {"user": "User", "group": "Group", "primarygroup": "Group"}
_APPLICATIONS: Final = ("yunikorn.apache.org/app-id", "applicationId", "spark-app-selector")
_GANG: Final = (
    "yunikorn.apache.org/task-groups",
    "yunikorn.apache.org/task-group-name",
    "yunikorn.apache.org/schedulingPolicyParameters",
)
_METADATA: Final = ("metadata", "spec.template.metadata", "spec.jobTemplate.spec.template.metadata")
"""Where metadata of pods is, in all kinds that have pods."""


class RefusedError(Exception):
    """A rule, or the rule for its parent, can't be translated; the words say why."""


@dataclass(slots=True)
class RuleReader:
    """Reads the placement rules of a partition, and accounts for their fields.

    What finds that nothing here means a rule raises RefusedError.
    """

    source: ManifestSource
    tree: YuniKornTree
    names: Names
    rules: list[Json] = field(default_factory=list)  # what the rules become
    by_label: bool = False  # whether a Job's own label can decide
    by_default: bool = False  # whether there are no rules, so that a label has to name the queue
    # whether a namespace gets a queue of its own, so that its annotations count
    makes_by_namespace: bool = False
    asks_parent: bool = False  # whether a namespace's annotation says what its queue is below
    creates_by_label: bool = False  # whether a queue is made that only a label names

    def read(self, path: str) -> None:
        """Read the rules in the list at a path; without any, a queue is what a label says."""
        if not self.source.value(path):
            self.by_label = self.by_default = True
            self.rules = [{"from": "Label", "label": label, "parent": ROOT_COHORT} for label in LABELS]
            return
        self.rules = [rule for place in self.source.items(path) for rule in self._rule(place)]

    def _rule(self, place: str) -> list[Json]:
        try:
            made, words = self._made(place)
        except RefusedError as why:
            self.source.refused(place, f"left out, the next rule is asked instead: {why}")
            return []
        if words:
            self.source.approximated(place, f"from: {made[0]['from']}; {words}")
        else:
            self.source.translated(place, f"from: {made[0]['from']}")
        return made

    def _made(self, place: str) -> tuple[list[Json], str]:
        """Our rules for one of theirs, and how they differ."""
        kind, value = self._kind(place), self.source.text(f"{place}.value")
        if kind == "fixed":
            return [self._fixed(place, value)], ""
        asked: list[Json]
        if kind == "provided":
            asked = [{"from": "Label", "label": label} for label in LABELS]
        elif kind == "tag" and value.lower() == "namespace":
            asked = [{"from": "Namespace"}]
        elif kind in _SOURCES:
            asked = [{"from": _SOURCES[kind]}]
        elif kind == "tag":
            raise RefusedError(f"Jobs have no tag {value or 'without a value'}, only their namespace")
        else:
            raise RefusedError(f"{kind or 'a rule without a name'} is none that is known")
        parent, words = self._parent(place)
        create = {"create": True} if self._create(place) else {}
        self.by_label |= kind == "provided"
        self.creates_by_label |= kind == "provided" and bool(create)
        self.makes_by_namespace |= kind == "tag" and bool(create)
        self.asks_parent |= kind == "tag" and bool(create) and "parent" not in parent
        return [{**rule, **parent, **create} for rule in asked], words

    def _kind(self, place: str) -> str:
        """What a rule asks of all users."""
        if any(self.source.sequence(f"{place}.filter.{part}") for part in ("users", "groups")):
            raise RefusedError("rules have no filter: they are for all users")
        return self.source.text(f"{place}.name").strip().lower()

    def _create(self, place: str) -> bool:
        return self.source.value(f"{place}.create") is True

    def _fixed(self, place: str, value: str) -> Json:
        """The rule for a queue that is written in it, and that Jobs can be in."""
        path = self._fixed_path(place)
        if path is None:
            raise RefusedError(f"where {value} is depends on its parent, which is no fixed one")
        known = self.tree.places.get(path)
        if known is not None and known.node.inner:
            raise RefusedError(f"{value} has queues below it, so no Job can be in it")
        if known is not None:
            return {"from": "Queue", "queue": known.node.name}
        if not path or not self._create(place):
            raise RefusedError(f"there is no queue {value or 'without a value'}, and it must not be created")
        name = self.names.of("ClusterQueue", f"{ROOT_COHORT}.{path}", path)
        return {
            "from": "Queue",
            "queue": name,
            "parent": self._cohort(path.rpartition(".")[0]),
            "create": True,
        }

    def _fixed_path(self, place: str) -> str | None:
        """The path that a rule and its parents spell, empty without a rule; None if they do not spell it."""
        if self.source.value(place) is None:
            return ""
        if self._kind(place) != "fixed":
            return None
        value = self.source.text(f"{place}.value").lower()
        full = value.startswith(f"{ROOT_COHORT}.")
        above = "" if full else self._fixed_path(f"{place}.parent")
        path = value.removeprefix(f"{ROOT_COHORT}.")
        return None if above is None else f"{above}.{path}".lstrip(".")

    def _cohort(self, path: str) -> str:
        """The Cohort of an inner queue."""
        if not path:
            return ROOT_COHORT
        known = self.tree.places.get(path)
        if known is None:
            return self.names.of("Cohort", f"{ROOT_COHORT}.{path}", path)
        if not known.node.inner:
            raise RefusedError(f"{path} is a queue that no other can be below")
        return known.node.name

    def _parent(self, place: str) -> tuple[Json, str]:
        """Under which Cohort a rule's queues are, and how that differs from what is asked."""
        path = f"{place}.parent"
        if self.source.value(path) is None:
            return {"parent": ROOT_COHORT}, ""
        self.source.mapping(path)
        kind, value = self._kind(path), self.source.text(f"{path}.value").lower()
        create: Json = {"createParent": True} if self._create(path) else {}
        if kind == "tag" and value == _PARENT_TAG and self.source.value(f"{path}.parent") is None:
            words = (
                f"the parent is in the namespace's annotation {PARENT_QUEUE_ANNOTATIONS[0]}; without one it "
                f"is {ROOT_COHORT}, where YuniKorn asks the next rule"
            )
            return create, words
        fixed = self._fixed_path(path)
        if fixed is None:
            raise RefusedError("the parent is a Cohort by name, or by the namespace's annotation")
        if fixed not in self.tree.places and not create:
            raise RefusedError(f"there is no queue {fixed}, and it must not be created")
        return {"parent": self._cohort(fixed), **create}, self._hidden(fixed)

    def _hidden(self, path: str) -> str:
        """What a rule does not find: queues of the configuration that are called after their parent here."""
        hidden = [leaf for leaf, _ in self.tree.leaves() if leaf.startswith(f"{path}.")]
        if not hidden:
            return ""
        return f"it finds and makes queues by their own name, not {hidden[0]} by its last part"


def policy(rules: list[Json], only: list[str], never: list[str]) -> Json:
    """The policy of all rules, for some namespaces, or all, and never for some others."""
    expressions = [
        {"key": NAME_LABEL, "operator": operator, "values": sorted(names)}
        for operator, names in (("In", only), ("NotIn", never))
        if names
    ]
    spec = {"namespaceSelector": {"matchExpressions": expressions}, "rules": rules}
    return own("PlacementPolicy", {"name": POLICY}, spec)


def named(documents: Iterable[Document]) -> Iterator[str]:
    """The paths of all queues that pods name, without the root."""
    for document in documents:
        source = ManifestSource(document.raw, document.name, Translation())
        for metadata in _METADATA:
            yield from (_path(source.text(place)) for place in _places(source, metadata))


def _places(source: ManifestSource, metadata: str) -> list[str]:
    """Where a pod names its queue; the first one counts."""
    canonical, legacy = LABELS
    fields = (("labels", canonical), ("annotations", canonical), ("labels", legacy))
    places = [below(f"{metadata}.{part}", key) for part, key in fields]
    return [place for place in places if isinstance(source.value(place), str)]


def _path(queue: str) -> str:
    """YuniKorn does not tell capital letters from small ones."""
    return queue.lower().removeprefix(f"{ROOT_COHORT}.")


@dataclass(slots=True)
class WorkloadReader:
    """Finds the queues of pods; without rules there is no configuration."""

    names: Names
    local_queues: LocalQueues
    rules: RuleReader | None = None

    def queue(self, source: ManifestSource, template: str) -> str | None:
        """The LocalQueue of an object with pods; empty if the placement finds it, None if nothing does."""
        metadata = below(template, "metadata")
        self.local_queues.count(source, below(template, "spec"))
        _account_for_application(source, metadata)
        places = _places(source, metadata)
        if not places:
            scheduler = source.value(f"{template}.spec.schedulerName".lstrip("."))
            return "" if self.rules is not None or scheduler == SCHEDULER else None
        for place in places[1:]:
            source.translated(place, "another label says it, which counts")
        place = places[0]
        if self.rules is not None and not self.rules.by_label:
            source.approximated(place, "the placement rules do not ask for it: the PlacementPolicy decides")
            return ""
        name = self._cluster_queue(source, place, _path(source.text(place)))
        self.local_queues.lead(source, name)
        return name

    def _cluster_queue(self, source: ManifestSource, place: str, path: str) -> str:
        known = self.rules.tree.places.get(path) if self.rules is not None else None
        if known is not None and not known.node.inner:
            source.translated(place, f"LocalQueue {known.node.name}")
            return known.node.name
        name = self.names.of("ClusterQueue", f"{ROOT_COHORT}.{path}", path)
        if self.rules is None:
            source.approximated(place, f"LocalQueue {name}; the ClusterQueue comes with the configuration")
        elif known is None and self.rules.creates_by_label and self.rules.tree.add(path, name):
            source.translated(place, f"LocalQueue {name}, and a ClusterQueue, since the rules create it")
        else:
            source.refused(place, f"there is no queue {path} that Jobs can be in: the Job waits")
        return name


def _account_for_application(source: ManifestSource, metadata: str) -> None:
    words = "one Job for each pod template: Jobs of an application are admitted one by one"
    parts = ("labels", "annotations")
    applications = [below(f"{metadata}.{part}", key) for key in _APPLICATIONS for part in parts]
    source.account(Fidelity.APPROXIMATED, dict.fromkeys(applications, words))
    words = "a Job's own pods start together, those of several Jobs do not"
    gangs = [below(f"{metadata}.annotations", key) for key in _GANG]
    source.account(Fidelity.REFUSED, dict.fromkeys(gangs, words))
