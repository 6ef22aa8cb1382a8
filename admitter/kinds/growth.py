"""Conditions of the API server on the pod sets of an object that holds quota, made from its JobKind.

An expression of the JobKind is used as it stands, with `oldObject` for `object` where it is about what was.
Where the API server can't evaluate one, as it reads another object, the fields that it reads may not change.
"""

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from admitter.api.job_kind import Injection, JobKind, JobKindSpec, PodSetsOf
from admitter.kinds.beside import COMPONENTS, POD_SET_INFOS, RUNTIME_PATCHES
from admitter.kinds.expressions import Expression, renamed
from admitter.names import (
    BOUNDS_ANNOTATION,
    CLUSTER_QUEUE_LABEL,
    COUNTED_ANNOTATION,
    FLAVORS_ANNOTATION,
    WORKLOAD_LABEL,
    WORKLOAD_UID_ANNOTATION,
)

LABELS: Final = (WORKLOAD_LABEL, CLUSTER_QUEUE_LABEL)
ANNOTATIONS: Final = (WORKLOAD_UID_ANNOTATION, FLAVORS_ANNOTATION, COUNTED_ANNOTATION)

CONTAINERS: Final = ("containers", "initContainers")
"""Fields of a pod's spec with containers."""

_FIELD: Final = re.compile(r"object(\.\w+)+")
"""An expression that is a field of the object as it stands."""
_Path = tuple[str, ...]
_BEFORE: Final = "item_before"


def optional(root: str, path: _Path) -> str:
    """A field that may be missing, as an optional value.

    Without the types of its definition: these do not know what an embedded object has.
    """
    root = f"dyn({root})" if root in {"object", "oldObject"} else root
    return root + "".join(f".?{name}" for name in path)


def elements(root: str, path: _Path, *, of_map: bool) -> str:
    """The elements of a list or map; none if it is missing, or null where a definition takes any fields."""
    empty = "{}" if of_map else "[]"
    return f"optional.ofNonZeroValue({optional(root, path)}.orValue(null)).orValue({empty})"


def steps(path: str) -> _Path:
    """The names in a path of a JobKind."""
    return tuple(path.split("."))


@dataclass(frozen=True, slots=True)
class _Element:
    """What the paths and expressions of a pod set begin at, as it is and as it was."""

    new: str
    old: str
    all: Callable[[str], str]  # that something holds for each


class PodSetRules:
    """What must hold of the pod sets of one kind."""

    def __init__(self, kind: JobKind, kinds: Collection[JobKind]) -> None:
        self._spec, self._kinds = kind.spec, kinds
        self._related = frozenset(each.name for each in kind.spec.related)
        self._known = {"object", "item", "key", "index", "variables"} | self._related
        self._read: dict[str, frozenset[_Path]] = {}
        for each in kind.spec.variables:
            self._read[each.name] = self._reads(each.expression)

    def variables(self) -> dict[str, str]:
        """The variables that the API server can evaluate, of the object as it is and as it was."""
        found = {}
        for each in self._spec.variables:
            if self._is_known(self._read[each.name], {"object"}):
                found[f"new_{each.name}"] = renamed(each.expression, {}, "new_")
                found[f"old_{each.name}"] = renamed(each.expression, {"object": "oldObject"}, "old_")
        return found

    def rules(self) -> Iterator[tuple[str, str]]:
        """What each condition is about, and the condition: no more pods than before, and the same pods."""
        for form in self._spec.pod_sets:
            where = form.each or form.template or form.object or str(form.name)
            where = "its pods" if where.partition(".")[0] in self._related else where
            element = self._element(form)
            grows = self._count(form, element) if element is not None else ""
            if grows:
                yield f"{where} can't grow", grows
            same = " && ".join(self._same(form, element, counted=bool(grows)))
            if same:
                yield f"{where} can't describe other pods, or lose what Admitter has put into it", same
        if self._spec.injection is Injection.RUNTIME_PATCH:
            yield "spec.runtimePatches can't change", _equal("object", "oldObject", RUNTIME_PATCHES)

    def marked(self, root: str) -> str:
        """That a pod template has what an admission puts into it."""
        found = [self._has_marks(form, root) for form in self._spec.pod_sets if _is_own(self._spec, form)]
        found += [marks for _, marks in _beside(self._spec, root)]
        return " || ".join(filter(None, found)) or "false"

    def marked_in_related(self) -> str:
        """The same of a related object, which the API server knows as `object`."""
        elsewhere = (form for form in self._spec.pod_sets if not _is_own(self._spec, form))
        found = (self._has_marks(_within_related(form), "object") for form in elsewhere)
        return " || ".join(found) or "false"

    def marks_kept(self) -> Iterator[str]:
        """That a template with marks was there before, with the same."""
        for form in self._spec.pod_sets:
            element, place = self._element(form), form.template or form.object
            if element is not None and place is not None:
                marks, beside = self._marks_at(form, element.new), steps(place)[:-1]
                places = (steps(place), (*beside, "labels"), (*beside, "annotations"))
                same = " && ".join(_equal(element.new, element.old, each) for each in places)
                yield element.all(f"(!({marks}) || {same})")
            elif _is_own(self._spec, form) and form.each is not None:
                same = _equal("object", "oldObject", steps(form.each))
                yield f"(!({self._has_marks(form, 'object')}) || {same})"
        for beside, marks in _beside(self._spec, "object"):
            yield f"(!({marks}) || {_equal('object', 'oldObject', beside)})"

    def _element(self, form: PodSetsOf) -> _Element | None:
        """None if policies can't tell which element is which, or it is in another object."""
        if not _is_own(self._spec, form):
            return None
        if form.each is None:
            return _Element("object", "oldObject", lambda holds: holds)
        of_map = self._is_map(form)
        new, old = (elements(root, steps(form.each), of_map=of_map) for root in ("object", "oldObject"))
        if of_map:
            return _Element(
                f"{new}[key]", f"{old}[key]", lambda holds: f"{new}.all(key, key in {old} && {holds})"
            )
        name = str(form.name_from)
        if not self._is_known(self._reads(name), {"object", "item"}):
            return None
        before = renamed(name, {"object": "oldObject", "item": _BEFORE}, "old_")
        alike = f"({before}) == ({renamed(name, {}, 'new_')})"
        return _Element(
            "item", _BEFORE, lambda holds: f"{new}.all(item, {old}.exists({_BEFORE}, {alike} && {holds}))"
        )

    def _count(self, form: PodSetsOf, element: _Element) -> str:
        """That there are no more pods than before; empty if that can't be evaluated."""
        count = f"({form.when}) ? ({form.count}) : 0" if form.when else form.count
        within = {"object", "item", "key"} if self._is_map(form) else {"object", "item"}
        if form.object or not self._is_known(self._reads(form.when, form.count), within):
            return ""
        new, old = self._both(count, element)
        smaller = f"({new}) <= ({old})"
        if form.growth is None or not self._is_known(self._reads(form.growth.pods, form.growth.when), within):
            return element.all(smaller)
        _, grew = self._both(form.growth.when or "true", element)
        marks, same = f"{_bounds('object')} == {_bounds('oldObject')}", self._within_bound(form, element)
        bounded = f"{_bounds('oldObject')} != ''"
        return f"{marks} && " + element.all(f"({bounded} && ({grew}) ? {same} : {smaller})")

    def _within_bound(self, form: PodSetsOf, element: _Element) -> str:
        """That all is as it was by which replicas are counted, but for how many are asked for."""
        assert form.growth is not None, "it has a bound"
        free = self._reads(form.growth.when) | {("item", *steps(form.growth.replicas))}
        read = self._reads(form.count, form.growth.pods) - free
        own = {path[1:] for path in read if path[0] == "item"} | {steps(form.growth.bound)}
        same = [_equal(element.new, element.old, path) for path in sorted(own)]
        same += [_equal("object", "oldObject", path[1:]) for path in sorted(read) if path[0] == "object"]
        return " && ".join(same)

    @staticmethod
    def _both(source: str, element: _Element) -> tuple[str, str]:
        """What an expression gives of an element as it is, and as it was."""
        new = renamed(source, {"item": element.new}, "new_")
        return new, renamed(source, {"object": "oldObject", "item": element.old}, "old_")

    def _same(self, form: PodSetsOf, element: _Element | None, *, counted: bool) -> Iterator[str]:
        """That the pods are described as before, but for their number if that is compared."""
        sources = [source for added in form.containers for source in (added.when, added.resources)]
        reads = self._reads(*sources, *(() if counted else (form.count, form.when, form.name_from)))
        places = {steps(each) for each in (form.template, form.object, form.declared) if each}
        places |= {steps(each) for each in form.merge.values()}
        if self._spec.injection is Injection.POD_SET_INFOS:
            places.add((POD_SET_INFOS,))
        whole = {path[1:] for path in reads if path[0] == "object"}
        if element is None and _is_own(self._spec, form):
            whole.add(steps(str(form.each)))
        elif element is not None and form.each is None:
            whole |= places
        elif element is not None:
            own = sorted(places | {path[1:] for path in reads if path[0] == "item"})
            yield element.all(" && ".join(_equal(element.new, element.old, path) for path in own))
            if element.new == "item":
                name = str(form.name_from)
                new = elements("object", steps(str(form.each)), of_map=False)
                other = renamed(name, {"item": "other"}, "new_")
                yield f"{new}.all(item, {new}.exists_one(other, ({other}) == ({renamed(name, {}, 'new_')})))"
        yield from (_equal("object", "oldObject", path) for path in sorted(whole))

    def tiny_memory(self) -> str:
        """That a container requests so little memory that its unit has probably been forgotten.

        Containers are those of templates in the object, of what its operator merges into these, and of
        objects within it. Requests that a JobKind takes from a field as they stand count too.
        """
        found = [
            self._anywhere(form, "object", partial(self._requests_little, form))
            for form in self._spec.pod_sets
            if _is_own(self._spec, form)
        ]
        added = (each.resources for form in self._spec.pod_sets for each in form.containers)
        fields = [source.removeprefix("object.") for source in added if _FIELD.fullmatch(source)]
        found += [_is_little(optional("object", steps(field))) for field in fields]
        return " || ".join(found) or "false"

    def _requests_little(self, form: PodSetsOf, root: str) -> str:
        """That a container of a template there requests little, or of an object there."""
        if form.object is not None:
            place = optional(root, steps(form.object))
            inner = (
                self._anywhere(each, place, partial(self._requests_little, each), depth=1)
                for spec in self._made_within()
                for each in spec.pod_sets
                if each.object is None and _is_own(spec, each)
            )
            return " || ".join(dict.fromkeys(inner)) or "false"
        paths = [(*steps(form.template), "spec", field) for field in CONTAINERS] if form.template else []
        paths += [steps(form.merge[field]) for field in CONTAINERS if field in form.merge]
        found = " + ".join(elements(root, path, of_map=False) for path in paths)
        return f"({found}).exists(c, {_is_little('c.?resources')})" if found else "false"

    def _made_within(self) -> list[JobKindSpec]:
        """The kinds of objects within an object."""
        made = {(each.group, each.kind) for each in self._spec.children}
        return [k.spec for k in self._kinds if (k.spec.resource.group, k.spec.resource.kind) in made]

    def _has_marks(self, form: PodSetsOf, root: str, depth: int = 0) -> str:
        return self._anywhere(form, root, lambda place: self._marks_at(form, place, depth), depth)

    def _anywhere(self, form: PodSetsOf, root: str, holds: Callable[[str], str], depth: int = 0) -> str:
        """That something holds for one of the places at which the paths of a pod set begin."""
        if form.each is None:
            return holds(root)
        of_map = self._is_map(form)
        found, each = elements(root, steps(form.each), of_map=of_map), f"{'key' if of_map else 'item'}{depth}"
        return f"{found}.exists({each}, {holds(f'{found}[{each}]' if of_map else each)})"

    def _marks_at(self, form: PodSetsOf, root: str, depth: int = 0) -> str:
        """That a template there has marks, or one of an object there of a kind that the operator may make.

        Operators put labels that stand beside a template into pods too, such as those of a group of KubeRay.
        """
        if form.template is not None:
            path = steps(form.template)
            return f"{_marks(root, (*path, 'metadata'))} || {_marks(root, path[:-1])}"
        if form.object is None or depth:
            return "false"
        specs = self._made_within()
        place = optional(root, steps(form.object))
        inner = [
            self._has_marks(each, place, depth + 1)
            for spec in specs
            for each in spec.pod_sets
            if each.template is not None and _is_own(spec, each)
        ]
        inner += [marks for spec in specs for _, marks in _beside(spec, place)]
        return " || ".join(dict.fromkeys(inner)) or "false"

    def _reads(self, *sources: str | None) -> frozenset[_Path]:
        """The fields that expressions read, by themselves and by variables."""
        found: set[_Path] = set()
        for source in filter(None, sources):
            for path in Expression(source, self._known).reads:
                found |= {path} if path[0] != "variables" else self._read.get("".join(path[1:2]), frozenset())
        return frozenset(found)

    def _is_map(self, form: PodSetsOf) -> bool:
        """Whether `each` goes through a map: pod sets of a list are not named by a key."""
        return any(path[0] == "key" for path in self._reads(form.name_from))

    def _is_known(self, reads: frozenset[_Path], variables: set[str]) -> bool:
        return all(path[0] in variables for path in reads)


def _is_own(spec: JobKindSpec, form: PodSetsOf) -> bool:
    """Whether a pod set is described in the object, and not in a related one."""
    first = (form.each or form.template or "").partition(".")[0]
    return all(each.name != first for each in spec.related)


def _beside(spec: JobKindSpec, root: str) -> Iterator[tuple[_Path, str]]:
    """Where an object has what its operator merges into templates, if it does, and that this has marks."""
    if spec.injection is Injection.POD_SET_INFOS:
        components, infos = (
            elements(root, COMPONENTS, of_map=False),
            elements("c", (POD_SET_INFOS,), of_map=False),
        )
        yield COMPONENTS, f"{components}.exists(c, {infos}.exists(info, {_marks('info', ())}))"
    if spec.injection is Injection.RUNTIME_PATCH:
        path = steps("trainingRuntimeSpec.template.spec.replicatedJobs")
        jobs = elements("patch", path, of_map=False)
        marks = _marks("job", steps("template.spec.template.metadata"))
        patches = elements(root, RUNTIME_PATCHES, of_map=False)
        yield RUNTIME_PATCHES, f"{patches}.exists(patch, {jobs}.exists(job, {marks}))"


def _marks(root: str, metadata: _Path) -> str:
    """That metadata there have what an admission puts into a template."""
    return " || ".join(
        f"{list(names)}.exists(k, {optional(root, (*metadata, part))}[?k].hasValue())"
        for part, names in (("labels", LABELS), ("annotations", ANNOTATIONS))
    )


def _within_related(form: PodSetsOf) -> PodSetsOf:
    """A pod set that a related object describes, with its path as that object has it."""
    start = "each" if form.each is not None else "template"
    return form.model_copy(update={start: getattr(form, start).partition(".")[2]})


def _is_little(resources: str) -> str:
    """That an optional value, the resources of a container, has less than one MiB of memory.

    What has only a limit requests as much.
    """
    memory = f"string({resources}.?requests[?'memory'].or({resources}.?limits[?'memory']).orValue('0'))"
    return (
        f"[{memory}].exists(m, isQuantity(m) && quantity(m).isGreaterThan(quantity('0')) && "
        "quantity(m).isLessThan(quantity('1Mi')))"
    )


def _bounds(root: str) -> str:
    """What an object remembers of the bounds that its user wrote; empty if the controller has set none."""
    return f"{root}.metadata.?annotations[?'{BOUNDS_ANNOTATION}'].orValue('')"


def _equal(new: str, old: str, path: _Path) -> str:
    return f"{optional(new, path)} == {optional(old, path)}"
