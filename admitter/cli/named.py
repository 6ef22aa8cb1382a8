"""Objects as kubectl names them on a command line: job/train-7, cq/team-a, localqueue/team-a/main."""

import re
from collections.abc import Container
from typing import Final

import typer

from admitter.api.kinds import KINDS
from admitter.cli.complaints import CommandError
from admitter.policy.snapshot import QUEUED_PODS
from admitter.simulate.manifests import READ

_BEFORE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9./-]*")
"""What can be meant as a kind or a namespace. No cluster has a name with a slash; a snapshot may."""
_DESCRIBED: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*(\.[a-z0-9.-]+)?")
"""What can be a kind that a JobKind describes, with or without its group."""
FORMS: Final = "NAME, job/NAME, pod/NAME, podgroup/NAME, wl/NAME"
"""The forms in which every cluster has names; those of its described kinds come on top."""
_SHORT: Final = {
    "ns": "Namespace",
    "no": "Node",
    "limits": "LimitRange",
    "quota": "ResourceQuota",
    "pc": "PriorityClass",
    **{kind.short_name: kind.__name__ for kind in KINDS if kind.short_name},
}
PLURALS: Final = {
    **{kind: f"{kind.lower()}{'es' if kind.endswith('s') else 's'}" for _, kind in READ},
    **{kind.__name__: kind.plural for kind in KINDS},
    "Pod": QUEUED_PODS,
}
"""By kind, what its collection is called."""
_KINDS: Final = {
    **_SHORT,
    **{kind.lower(): kind for kind in PLURALS},
    **{plural: kind for kind, plural in PLURALS.items()},
    "po": "Pod",
    "pods": "Pod",
}


def kind_named(word: str) -> str | None:
    """The kind that a word names: by itself, its plural or its short name, with or without its group."""
    return _KINDS.get(word.lower().partition(".")[0])


def job_named(text: str) -> tuple[str | None, str]:
    """The kind, if one is named, and the name of a job object or a Workload.

    Raises:
        BadParameter: it names another kind, or nothing.
    """
    return one_named(text, {"Job", "Workload"}, FORMS)


def one_named(
    text: str, kinds: Container[str], forms: str, *, described: bool = True
) -> tuple[str | None, str]:
    """The kind, if one is named, and the name of an object of one of these kinds, in one of these forms.

    Where it may be `described`, a word that is no kind of Admitter's may be a JobKind's, such as jobset.

    Raises:
        BadParameter: it names another kind, or nothing.
    """
    kind, slash, name = text.rpartition("/")
    if text and (not slash or not _BEFORE.fullmatch(kind)):
        return None, text
    found = kind_named(kind)
    if found is None and described and _DESCRIBED.fullmatch(kind) and name:
        return kind.lower().partition(".")[0], name
    if found == "Pod" and described and name:
        return "pod", name
    if found is None:
        raise typer.BadParameter(f"{text!r} is none of {forms}; -n names the namespace")
    if found not in kinds or not name:
        raise typer.BadParameter(f"{text!r} is none of {forms}")
    return found, name


def missing(namespace: str, name: str, kind: str | None) -> CommandError:
    """What is wrong if a Job or a Workload that was named has no Workload, or is none."""
    match kind:
        case "Workload":
            return CommandError(f"there is no Workload {name} in namespace {namespace}")
        case "Job":
            return CommandError(f"there is no Workload of a Job {name} in namespace {namespace}")
        case str():
            words = f"there is no Workload of {kind}/{name} in namespace {namespace}"
            return CommandError(f"{words}; -n names the namespace")
    return CommandError(f"there is no Workload {name} in namespace {namespace}, nor one of a Job {name}")
