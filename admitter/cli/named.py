"""Objects as kubectl names them on a command line: job/train-7, cq/team-a, localqueue/team-a/main."""

import re
from typing import Final

import typer

from admitter.api.kinds import KINDS
from admitter.simulate.manifests import READ

_WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9.]*")
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
}
"""By kind, what its collection is called."""
_KINDS: Final = {
    **_SHORT,
    **{kind.lower(): kind for kind in PLURALS},
    **{plural: kind for kind, plural in PLURALS.items()},
}


def kind_named(word: str) -> str | None:
    """The kind that a word names: by itself, its plural or its short name, with or without its group."""
    return _KINDS.get(word.lower().partition(".")[0])


def job_named(text: str) -> tuple[str | None, str]:
    """The kind, if one is named, and the name of a Job or a Workload: NAME, job/NAME or wl/NAME.

    Raises:
        BadParameter: it names another kind, or nothing.
    """
    kind, slash, name = text.rpartition("/")
    if not slash or not _WORD.fullmatch(kind):  # no cluster has a name with a slash; a snapshot may
        return None, text
    found = kind_named(kind)
    if found not in {"Job", "Workload"} or not name:
        raise typer.BadParameter(f"{text!r} is not NAME, job/NAME or wl/NAME", param_hint="NAME")
    return found, name
