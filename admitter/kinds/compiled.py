"""A JobKind, compiled: what it says of an object's pod sets, priority class and state.

What an object says is never trusted: every value that an expression gives is checked, and pod templates are
checked as those of Jobs are.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from admitter.api.base import Problem
from admitter.api.job_kind import MOST_POD_SETS, RESERVED, Growth, Injection, JobKind, PodSetsOf
from admitter.api.shapes import template_problem
from admitter.kinds import KindError
from admitter.kinds.beside import COMPONENTS, POD_SET_INFOS, RUNTIME_PATCHES
from admitter.kinds.containers import checked, given_to
from admitter.kinds.ended import done
from admitter.kinds.expressions import Budget, Expression, ExpressionError
from admitter.kinds.paths import MISSING, Json, Segment, get, segments, text, unknown
from admitter.kinds.replicas import Replicas, of_element

MOST_ELEMENTS: Final = 256
"""Elements of a list that `each` goes through: no Workload has that many pod sets."""
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?")
_MOST_PODS: Final = 2**31 - 1
_WRITTEN: Final = frozenset({"nodeSelector", "tolerations"})
"""What an admission writes into a pod's spec."""
_LONGEST_MESSAGE: Final = 1024
_INJECTED: Final[Mapping[Injection, tuple[Segment, ...]]] = {
    Injection.RUNTIME_PATCH: RUNTIME_PATCHES,
    Injection.POD_SET_INFOS: (*COMPONENTS, "*", POD_SET_INFOS),
}
"""The fields that admissions are written into, where these are not the templates."""

Related = Callable[[str, str, str], Json | None]
"""Finds an object by group and version, kind and name."""
Embedded = Callable[[Json, Budget], "list[FoundPodSet] | None"]
"""The pod sets of an object in another, of which it shares the budget; None if no JobKind describes it."""


@dataclass(frozen=True, slots=True)
class FoundPodSet:
    """Pods of one template."""

    name: str
    count: int
    template: Json  # metadata and spec of its pods, as they are made
    # where that is in the object, so that it may be written; None: in another object, or nowhere
    place: tuple[Segment, ...] | None = None
    outside: tuple[tuple[str, tuple[Segment, ...]], ...] = ()  # fields of its spec elsewhere, and where
    ended: int = 0  # how many of them have ended for good
    replicas: Replicas | None = None  # how their number changes; None: it can't while the object runs


@dataclass(frozen=True, slots=True)
class State:
    """What an object's status says."""

    active: bool  # pods of it may be left
    ready: bool  # all of its pods are
    finished: str | None  # `Complete` or `Failed`
    message: str  # of its end
    acted: bool = False  # whether its operator has acted on the object as it is


@dataclass(frozen=True, slots=True)
class Around:
    """What expressions about an object see, by the names of variables, and what they may still cost."""

    variables: Json
    budget: Budget

    def having(self, **more: object) -> "Around":
        """With further variables."""
        return replace(self, variables={**self.variables, **more})


class CompiledKind:
    """A JobKind that works."""

    def __init__(self, kind: JobKind, schema: Json | None = None) -> None:
        """Compile all of it; `schema` is that of its definition, if it is known.

        Raises:
            InvalidKindError: with all fields that do not compile, or name what the schema does not have.
        """
        self.name, self.spec, self.resource = kind.metadata.name, kind.spec, kind.spec.resource
        self._expressions = _Compiler(kind, schema).run()

    def pod_sets(
        self, raw: Json, related: Related, embedded: Embedded, budget: Budget | None = None
    ) -> list[FoundPodSet]:
        """The pod sets of an object; the budget is that of the object that this one is part of, if it is.

        Raises:
            KindError: it can't be counted, or does what the JobKind refuses.
        """
        around = self._surroundings(raw, related, budget or Budget())
        for n, refused in enumerate(self.spec.refused):
            if self.truth(f"spec.refused[{n}].when", around):
                raise KindError(refused.message)
        found: list[FoundPodSet] = []
        for n, form in enumerate(self.spec.pod_sets):
            for each in _PodSets(self, f"spec.podSets[{n}]", form, around, embedded).found():
                found.append(each)
                if len(found) > MOST_POD_SETS:  # before the next one costs anything
                    raise KindError(f"it has more than {MOST_POD_SETS} pod sets, and a Workload has no more")
        names = [each.name for each in found]
        twice = next((name for n, name in enumerate(names) if name in names[:n]), None)
        if twice is not None:
            raise KindError(f"two of its pod sets are called {twice}")
        if not found:
            places = (each.each or each.template for each in self.spec.pod_sets)
            raise KindError(f"it has no pod sets: there are none at {', '.join(filter(None, places))}")
        return found

    def priority_class(self, raw: Json, pod_sets: list[FoundPodSet], related: Related) -> str:
        """Its PriorityClass: what the JobKind gives, or that of the first pod set with one; or empty.

        Raises:
            KindError: the JobKind gives no text.
        """
        if self.spec.priority_class_name is not None:
            given = self.text("spec.priorityClassName", self._surroundings(raw, related, Budget()))
            if given:
                return given
        classes = (each.template["spec"].get("priorityClassName") for each in pod_sets)
        return next(filter(None, classes), "")

    def state(self, raw: Json) -> State:
        """What the status of an object says.

        Raises:
            KindError: an expression does not give what it should.
        """
        around = Around({"object": raw}, Budget())
        succeeded = self.truth("spec.finished.succeeded", around)
        failed = self.truth("spec.finished.failed", around)
        says = (succeeded or failed) and self.spec.finished.message is not None
        return State(
            self.truth("spec.active", around),
            self.spec.ready is not None and self.truth("spec.ready", around),
            "Complete" if succeeded else "Failed" if failed else None,
            self.text("spec.finished.message", around)[:_LONGEST_MESSAGE] if says else "",
            self.spec.acted is not None and self.truth("spec.acted", around),
        )

    def _surroundings(self, raw: Json, related: Related, budget: Budget) -> Around:
        """What expressions about an object see."""
        around = Around({"object": raw}, budget)
        for n, each in enumerate(self.spec.related):
            kind = self.text(f"spec.related[{n}].kind", around)
            name = self.text(f"spec.related[{n}].objectName", around)
            found = related(each.api_version, kind, name)
            if found is None:
                raise KindError(f"there is no {kind} {name}, which its pods are described by")
            around = around.having(**{each.name: found})
        values: Json = {}
        around = around.having(variables=values)
        for n, variable in enumerate(self.spec.variables):
            values[variable.name] = self.given(f"spec.variables[{n}].expression", around)
        return around

    def has(self, field: str) -> bool:
        """Whether the JobKind has an expression in a field."""
        return field in self._expressions

    def given(self, field: str, around: Around) -> Any:  # noqa: ANN401  # whatever it gives
        """What an expression gives.

        Raises:
            KindError: it gives nothing.
        """
        try:
            return self._expressions[field].value(around.variables, around.budget)
        except ExpressionError as error:
            raise self.error(field, str(error)) from error

    def truth(self, field: str, around: Around) -> bool:
        value = self.given(field, around)
        if not isinstance(value, bool):
            raise self.error(field, f"gives {_shown(value)}, which is not true or false")
        return value

    def applies(self, field: str, around: Around) -> bool:
        """Whether a condition that the JobKind may have holds, or is not there."""
        return not self.has(field) or self.truth(field, around)

    def text(self, field: str, around: Around) -> str:
        value = self.given(field, around)
        if not isinstance(value, str):
            raise self.error(field, f"gives {_shown(value)}, which is no text")
        return value

    def number(self, field: str, around: Around) -> int:
        value = self.given(field, around)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST_PODS:
            words = f"which is no whole number from 0 to {_MOST_PODS}"
            raise self.error(field, f"gives {_shown(value)}, {words}")
        return value

    def error(self, field: str, words: str) -> KindError:
        """An error about what a field of the JobKind says of an object."""
        return KindError(f"JobKind {self.name}, {field}: {words}")


class InvalidKindError(Exception):
    """A JobKind that does not work."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = problems


class _Compiler:
    """Compiles the expressions of a JobKind, and checks its paths against a schema."""

    def __init__(self, kind: JobKind, schema: Json | None) -> None:
        self._spec, self._schema = kind.spec, schema
        self._related = {each.name for each in kind.spec.related}
        self._expressions: dict[str, Expression] = {}
        self._problems: list[Problem] = []

    def run(self) -> dict[str, Expression]:
        """The expressions by field."""
        spec, alone = self._spec, {"object"}
        self._path("spec.suspend.path", spec.suspend.path)
        for n, each in enumerate(spec.related):
            self._add(f"spec.related[{n}].kind", each.kind, alone)
            self._add(f"spec.related[{n}].objectName", each.object_name, alone)
        around = alone | self._related | {"variables"}
        for n, variable in enumerate(spec.variables):
            self._add(f"spec.variables[{n}].expression", variable.expression, around)
        for n, refused in enumerate(spec.refused):
            self._add(f"spec.refused[{n}].when", refused.when, around)
        for n, form in enumerate(spec.pod_sets):
            self._pod_sets(f"spec.podSets[{n}]", form, around)
        if spec.injection in _INJECTED:
            self._look_up("spec.injection", _INJECTED[spec.injection])
        self._add("spec.priorityClassName", spec.priority_class_name, around)
        for field, source in (
            ("spec.active", spec.active),
            ("spec.ready", spec.ready),
            ("spec.acted", spec.acted),
            ("spec.finished.succeeded", spec.finished.succeeded),
            ("spec.finished.failed", spec.finished.failed),
            ("spec.finished.message", spec.finished.message),
        ):
            self._add(field, source, alone)
        if self._problems:
            raise InvalidKindError(self._problems)
        return self._expressions

    def _pod_sets(self, field: str, form: PodSetsOf, around: set[str]) -> None:
        base: tuple[Segment, ...] = ()
        if form.each is not None:
            self._path(f"{field}.each", form.each)
            base = (*segments(form.each), "*")
            around = around | {"item", "key", "index"}
        for name in ("template", "object", "declared"):
            path = getattr(form, name)
            if path is not None:
                self._path(f"{field}.{name}", path, base)
        for name, path in form.merge.items():
            self._path(f"{field}.merge.{name}", path, base)
        self._add(f"{field}.nameFrom", form.name_from, around)
        self._add(f"{field}.when", form.when, around)
        self._add(f"{field}.count", form.count, around)
        if form.ended is not None:
            self._path(f"{field}.ended.path", form.ended.path)
            self._add(f"{field}.ended.of", form.ended.of, around)
        if form.growth is not None:
            self._growth(f"{field}.growth", form.growth, base, around)
        for m, added in enumerate(form.containers):
            self._add(f"{field}.containers[{m}].when", added.when, around)
            self._add(f"{field}.containers[{m}].resources", added.resources, around)

    def _growth(self, field: str, form: Growth, base: tuple[Segment, ...], around: set[str]) -> None:
        for name in ("replicas", "bound", *(("ending",) if form.ending is not None else ())):
            self._path(f"{field}.{name}", getattr(form, name), base)
        for name in ("pods", "when", "autoscales"):
            self._add(f"{field}.{name}", getattr(form, name), around)

    def _path(self, field: str, path: str, base: tuple[Segment, ...] = ()) -> None:
        self._look_up(field, (*base, *segments(path)))

    def _look_up(self, field: str, path: tuple[Segment, ...]) -> None:
        """Check a path against the schema of the object; those in other objects have other schemas."""
        if self._schema is None or path[0] in self._related or path[0] in {"apiVersion", "kind", "metadata"}:
            return
        missing = unknown(self._schema, path)
        if missing is not None:
            self._problems.append(Problem(field, f"the definition of the kind has no {missing}"))

    def _add(self, field: str, source: str | None, variables: Collection[str]) -> None:
        if source is None:
            return
        try:
            compiled = Expression(source, variables)
        except ExpressionError as error:
            self._problems.append(Problem(field, str(error)))
            return
        self._expressions[field] = compiled
        for variable, *path in compiled.reads:
            if variable == "object" and path:
                self._look_up(field, tuple(path))


class _PodSets:
    """The pod sets of an object that one entry of `podSets` describes."""

    def __init__(
        self, kind: CompiledKind, field: str, form: PodSetsOf, around: Around, embedded: Embedded
    ) -> None:
        self._kind, self._field, self._form = kind, field, form
        self._around, self._embedded = around, embedded

    def found(self) -> Iterator[FoundPodSet]:
        for base, around in self._elements():
            try:
                yield from self._of_element(base, around)
            except KindError as error:
                where = text(base)
                raise KindError(
                    str(error) if str(error).startswith(where) else f"{where}: {error}"
                ) from error

    def _of_element(self, base: tuple[Segment, ...], around: Around) -> Iterator[FoundPodSet]:
        if not self._kind.applies(f"{self._field}.when", around):
            return
        name = self._name(around)
        if self._form.object is not None:
            yield from self._inner(base, name, around)
        else:
            yield self._one(base, name, around)

    def _elements(self) -> Iterator[tuple[tuple[Segment, ...], Around]]:
        """Where the paths of each pod set begin, and the variables of its expressions."""
        if self._form.each is None:
            yield (), self._around
            return
        base = segments(self._form.each)
        elements = self._at(base)
        if elements is MISSING:
            return
        if not isinstance(elements, list | Mapping):
            raise KindError(f"{text(base)}: must be a list or a map")
        if len(elements) > MOST_ELEMENTS:
            raise KindError(
                f"{text(base)}: has {len(elements)} elements, and at most {MOST_ELEMENTS} are read"
            )
        keys: Iterator[tuple[Segment, Any]] = (
            iter(enumerate(elements))
            if isinstance(elements, list)
            else iter(sorted(elements.items(), key=str))
        )
        for index, (key, item) in enumerate(keys):
            yield (*base, key), self._around.having(item=item, key=str(key), index=index)

    def _at(self, path: tuple[Segment, ...]) -> Any:  # noqa: ANN401  # whatever JSON has
        """What stands at a path in the object, or in a related one if it begins with the name of that."""
        if self._is_related(path):
            return get(self._around.variables[str(path[0])], path[1:])
        return get(self._around.variables["object"], path)

    def _is_related(self, path: tuple[Segment, ...]) -> bool:
        """Whether a path leads into a related object."""
        return str(path[0]) in self._around.variables and str(path[0]) not in RESERVED

    def _name(self, around: Around) -> str:
        if self._form.name is not None:
            return self._form.name
        field = f"{self._field}.nameFrom"
        name = self._kind.text(field, around).lower()
        if not _NAME.fullmatch(name):
            raise self._kind.error(field, f"gives {_shown(name)}, which no pod set can be called")
        return name

    def _one(self, base: tuple[Segment, ...], name: str, around: Around) -> FoundPodSet:
        """One pod set by its template."""
        form, kind, field = self._form, self._kind, self._field
        path = (*base, *segments(form.template)) if form.template is not None else ()
        found = self._at(path) if path else MISSING
        if found is MISSING and not any(
            kind.applies(f"{field}.containers[{n}].when", around) for n in range(len(form.containers))
        ):
            raise KindError(f"{text(path)}: is missing")
        self._take(found, path)
        made = {} if found is MISSING else found
        if form.containers or form.merge:
            made = self._with_more(checked(made, path, whole=False), base, around)
        count = kind.number(f"{field}.count", around)
        ended = done(form.ended, self._around.variables["object"], name) if form.ended is not None else 0
        parts = max(1, kind.number(f"{field}.ended.of", around)) if ended else 1
        outside = tuple((each, (*base, *segments(at))) for each, at in form.merge.items())
        stands = found is not MISSING or form.merge.keys() >= _WRITTEN
        place = path if path and stands and not self._is_related(path) else None
        ended = min(count, count // parts * ended)
        replicas = self._replicas(base, around) if place is not None else None
        return FoundPodSet(name, count, checked(made, path), place, outside, ended, replicas)

    def _replicas(self, base: tuple[Segment, ...], around: Around) -> Replicas | None:
        """How the number of its replicas changes; None if it never does."""
        form, field, kind = self._form.growth, f"{self._field}.growth", self._kind
        if form is None:
            return None
        pods, grows = kind.number(f"{field}.pods", around), kind.applies(f"{field}.when", around)
        autoscales = kind.truth(f"{field}.autoscales", around)
        return of_element(form, self._at(base), base, pods, autoscales=autoscales, grows=grows)

    def _take(self, template: object, path: tuple[Segment, ...]) -> None:
        """Take what reading a template costs."""
        try:
            self._around.budget.take_template(template)
        except ExpressionError as error:
            raise KindError(f"{text(path)}: is too large, or all templates together") from error

    def _with_more(self, template: Json, base: tuple[Segment, ...], around: Around) -> Json:
        """A template with what stands outside of it."""
        spec: Json = dict(template.get("spec") or {})
        for name, place in self._form.merge.items():
            path = (*base, *segments(place))
            more = self._at(path)
            if more is MISSING or more is None:
                continue
            wrong = template_problem({"spec": {name: more}}, "", whole=False)
            if wrong is not None:
                raise KindError(wrong.replace(f".spec.{name}", text(path)))
            if isinstance(more, list):
                spec[name] = [*(spec.get(name) or ()), *more]
            elif isinstance(more, dict):
                spec[name] = {**(spec.get(name) or {}), **more}
            else:
                spec[name] = more
        for n, added in enumerate(self._form.containers):
            field = f"{self._field}.containers[{n}]"
            if self._kind.applies(f"{field}.when", around):
                given = self._kind.given(f"{field}.resources", around)
                if not isinstance(given, dict) or not all(isinstance(each, dict) for each in given.values()):
                    raise self._kind.error(f"{field}.resources", f"gives {_shown(given)}, and no resources")
                part = "initContainers" if added.init else "containers"
                spec[part] = given_to(spec.get(part) or [], added, given)
        return {**template, "spec": spec}

    def _inner(self, base: tuple[Segment, ...], prefix: str, around: Around) -> Iterator[FoundPodSet]:
        """The pod sets of an object that this one makes."""
        form = self._form
        assert form.object is not None, "that is the form"
        path = (*base, *segments(form.object))
        inner = self._at(path)
        if not isinstance(inner, dict):
            raise KindError(f"{text(path)}: must be an object")
        found, within = self._embedded(inner, around.budget), path
        if found is None and form.declared is not None:
            found, within = self._declared(base, segments(form.declared)), ()
        if found is None:
            kind = f"{inner.get('apiVersion')} {inner.get('kind')}"
            raise KindError(f"{text(path)}: no JobKind describes {kind[:100]}, and it declares no pod sets")
        times = self._kind.number(f"{self._field}.count", around)
        for each in found:
            name = f"{prefix}-{each.name}"
            if len(name) > 63:
                raise KindError(f"{text(path)}: its pod set {each.name} has too long a name")
            place = (*within, *each.place) if each.place is not None else None
            outside = tuple((field, (*within, *at)) for field, at in each.outside)
            yield FoundPodSet(name, each.count * times, each.template, place, outside)

    def _declared(self, base: tuple[Segment, ...], place: tuple[Segment, ...]) -> list[FoundPodSet] | None:
        """Pod sets as the element itself lists them: path from the element and replicas."""
        path = (*base, *place)
        listed = self._at(path)
        if listed is MISSING:
            return None
        if not isinstance(listed, list) or len(listed) > MOST_POD_SETS:
            raise KindError(f"{text(path)}: must be a list of at most {MOST_POD_SETS} pod sets")
        found = []
        for n, each in enumerate(listed):
            here = text((*path, n))
            count = each.get("replicas", 1) if isinstance(each, dict) else None
            if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= _MOST_PODS:
                raise KindError(f"{here}.replicas: must be a whole number from 0 to {_MOST_PODS}")
            try:
                where = (*base, *segments(str(each.get("path"))))
            except ValueError as error:
                raise KindError(f"{here}.path: {error}") from error
            self._take(self._at(where), where)
            found.append(FoundPodSet(f"pods-{n}", count, checked(self._at(where), where), where))
        return found


def _shown(value: object) -> str:
    """A value in a message."""
    return repr(value)[:60]
