"""The queue of a Job that names none: rules of a PlacementPolicy (docs/design/namespaces.md).

Nothing is read or written here: the same rules place Jobs in a cluster and in a simulation.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

import orjson

from admitter.api.base import LONGEST_NAME
from admitter.api.placement_policy import PlacementRule, RuleSource
from admitter.names import (
    ELASTIC_QUOTA_QUEUE,
    GROUPS_ANNOTATION,
    PARENT_QUEUE_ANNOTATIONS,
    PLACED_ANNOTATION,
    PLACEMENT_ANNOTATION,
    ROOT_COHORT,
    USER_ANNOTATION,
    USER_INFO_ALIAS_ANNOTATION,
    USERNAME_ALIAS_LABEL,
)
from admitter.quotas import namespaces
from admitter.quotas.namespaces import AnnotationError

Json = dict[str, Any]
Texts = Mapping[str, str]

_PART: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAME: Final = re.compile(rf"{_PART}(\.{_PART})*")
_RESERVED: Final = frozenset({ROOT_COHORT, ELASTIC_QUOTA_QUEUE})
_DIGITS: Final = 10
_DIGESTED: Final = re.compile(rf"(.*-)?[0-9a-f]{{{_DIGITS}}}")
_OF_KUBERNETES: Final = "system:"


class PlacementError(Exception):
    """A rule leads to no queue; the message says what it lacks."""


@dataclass(frozen=True, slots=True)
class Maker:
    """The maker of a Job: a user, with the user's groups in the API server's order.

    It is known if the API server says so; else the Job itself does.
    """

    user: str
    groups: tuple[str, ...] = ()
    known: bool = False


@dataclass(frozen=True, slots=True)
class Submission:
    """What a Job says of itself that names no queue, or one that a rule has found."""

    labels: Texts = field(default_factory=dict)
    template_labels: Texts = field(default_factory=dict)
    maker: Maker | None = None  # its maker; None if nothing says so
    complaint: str = ""  # why what it says of its maker can't be read; empty if it can
    policy: str = ""  # the PlacementPolicy for which it was suspended when it was made; empty if for none
    # the LocalQueue that a rule has found for it; empty if it waited for one when its policy ended; None if
    # no policy has had it
    placed: str | None = None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What there is for the Jobs of a namespace."""

    namespace: str
    annotations: Texts
    # whether a ClusterQueue selects it; None: there is no such ClusterQueue
    selected_by: Callable[[str], bool | None]
    local_queues: Texts  # its LocalQueues by name, and where they lead
    has_cohort: Callable[[str], bool]  # whether there is a Cohort of a name
    # whether a name is kept for the queue of a namespace: there is a namespace of that name, and there is no
    # ClusterQueue of it that the controller did not make
    is_kept: Callable[[str], bool]
    is_personal: Callable[[str], bool]  # whether a ClusterQueue was made for a user or a group


@dataclass(frozen=True, slots=True)
class Placed:
    """The LocalQueue of a Job, the ClusterQueue where that leads, and what has to be made for that."""

    queue: str
    cluster_queue: str
    cohorts: tuple[tuple[str, str], ...] = ()  # Cohorts to be made, name and parent, from above to below
    spec: Json | None = None  # of the ClusterQueue to be made; None if it is there
    of_namespace: bool = False  # whether the ClusterQueue is the namespace's own
    personal: bool = False  # whether it is to be made for a user or a group
    leads: bool = True  # whether the LocalQueue is there


@dataclass(frozen=True, slots=True)
class _Named:
    """What a rule says: a ClusterQueue, and the Cohort above if the name is a path."""

    name: str
    above: str = ""


def submission(manifest: Json) -> Submission:
    """What a Job says of itself, from its manifest."""
    metadata, template = manifest["metadata"], manifest["spec"]["template"].get("metadata") or {}
    annotations, labels = metadata.get("annotations") or {}, metadata.get("labels") or {}
    try:
        maker, complaint = _maker(metadata, template), ""
    except ValueError as error:
        maker, complaint = None, str(error)
    policy = annotations.get(PLACEMENT_ANNOTATION, "")
    placed = annotations.get(PLACED_ANNOTATION)
    return Submission(labels, template.get("labels") or {}, maker, complaint, policy, placed)


def user_of(metadata: Json, template: Json) -> str:
    """The user that made an object, as the API server or the object itself says; empty if neither does.

    Args:
        metadata: of the object.
        template: of its pods; the metadata of that says it too.
    """
    try:
        maker = _maker(metadata, template)
    except ValueError:
        return ""
    return maker.user[:LONGEST_NAME] if maker is not None and isinstance(maker.user, str) else ""


def place(rules: Sequence[PlacementRule], submitted: Submission, around: Surroundings) -> Placed:
    """The queue that the first rule leads to that leads anywhere.

    Raises:
        PlacementError: none does; it says what each one lacks.
    """
    lacking = []
    for number, rule in enumerate(rules, start=1):
        try:
            return _by_rule(rule, submitted, around)
        except PlacementError as error:
            lacking.append(f"rule {number} (from {rule.from_}): {error}")
    raise PlacementError("; ".join(lacking) or "it has no rules")


def name_of(text: str) -> str:
    """The queue of a user or group: the name, if a queue can have it.

    Otherwise what of it a queue can have, and a digest of all of it: so no name becomes another's. A
    name that ends like a digest gets one too.
    """
    possible = len(text) <= LONGEST_NAME and _NAME.fullmatch(text) and text not in _RESERVED
    return text if possible and not _DIGESTED.fullmatch(text) else _with_digest(text)


def _with_digest(text: str) -> str:
    plain = "-".join(re.findall(r"[a-z0-9]+(?:\.[a-z0-9]+)*", text.lower()))
    digest = sha256(text.encode()).hexdigest()[:_DIGITS]
    room = LONGEST_NAME - _DIGITS - 1
    return "-".join(filter(None, (plain[:room].rstrip("-."), digest)))


def _by_rule(rule: PlacementRule, submitted: Submission, around: Surroundings) -> Placed:
    named = _named(rule, submitted, around)
    if rule.from_ is RuleSource.LABEL and around.is_personal(named.name):
        raise PlacementError(f"ClusterQueue {named.name} is of a user or a group: no label leads there")
    selected = around.selected_by(named.name)
    if selected is None:
        return _made(rule, named, around)
    if not selected:
        words = f"ClusterQueue {named.name} does not select namespace {around.namespace} by its labels"
        raise PlacementError(words)
    queue, leads = _local_queue(named.name, around)
    return Placed(queue, named.name, leads=leads)


def _named(rule: PlacementRule, submitted: Submission, around: Surroundings) -> _Named:
    match rule.from_:
        case RuleSource.LABEL:
            assert rule.label is not None, "the model sees to it"
            return _of_path(_label(rule.label, submitted), f"its label {rule.label}")
        case RuleSource.QUEUE:
            assert rule.queue is not None, "the model sees to it"
            return _of_path(rule.queue, "the rule's queue")
        case RuleSource.NAMESPACE:
            if around.namespace == ELASTIC_QUOTA_QUEUE:
                raise PlacementError(namespaces.NO_QUEUE)
            return _Named(around.namespace)
        case RuleSource.USER:
            return _Named(_personal(_made_by(submitted).user, around))
        case RuleSource.GROUP:
            return _Named(_personal(_group(_made_by(submitted)), around))


def _personal(text: str, around: Surroundings) -> str:
    """The queue of a user or group, which is never one that a namespace may ask for."""
    name = name_of(text)
    return _with_digest(text) if around.is_kept(name) else name


def _label(key: str, submitted: Submission) -> str:
    for labels in (submitted.labels, submitted.template_labels):
        if labels.get(key):
            return labels[key]
    raise PlacementError(f"neither the Job nor its pods have the label {key}")


def _of_path(path: str, source: str) -> _Named:
    """A queue by its way from the root; what is before its last dot is the Cohort above."""
    name = namespaces.cohort_name(path)
    if name in _RESERVED or len(name) > LONGEST_NAME or not _NAME.fullmatch(name):
        raise PlacementError(f"{source} is {path}, which no ClusterQueue can be called")
    return _Named(name, name.rpartition(".")[0])


def _made_by(submitted: Submission) -> Maker:
    if submitted.maker is None:
        raise PlacementError(submitted.complaint or "the maker of the Job is not known")
    return submitted.maker


def _group(maker: Maker) -> str:
    """Those of Kubernetes itself say only how a user has logged in."""
    for group in maker.groups:
        if not group.startswith(_OF_KUBERNETES):
            return group
    raise PlacementError(f"user {maker.user} is in no group")


def _made(rule: PlacementRule, named: _Named, around: Surroundings) -> Placed:
    """A ClusterQueue that the rule makes."""
    if not rule.create:
        raise PlacementError(f"there is no ClusterQueue {named.name}")
    if rule.from_ is not RuleSource.NAMESPACE and around.is_kept(named.name):
        raise PlacementError(f"the name {named.name} is kept for the ClusterQueue of namespace {named.name}")
    parent = _parent(rule, named, around)
    missing = tuple(_missing(parent, around))
    if missing and not rule.create_parent:
        raise PlacementError(f"there is no Cohort {parent} for ClusterQueue {named.name} to belong to")
    queue, leads = _local_queue(named.name, around)
    if rule.from_ is not RuleSource.NAMESPACE:
        spec: Json = {"namespaceSelector": {}, "cohort": parent}
        personal = rule.from_ in {RuleSource.USER, RuleSource.GROUP}
        return Placed(queue, named.name, missing, spec, personal=personal, leads=leads)
    asked = around.annotations or {PARENT_QUEUE_ANNOTATIONS[0]: parent}
    try:
        own = namespaces.cluster_queue(around.namespace, asked, lambda _: True)
    except AnnotationError as error:
        raise PlacementError(f"namespace {around.namespace}: {error}") from error
    return Placed(queue, named.name, missing, own, of_namespace=True, leads=leads)


def _parent(rule: PlacementRule, named: _Named, around: Surroundings) -> str:
    """The Cohort above; for its own queue a namespace with annotations has said so."""
    own = rule.from_ is RuleSource.NAMESPACE and around.annotations
    if rule.parent is not None and not own:
        return namespaces.cohort_name(rule.parent)
    if named.above:
        return named.above
    try:
        return namespaces.cohort_of(around.annotations)
    except AnnotationError as error:
        raise PlacementError(f"namespace {around.namespace}: {error}") from error


def _missing(cohort: str, around: Surroundings) -> Iterator[tuple[str, str]]:
    """The Cohorts on the way from the root that are not there, with their parents."""
    if cohort == ROOT_COHORT or around.has_cohort(cohort):
        return
    parts = cohort.split(".")
    above = ROOT_COHORT
    for end in range(1, len(parts) + 1):
        name = ".".join(parts[:end])
        if not around.has_cohort(name):
            yield name, above
        above = name


def _local_queue(cluster_queue: str, around: Surroundings) -> tuple[str, bool]:
    """The LocalQueue that leads to a ClusterQueue, or is to do so, and whether it is there."""
    leading = sorted(name for name, queue in around.local_queues.items() if queue == cluster_queue)
    if cluster_queue in leading:
        return cluster_queue, True
    for name in leading:
        if name != ELASTIC_QUOTA_QUEUE:
            return name, True
    elsewhere = around.local_queues.get(cluster_queue)
    if elsewhere is not None:
        words = f"LocalQueue {cluster_queue} leads to ClusterQueue {elsewhere}, and none to {cluster_queue}"
        raise PlacementError(words)
    return cluster_queue, False


def _maker(metadata: Json, template: Json) -> Maker | None:
    """The maker of a Job.

    Raises:
        ValueError: what is said of the maker can't be read.
    """
    annotations = metadata.get("annotations") or {}
    if annotations.get(USER_ANNOTATION):
        groups = _texts(annotations.get(GROUPS_ANNOTATION, "[]"))
        return Maker(annotations[USER_ANNOTATION], groups if groups is not None else (), known=True)
    for source in (metadata, template):
        text = (source.get("annotations") or {}).get(USER_INFO_ALIAS_ANNOTATION)
        if text is not None:
            return _told(text)
    for source in (metadata, template):
        user = (source.get("labels") or {}).get(USERNAME_ALIAS_LABEL)
        if user:
            return Maker(user)
    return None


def _told(text: str) -> Maker:
    info = _parsed(text)
    user = info.get("user") if isinstance(info, dict) else None
    groups = _texts(info.get("groups") or []) if isinstance(info, dict) else None
    if not isinstance(user, str) or not user or groups is None:
        raise ValueError(f"annotation {USER_INFO_ALIAS_ANNOTATION} is no JSON object with user and groups")
    return Maker(user, groups)


def _texts(value: object) -> tuple[str, ...] | None:
    """A list of texts, or one written as JSON; None if it is none."""
    parsed = _parsed(value) if isinstance(value, str) else value
    if not isinstance(parsed, list) or not all(isinstance(each, str) for each in parsed):
        return None
    return tuple(parsed)


def _parsed(text: str) -> Any:  # noqa: ANN401  # any JSON
    try:
        # Python's own parser takes halves of characters, which have no digest, and raises of long numbers.
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
