"""YuniKorn's access control lists, as roles that grant the verb `submit` on LocalQueues.

Rules: YuniKorn's user guide, *ACLs*: `users groups`, each a list with commas, or `*`. Users that may
submit to a queue may submit to all below it, and the administrators of a queue may submit to it.
"""

from dataclasses import dataclass
from typing import Final

from admitter.importers.translation import Json, ManifestSource
from admitter.names import GROUP, SUBMIT_VERB

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


def read(source: ManifestSource, path: str) -> YuniKornAccess:
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
