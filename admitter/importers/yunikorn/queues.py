"""YuniKorn's hierarchy of queues, as Cohorts, ClusterQueues, and roles to submit to LocalQueues.

Rules: docs/design/import.md; fields: YuniKorn's user guide, *Partition and Queue Configuration* and *ACLs*:
`users groups`, each a list with commas, or `*`. Users that may submit to a queue may submit to all below it,
and the administrators of a queue may submit to it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from admitter.importers.naming import Names
from admitter.importers.queue_tree import FOR_EVER, QueueNode, cut, quantities
from admitter.importers.translation import Fidelity, Json, ManifestSource, below
from admitter.names import GROUP, ROOT_COHORT, SUBMIT_VERB
from admitter.quantities.amounts import parse_quantity
from admitter.quantities.durations import InvalidDurationError, parse_duration

RESOURCES: Final = {"vcore": "cpu"}
"""Our names of resources that YuniKorn calls otherwise."""

NO_FIELDS: Final = {
    "maxapplications": "quota counts resources, not how many Jobs run",
    "limits": "quota is a queue's: give each user or group that needs a limit a queue of its own",
    "childtemplate": "a queue that a placement makes has no quota of its own but its namespace's annotation; "
    "what is above it limits it too",
}
"""Fields of a queue that nothing here means, and why."""

AUTHENTICATED: Final = "system:authenticated"
"""The group of all users that an API server knows."""

SUBMITTER: Final = "admitter-submitter"
"""The role that lets all editors of a namespace submit to all its queues; its labels aggregate it."""

_RBAC: Final = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class YuniKornAccess:
    """The users that may submit: all (`open`), or some users and groups."""

    open: bool = False
    users: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return self.open or bool(self.users or self.groups)

    def __or__(self, other: "YuniKornAccess") -> "YuniKornAccess":
        if self.open or other.open:
            return YuniKornAccess(open=True)
        return YuniKornAccess(users=self.users | other.users, groups=self.groups | other.groups)

    def subjects(self) -> list[Json]:
        """As a binding names them."""
        groups = [AUTHENTICATED] if self.open else sorted(self.groups)
        named = [("User", user) for user in sorted(self.users)] + [("Group", group) for group in groups]
        return [{"apiGroup": _RBAC, "kind": kind, "name": name} for kind, name in named]


def read_access(source: ManifestSource, path: str) -> YuniKornAccess:
    """The users that the lists of the queue at a path let submit; the report says what each list becomes."""
    access = YuniKornAccess()
    for key in ("submitacl", "adminacl"):
        place = f"{path}.{key}"
        if source.value(place) is None:
            continue
        text = source.text(place)
        fields = text.split()
        if len(fields) > 2:
            source.refused(place, "must be users, a space, and groups, each with commas between them")
            continue
        _account(source, place, key, _parsed(text))
        access |= _parsed(text)
    return access


def _account(source: ManifestSource, path: str, key: str, access: YuniKornAccess) -> None:
    words = f"the verb {SUBMIT_VERB} on localqueues.{GROUP}, here and below" if access else "no user: no role"
    if key == "adminacl":
        source.approximated(path, f"{words}; what else administrators may do is up to other roles of yours")
    elif access.open:
        source.translated(path, words)
    else:
        words += f"; editors of a namespace may too, unless ClusterRole {SUBMITTER} loses its labels"
        source.approximated(path, words)


def _parsed(text: str) -> YuniKornAccess:
    if "*" in text.replace(",", " ").split():
        return YuniKornAccess(open=True)
    users, _, groups = text.partition(" ")
    return YuniKornAccess(users=_names(users), groups=_names(groups))


def _names(text: str) -> frozenset[str]:
    return frozenset(name.strip() for name in text.split(",") if name.strip())


def roles(queue: str | None, access: YuniKornAccess) -> list[Json]:
    """A role that may submit to a queue, and its binding; nothing if no user may.

    A LocalQueue that a placement makes has the name of its ClusterQueue, in whatever namespace it is. Without
    a name the role is for all queues there are, also those that come later.
    """
    if not access:
        return []
    name = f"admitter-submit-{queue}" if queue else "admitter-submit"
    rule: Json = {"apiGroups": [GROUP], "resources": ["localqueues"], "verbs": [SUBMIT_VERB]}
    if queue:
        rule["resourceNames"] = [queue]
    reference = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name}
    return [
        _object("ClusterRole", name, rules=[rule]),
        _object("ClusterRoleBinding", name, roleRef=reference, subjects=access.subjects()),
    ]


def _object(kind: str, name: str, **fields: object) -> Json:
    return {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": {"name": name}, **fields}


@dataclass(slots=True)
class QueuePlace:
    """A queue of YuniKorn's: what it becomes, and the users that its lists and those above let submit.

    The root's lists do not count here.
    """

    node: QueueNode
    access: YuniKornAccess


@dataclass(slots=True)
class YuniKornTree:
    """All queues of a partition, each by its path without `root.`, in the order of the file.

    `everywhere` are the users that the root lets submit.
    """

    root: QueueNode = field(default_factory=lambda: QueueNode(ROOT_COHORT, inner=True))
    places: dict[str, QueuePlace] = field(default_factory=dict)
    everywhere: YuniKornAccess = field(default_factory=YuniKornAccess)

    def add(self, path: str, name: str) -> bool:
        """Add a queue that Jobs can be in; False if the one above it has none below it."""
        parent, _, _ = path.rpartition(".")
        above = self.places.get(parent)
        if parent and (above is None or not above.node.inner):
            return False
        node = QueueNode(name)
        (above.node if above is not None else self.root).below.append(node)
        self.places[path] = QueuePlace(node, above.access if above is not None else YuniKornAccess())
        return True

    def leaves(self) -> Iterator[tuple[str, QueuePlace]]:
        return ((path, place) for path, place in self.places.items() if not place.node.inner)


@dataclass(frozen=True, slots=True)
class Inherited:
    """What a queue inherits from the queues above it."""

    path: str = ""  # the path of the queue above, without `root.`
    preempts: bool = True  # whether it may reclaim its guaranteed quota
    protected: bool = False  # whether no other queue may take quota from it
    guaranteed: bool = False  # whether a queue above it has guaranteed quota
    delay: str | None = None  # how long it waits before it reclaims; None: not set
    access: YuniKornAccess = field(default_factory=YuniKornAccess)


@dataclass(slots=True)
class QueueReader:
    """Reads the queues of a partition, and accounts for their fields.

    If it preempts, the partition takes guaranteed resources back from queues that borrow them.
    """

    source: ManifestSource
    names: Names
    preempts: bool
    tree: YuniKornTree = field(default_factory=YuniKornTree)
    _delays: list[tuple[QueueNode, str | None]] = field(default_factory=list)
    _delay_fields: list[str] = field(default_factory=list)

    def read(self, path: str) -> YuniKornTree:
        """All queues in the list at a path. A root is put above them if they have none."""
        self.names.of("Cohort", ROOT_COHORT)
        places = self.source.items(path)
        inherited = Inherited(preempts=self.preempts)
        self._keep_names(places, "")
        if len(places) == 1 and self._name(places[0]) == ROOT_COHORT:
            self._root(places[0], inherited)
        else:
            for place in places:
                self._queue(place, self.tree.root, inherited)
        self._account_for_delays()
        return self.tree

    def _keep_names(self, places: list[str], above: str) -> None:
        """Keep the names of all queues, before any is renamed."""
        for place in places:
            name = self._name(place)
            path = "" if not above and name == ROOT_COHORT else f"{above}.{name}".lstrip(".")
            for kind in ("Cohort", "ClusterQueue"):
                self.names.keep(kind, path)
            self._keep_names(self.source.items(f"{place}.queues"), path)

    def _name(self, place: str) -> str:
        """A queue's name; YuniKorn does not tell capital letters from small ones."""
        return self.source.text(f"{place}.name").lower()

    def _root(self, place: str, inherited: Inherited) -> None:
        source, tree = self.source, self.tree
        source.translated(f"{place}.name", f"Cohort {ROOT_COHORT}, which has what the nodes have")
        source.account(Fidelity.TRANSLATED, {"parent": "the root always has queues below it"}, place)
        source.account(Fidelity.REFUSED, {"resources": "the root has what the nodes have"}, place)
        tree.everywhere = read_access(source, place)
        source.account(Fidelity.REFUSED, NO_FIELDS, place)
        inherited = self._properties(place, tree.root, inherited, top=True)
        for child in source.items(f"{place}.queues"):
            self._queue(child, tree.root, inherited)

    def _queue(self, place: str, above: QueueNode, inherited: Inherited) -> None:
        source, name = self.source, self._name(place)
        path = f"{inherited.path}.{name}" if inherited.path else name
        if not name or "." in name or path in self.tree.places:
            why = "is there twice" if path in self.tree.places else "must be a text without dots"
            source.refused(place, f"left out with all below it: its name {why}")
            return
        children = source.items(f"{place}.queues")
        node = QueueNode("", inner=bool(children) or source.value(f"{place}.parent") is True)
        kind = "Cohort" if node.inner else "ClusterQueue"
        node.name = self.names.of(kind, f"{ROOT_COHORT}.{path}", path)
        above.below.append(node)
        self._account_for_name(place, path, f"{kind} {node.name}")
        self._quota(place, node)
        access = inherited.access | read_access(source, place)
        self.tree.places[path] = QueuePlace(node, access)
        source.account(Fidelity.REFUSED, NO_FIELDS, place)
        inherited = replace(
            inherited, path=path, access=access, guaranteed=inherited.guaranteed or bool(node.guaranteed)
        )
        inherited = self._properties(place, node, inherited, top=False)
        for child in children:
            self._queue(child, node, inherited)

    def _account_for_name(self, place: str, path: str, what: str) -> None:
        source, written = self.source, self.source.text(f"{place}.name")
        old = f"{path.rpartition('.')[0]}.{written}".lstrip(".")
        if what.rpartition(" ")[2] == old:
            source.translated(f"{place}.name", what)
        else:
            words = f"renamed: {what}; by rules that ask a label it is no longer found as {old}"
            source.approximated(f"{place}.name", words)
        if isinstance(source.value(f"{place}.parent"), bool):
            source.translated(f"{place}.parent", what)
        else:
            source.account(Fidelity.REFUSED, {"parent": "must be true or false"}, place)

    def _quota(self, place: str, node: QueueNode) -> None:
        source, path = self.source, f"{place}.resources"
        most = quantities(source, f"{path}.max", RESOURCES)
        if source.mapping(f"{path}.max"):
            if any(parse_quantity(quantity) for quantity in most.values()):
                node.most = most
                source.translated(f"{path}.max", "max, here and for all below together")
            elif most:
                words = "no max: YuniKorn passes over one that is 0 in all resources"
                source.translated(f"{path}.max", words)
        node.guaranteed = quantities(source, f"{path}.guaranteed", RESOURCES)
        cut(source, f"{path}.guaranteed", node.guaranteed, node.most, RESOURCES)
        if source.mapping(f"{path}.guaranteed") and self.preempts:
            source.approximated(
                f"{path}.guaranteed",
                "min, and reclaimWithinCohort: Any: taken back at once, whatever the borrower's priority; "
                "YuniKorn waits for preemption.delay and does not preempt higher priority",
            )
        elif source.mapping(f"{path}.guaranteed"):
            source.translated(f"{path}.guaranteed", "min")

    def _properties(self, place: str, node: QueueNode, inherited: Inherited, *, top: bool) -> Inherited:
        """Account for a queue's properties; returns what the queues below have from it."""
        source, path = self.source, f"{place}.properties"
        protected, fenced, delay = inherited.protected, False, inherited.delay
        for key in source.mapping(path):
            where = below(path, key)
            value = str(source.value(where)).strip().lower()
            if key == "application.sort.policy":
                source.find(where, *_SORTING.get(value, _NO_SORTING))
            elif key == "preemption.policy":
                protected |= value == "disabled"
                fenced = value == "fence" and not top
                policy = "default" if value == "fence" and top else value
                source.find(where, *_PREEMPTION.get(policy, _NO_PREEMPTION))
            elif key == "preemption.delay":
                delay = self._delay(where, value) or delay
            elif key in _ONLY_DEFAULT:
                default, why = _ONLY_DEFAULT[key]
                if value == default:
                    source.translated(where, _ANYWAY)
                else:
                    source.refused(where, why)
        preempts = inherited.preempts and not fenced
        below_it = replace(inherited, protected=protected, preempts=preempts, delay=delay)
        if not node.inner:
            self._preemption(node, below_it)
        return below_it

    def _preemption(self, node: QueueNode, inherited: Inherited) -> None:
        self._delays.append((node, inherited.delay))
        preemption: dict[str, object] = {}
        if inherited.preempts and inherited.guaranteed:
            preemption["reclaimWithinCohort"] = "Any"
        if inherited.protected:
            preemption["minRuntime"] = FOR_EVER
        if preemption:
            node.spec["preemption"] = preemption

    def _delay(self, where: str, value: str) -> str | None:
        """How long a queue waits before it takes back; None if what is written is no time."""
        try:
            parse_duration(value)
        except InvalidDurationError as error:
            self.source.refused(where, str(error))
            return None
        self._delay_fields.append(where)
        return value

    def _account_for_delays(self) -> None:
        """A time that all wait can as well be granted to all: the eviction comes when it would."""
        common = {delay for _, delay in self._delays}
        words = "taking back does not wait, and not all queues have the same to grant as gracePeriod"
        outcome = Fidelity.REFUSED
        if len(common) == 1:
            words = "gracePeriod of all queues: not waited before the choice, but granted after it"
            outcome = Fidelity.APPROXIMATED
        for where in self._delay_fields:
            self.source.find(where, outcome, words)
        for node, delay in self._delays:
            if len(common) == 1 and delay is not None:
                node.spec.setdefault("preemption", {})["gracePeriod"] = delay


_ANYWAY: Final = "as it is here anyway"
_FIFO: Final = "queueingStrategy: BestEffortFIFO"
_SORTING: Final = {
    "fifo": (Fidelity.TRANSLATED, _FIFO),
    "fair": (
        Fidelity.APPROXIMATED,
        (
            f"{_FIFO}: by priority and age, not by what each application uses; "
            "namespaceOrdering: WeightedShare does that by namespace"
        ),
    ),
    "stateaware": (
        Fidelity.APPROXIMATED,
        f"{_FIFO}: any number of Jobs may start at a time, as in YuniKorn since 1.6",
    ),
}
"""What becomes of `application.sort.policy`."""
_NO_SORTING: Final = (Fidelity.REFUSED, "is none of fifo, fair and stateaware")
_PREEMPTION: Final = {
    "default": (Fidelity.TRANSLATED, _ANYWAY),
    "fence": (
        Fidelity.APPROXIMATED,
        "reclaimWithinCohort: Never here and below, so that they take nothing from each other either",
    ),
    "disabled": (
        Fidelity.APPROXIMATED,
        "minRuntime without end here and below: what runs in it is never evicted for others",
    ),
}
"""What becomes of `preemption.policy`; at the root `fence` means `default`."""
_NO_PREEMPTION: Final = (Fidelity.REFUSED, "is none of default, fence and disabled")
_ONLY_DEFAULT: Final = {
    "application.sort.priority": ("enabled", "priority always counts within a queue"),
    "priority.policy": ("default", "priorities count among all queues of the tree"),
    "priority.offset": ("0", "queues have no priority of their own: use other PriorityClasses"),
}
"""Properties of which only one value means something here, and why the others do not."""
