"""A change of the quota and weight of ClusterQueues that is tried and never made: what it writes, as YAML.

Previous step: `admitter.web.views.try_change` has the wishes of a user. Next step: what-if plays the objects.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Any, Final, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from admitter.api.base import Problem, checked, writable
from admitter.api.cluster_queue import ClusterQueue
from admitter.cache.views import ObjectView
from admitter.names import API_VERSION
from admitter.quantities.amounts import InvalidQuantityError, parse_quantity

Json = dict[str, Any]
Part = Literal["min", "max", "weight"]

MOST_QUEUES: Final = 20
MOST_WISHES: Final = 500
LONGEST_VALUE: Final = 64
_PLACE: Final = re.compile(r"spec\.resources\[(\d+)\]\.flavors\[(\d+)\]\.quota(?:\.(min|max))?")
_WHOLE: Final = re.compile(r"[0-9]{1,15}")


class _Said(BaseModel):
    """What a browser sends: nothing else is in it."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Wish(_Said):
    """One number that is to be another one."""

    queue: str = Field(max_length=253)
    """The ClusterQueue."""
    resource: str = Field(default="", max_length=317)
    """The resource; empty for a weight."""
    flavor: str = Field(default="", max_length=253)
    """The flavor; empty for a weight."""
    part: Part
    """Which number."""
    value: str = Field(max_length=LONGEST_VALUE)
    """The quantity, such as 8 or 36Gi; empty: no max."""


class Wishes(_Said):
    """All numbers that are to be other ones."""

    set: list[Wish] = Field(max_length=MOST_WISHES)
    """Each number once; of several that are the same the last counts."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A wish that can't be, or something else that is wrong with the object that it makes."""

    queue: str
    resource: str  # empty: it is about no quota
    flavor: str
    part: str  # `min`, `max`, `weight`, or empty: it is about the whole object
    message: str


@dataclass(frozen=True, slots=True)
class QuotaChange:
    """What becomes of ClusterQueues."""

    objects: tuple[Json, ...]  # the changed ones, whole
    patches: Mapping[str, list[Json]]  # by queue, the changed fields as a JSON patch
    refused: tuple[Refused, ...]


def changed(views: Mapping[str, ObjectView], wishes: Sequence[Wish]) -> QuotaChange:
    """The ClusterQueues with all wishes; those that stay as they are are left out.

    `views` has each queue that a wish names.
    """
    objects, refused = [], []
    patches: dict[str, list[Json]] = {}
    for name, view in views.items():
        spec, patch = json.loads(json.dumps(view.spec)), _Patch()  # a copy, in which no two parts are one
        final = {(w.resource, w.flavor, w.part): w for w in wishes if w.queue == name}
        for wish in final.values():
            words = patch.weight(spec, wish) if wish.part == "weight" else patch.quota(spec, wish)
            if words:
                refused.append(Refused(name, wish.resource, wish.flavor, wish.part, words))
        if not patch.steps:
            continue
        labels = {"labels": dict(view.labels)} if view.labels else {}
        made = {
            "apiVersion": API_VERSION,
            "kind": "ClusterQueue",
            "metadata": {"name": name, **labels},
            "spec": spec,
        }
        refused += (_placed(name, spec, problem) for problem in checked(ClusterQueue, made)[1])
        objects.append(made)
        patches[name] = patch.steps
    return QuotaChange(tuple(objects), patches, tuple(dict.fromkeys(refused)))


class _Patch:
    """Changes a spec, and notes how as a JSON patch, which fails if the object is another one by then."""

    def __init__(self) -> None:
        self.steps: list[Json] = []

    def quota(self, spec: Json, wish: Wish) -> str:
        """Set a `min` or `max`; returns why it can't be, or nothing."""
        found = _entry(spec, wish.resource, wish.flavor)
        if found is None:
            return f"the queue has no quota of its own of {wish.resource} in flavor {wish.flavor}"
        resource, flavor = found
        entry = spec["resources"][resource]["flavors"][flavor]
        quota = entry.get("quota") or {}
        value = _written(wish.value)
        if wish.part == "max" and value == "":
            return self._without_max(f"/spec/resources/{resource}/flavors/{flavor}", wish, entry)
        if _same(quota.get(wish.part, 0 if wish.part == "min" else None), value):
            return ""
        place = f"/spec/resources/{resource}/flavors/{flavor}"
        self._test(place, resource, wish)
        if entry.get("quota") is None:
            self.steps.append({"op": "add", "path": f"{place}/quota", "value": {wish.part: value}})
        else:
            verb = "replace" if wish.part in quota else "add"
            self.steps.append({"op": verb, "path": f"{place}/quota/{wish.part}", "value": value})
        entry["quota"] = quota | {wish.part: value}
        return _too_long(value)

    def _without_max(self, place: str, wish: Wish, entry: Json) -> str:
        quota = entry.get("quota") or {}
        if "max" in quota:
            self._test(place, int(place.split("/")[3]), wish)
            self.steps.append({"op": "remove", "path": f"{place}/quota/max"})
            entry["quota"] = {part: value for part, value in quota.items() if part != "max"}
        return ""

    def _test(self, place: str, resource: int, wish: Wish) -> None:
        tests = [
            {"op": "test", "path": f"/spec/resources/{resource}/name", "value": wish.resource},
            {"op": "test", "path": f"{place}/name", "value": wish.flavor},
        ]
        self.steps += (each for each in tests if each not in self.steps)

    def weight(self, spec: Json, wish: Wish) -> str:
        """Set the weight; returns why it can't be, or nothing."""
        value, known = _written(wish.value), spec.get("fairSharing")
        if _same((known or {}).get("weight", 1), value):
            return ""
        if known is None:
            self.steps.append({"op": "add", "path": "/spec/fairSharing", "value": {"weight": value}})
        else:
            verb = "replace" if "weight" in known else "add"
            self.steps.append({"op": verb, "path": "/spec/fairSharing/weight", "value": value})
        spec["fairSharing"] = (known or {}) | {"weight": value}
        return _too_long(value)


def _entry(spec: Json, resource: str, flavor: str) -> tuple[int, int] | None:
    """Where a flavor of a resource is in the lists of a spec."""
    for index, each in enumerate(spec.get("resources") or ()):
        if each.get("name") == resource:
            for place, other in enumerate(each.get("flavors") or ()):
                if other.get("name") == flavor:
                    return index, place
    return None


def _written(value: str) -> str | int:
    """A quantity as manifests have it: whole numbers without quotes."""
    text = value.strip()
    return int(text) if _WHOLE.fullmatch(text) else text


def _same(known: str | int | None, value: str | int) -> bool:
    try:
        return known is not None and parse_quantity(known) == parse_quantity(value)
    except InvalidQuantityError:
        return False


def _too_long(value: str | int) -> str:
    """Why the API server does not take a quantity that is one elsewhere."""
    try:
        parse_quantity(value)
    except InvalidQuantityError:
        return ""  # the model says so
    return "" if writable(str(value)) else f"{value} has more digits than a quantity in a spec may have"


def _placed(queue: str, spec: Json, problem: Problem) -> Refused:
    """A problem at the number that has it."""
    found = _PLACE.fullmatch(problem.field)
    if found is not None:
        resource = spec["resources"][int(found[1])]
        flavor = resource["flavors"][int(found[2])]
        return Refused(queue, resource["name"], flavor["name"], found[3] or "max", problem.message)
    if problem.field == "spec.fairSharing.weight":
        return Refused(queue, "", "", "weight", problem.message)
    return Refused(queue, "", "", "", str(problem))


def manifest(change: QuotaChange) -> str:
    """The changed objects, whole: what `admitter what-if -f` tries, and a repository has."""
    return yaml.safe_dump_all(change.objects, sort_keys=False, width=110, allow_unicode=True)


def patches(change: QuotaChange) -> str:
    """The changed fields alone: for each queue a JSON patch as YAML, below the command that takes it."""
    texts = []
    for name, steps in change.patches.items():
        command = f"kubectl patch clusterqueues.admitter.dev {quote(name)} --type=json --patch-file=FILE"
        text = yaml.safe_dump(steps, sort_keys=False, width=110, allow_unicode=True)
        texts.append(f"# {_line(command)}\n{text}")
    return "---\n".join(texts)


def commands(change: QuotaChange) -> Iterator[str]:
    """What makes the change: a command for each queue, with the changed fields alone."""
    for name, steps in change.patches.items():
        patch = quote(json.dumps(steps))
        yield f"kubectl patch clusterqueues.admitter.dev {quote(name)} --type=json --patch={patch}"


def _line(text: str) -> str:
    """A text in a comment: on one line, whatever is in it."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
