"""Names that Kubernetes and Admitter take, for those that other systems allow."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import count
from typing import Final

from admitter.api.base import LONGEST_NAME
from admitter.documents import title
from admitter.importers.reading import Document
from admitter.importers.translation import Json, ManifestSource, Translation

_HASH: Final = 8
_GOOD: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


class Names:
    """New names for old ones: the same for the same, and for each its own.

    A good name stays as it is, unless another object has it already. An object that is renamed does not
    get a name that is kept for others, so that the order of objects does not matter.
    """

    def __init__(self) -> None:
        self._kept: set[tuple[str, str]] = set()
        self._new: dict[tuple[str, str], str] = {}
        self._used: dict[tuple[str, str], str] = {}

    def keep(self, scope: str, name: str) -> None:
        """Keep a name for the object that has it: no other is renamed to it."""
        self._kept.add((scope, name))

    def keep_all(self, documents: Iterable[Document], scopes: Mapping[str, str]) -> None:
        """Keep the names of objects for them; `scopes` has the scope of names of each kind that counts.

        The namespace is added to a scope that ends in a slash.
        """
        for document in documents:
            source = ManifestSource(document.raw, document.name, Translation())
            scope = scopes.get(document.kind, "")
            if scope.endswith("/"):
                scope += source.text("metadata.namespace")
            if scope:
                self.keep(scope, source.text("metadata.name"))

    def of(self, scope: str, old: str, wish: str | None = None) -> str:
        """The name for an old one, of an object that would be called as it is its `wish`, if it could.

        Names must differ within a scope: a kind, and of a kind in namespaces the namespace too.
        """
        if (scope, old) not in self._new:
            wish = old if wish is None else wish
            new = valid(wish)
            if (scope, new) in self._used or (new != wish and (scope, new) in self._kept):
                new = _marked(new, old)
            self._new[scope, old] = new
            self._used[scope, new] = old
        return self._new[scope, old]

    def take(self, source: ManifestSource, path: str, scope: str, identity: str = "") -> str:
        """The name for what is written at a path of an object; the report says if it differs.

        The old name identifies the object in the other system, unless `identity` does.
        """
        old = source.text(path)
        if not old:
            if not source.known(path):
                source.refused(path, "is missing")
            return ""
        new = self.of(scope, identity or old, old)
        if new == old:
            source.translated(path, new)
        else:
            source.approximated(path, f"renamed: {old} becomes {new}")
        return new


def with_generated_names(documents: Sequence[Document]) -> list[Document]:
    """The same objects; one that leaves its name to the API server gets it here.

    The name is `generateName` and the first number with which no other object of its namespace is called so.
    """
    names = ((each.namespace, _metadata(each).get("name")) for each in documents)
    taken = {(namespace, name) for namespace, name in names if isinstance(name, str)}
    found: list[Document] = []
    for each in documents:
        prefix = _metadata(each).get("generateName")
        if prefix and isinstance(prefix, str) and not _metadata(each).get("name"):
            name = next(f"{prefix}{n}" for n in count(1) if (each.namespace, f"{prefix}{n}") not in taken)
            taken.add((each.namespace, name))
            raw = {**each.raw, "metadata": {**_metadata(each), "name": name}}
            found.append(replace(each, name=title(raw, each.name), raw=raw))
        else:
            found.append(each)
    return found


def _metadata(document: Document) -> Json:
    found = document.raw.get("metadata")
    return found if isinstance(found, dict) else {}


def valid(name: str) -> str:
    """A name as it is if it is good, or what is nearest to it: small letters, digits, hyphens; 63 at most."""
    if len(name) <= LONGEST_NAME and _GOOD.fullmatch(name):
        return name
    tidy = re.sub(r"[^-a-z0-9.]+", "-", name.lower()).strip("-.")
    tidy = re.sub(r"-*\.[-.]*", ".", tidy)
    return tidy if tidy and len(tidy) <= LONGEST_NAME else _marked(tidy, name)


def _marked(name: str, identity: str) -> str:
    """A name of its own for an object with a name that is taken, too long or empty."""
    mark = sha256(identity.encode()).hexdigest()[:_HASH]
    return "-".join(part for part in (name[: LONGEST_NAME - _HASH - 1].rstrip("-."), mark) if part)
