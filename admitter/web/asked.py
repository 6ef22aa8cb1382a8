"""A request to the console by a user that is known, and what that user may see."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from aiohttp import web

from admitter.client.access import Access, Right, User
from admitter.web.namespace_search import Found, NamespaceSearch, likeliest
from admitter.web.scene import WebScene
from admitter.web.stage import Stage

Json = dict[str, Any]


class HttpRefusal(web.HTTPException):
    """An answer that says in a sentence why the request is refused."""

    def __init__(self, status: int, words: str) -> None:
        self.status_code = status
        super().__init__(text=orjson.dumps({"error": words}).decode(), content_type="application/json")


class Sight:
    """What a user may see, as the API server says."""

    def __init__(self, access: Access, user: User, search: NamespaceSearch) -> None:
        """Ask nothing yet; each answer is remembered by `access` for a short while, refusals by `search`."""
        self._access = access
        self._user = user
        self._search = search

    async def sees_tree(self) -> bool:
        """Whether the user may list ClusterQueues: the tree, and every queue in it."""
        return await self._access.may_list(self._user, "clusterqueues")

    async def require_tree(self) -> None:
        """Refuse a user that may not list ClusterQueues.

        Raises:
            HttpRefusal: the user may not.
        """
        if not await self.sees_tree():
            raise HttpRefusal(403, f"{self._user.name} may not list ClusterQueues: choose a namespace")

    async def among(self, namespaces: Iterable[str]) -> Found:
        """In which of some namespaces the user may list Workloads, asked about at a bounded rate."""
        return await self._search.among(self._user, self._may_list, likeliest(self._user, namespaces))

    async def visible(self, namespaces: Iterable[str]) -> Callable[[str], bool]:
        """Whether the user may see the Workloads of a namespace, as far as that is known of some."""
        return (await self.among(namespaces)).sees

    async def still_visible(self, namespaces: Iterable[str]) -> Callable[[str], bool]:
        """The same of those alone that the user was found to see before.

        What is asked, and so the time of an answer, tells the user nothing of the others.
        """
        return await self.visible(self._search.allowed(self._user).intersection(namespaces))

    async def require_namespace(self, name: str) -> None:
        """Refuse a user that may not list the Workloads of a namespace; one that is not there is no other.

        Raises:
            HttpRefusal: the user may not.
        """
        if not name or not (await self._may_list("") or await self._may_list(name)):
            words = f"{self._user.name} may not list Workloads in namespace {name or '(none)'}"
            raise HttpRefusal(403, words)
        self._search.learn(self._user, name)

    async def _may_list(self, namespace: str) -> bool:
        return await self._access.may_list(self._user, "workloads", namespace)

    async def may(self, right: Right) -> bool:
        """Whether the user has a right."""
        return await self._access.may(self._user, right)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request."""

    user: User
    query: Mapping[str, str]
    body: Any  # of a POST, as JSON has it; None of a GET
    scene: WebScene  # the newest
    stage: Stage
    sight: Sight


Answering = Callable[[Asked], Awaitable[Any]]
"""Answers with what JSON has."""
