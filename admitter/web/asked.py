"""A request to the console by a user that is known, and what that user may see."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from aiohttp import web

from admitter.client.access import Access, Right, User
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

    def __init__(self, access: Access, user: User) -> None:
        """Ask nothing yet; each question is remembered by `access` for a short while."""
        self._access = access
        self._user = user

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

    async def visible(self, namespaces: Iterable[str]) -> Callable[[str], bool]:
        """Whether the user may see the Workloads of a namespace, for some namespaces."""
        if await self._access.may_list(self._user, "workloads"):
            return lambda _: True
        seen = {name for name in namespaces if await self._access.may_list(self._user, "workloads", name)}
        return seen.__contains__

    async def require_namespace(self, name: str) -> None:
        """Refuse a user that may not list the Workloads of a namespace; one that is not there is no other.

        Raises:
            HttpRefusal: the user may not.
        """
        if not name or not (await self.visible([name]))(name):
            words = f"{self._user.name} may not list Workloads in namespace {name or '(none)'}"
            raise HttpRefusal(403, words)

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
