"""Answers without the names of Workloads in namespaces that a user may not see; names of queues stay."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Final

from admitter.insight.explain.explainer import Answer, Key, Other
from admitter.insight.explain.life import Happening

Sees = Callable[[str], bool]
"""Whether a user may see the Workloads of a namespace."""

HIDDEN: Final = ("", "a Workload of another namespace")
"""In place of namespace and name of a Workload that the user may not see."""
_NAMED: Final = re.compile(r"\b(Workload|LocalQueue) ([^\s/:;,]+)/[^\s:;,]+")
"""How a message names an object of a namespace."""


def namespaces_in(answer: Answer, happenings: Iterable[Happening], texts: Iterable[str]) -> set[str]:
    """The namespaces that an answer names beside its own."""
    found = {other.key[0] for other in (*answer.ahead, *answer.blocking)}
    found |= {namespace for namespace, _ in answer.owners.values()}
    found |= {each.preemptor.key[0] for each in happenings if each.preemptor is not None}
    found |= {match[2] for text in texts for match in _NAMED.finditer(text)}
    return found - {"", answer.key[0]}


def texts_in(answer: Answer, happenings: Iterable[Happening]) -> Iterator[str]:
    """The texts of an answer that may name Workloads of other namespaces."""
    workload = answer.workload
    if answer.waiting is not None:
        yield answer.waiting.message
    for condition in (workload.status.get("conditions") or ()) if workload is not None else ():
        yield str(condition.get("message", ""))
    if workload is not None:
        yield str(workload.status.get("message") or "")
    yield from (each.message for each in happenings)


def masked(answer: Answer, sees: Sees) -> Answer:
    """An answer without the names of hidden Workloads."""

    def key(other: Key) -> Key:
        return other if not other[0] or sees(other[0]) else HIDDEN

    def shown(other: Other) -> Other:
        if key(other.key) == other.key:
            return other
        return Other(HIDDEN, priority=0)  # a place, and no number

    waiting = answer.waiting
    return replace(
        answer,
        waiting=replace(waiting, message=masked_text(waiting.message, sees)) if waiting is not None else None,
        ahead=tuple(map(shown, answer.ahead)),
        blocking=tuple(sorted(map(shown, answer.blocking), key=lambda other: other.key == HIDDEN)),
        owners={uid: key(owner) for uid, owner in answer.owners.items()},
    )


def untold(answer: Answer) -> Answer:
    """An answer for a namespace that may not know the use and the line of its queue (docs/permissions.md)."""
    return replace(answer, explanation=None, position=None, ahead=(), blocking=(), sought=True, owners={})


def masked_happening(happening: Happening, sees: Sees) -> Happening:
    """What has happened to a Workload, without the names of hidden ones."""
    by = happening.preemptor
    if by is not None and not sees(by.key[0]):
        by = replace(by, key=HIDDEN)
    return replace(happening, message=masked_text(happening.message, sees), preemptor=by)


def masked_text(text: str, sees: Sees) -> str:
    """A message without the names of objects in hidden namespaces.

    Whether there is such a namespace does not matter: a user with a hand in a text learns nothing by it.
    """

    def shown(match: re.Match[str]) -> str:
        return match[0] if sees(match[2]) else f"a {match[1]} of another namespace"

    return _NAMED.sub(shown, text)
