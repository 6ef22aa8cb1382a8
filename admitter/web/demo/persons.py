"""The page of the made-up cluster: without a token one chooses the person to look as."""

from typing import Final

import orjson
from aiohttp import web

from admitter.client.access import Access, Right, User
from admitter.web.asked import HttpRefusal
from admitter.web.demo.teams import TENANT
from admitter.web.server import Page, json_answer, same_origin
from admitter.web.sessions import Sessions
from admitter.web.stage import Stage

ADMINISTRATOR: Final = "administrator"
TENANTS: Final = {f"tenant of {TENANT}": TENANT}
"""Persons that see one namespace."""
PERSONS: Final = (ADMINISTRATOR, *TENANTS)
COOKIE: Final = "admitter-person"


class DemoAccess(Access):
    """What the persons may see; no API server is asked."""

    def __init__(self) -> None:  # it needs no API server
        pass

    async def user(self, token: str, address: str) -> User | None:  # noqa: ARG002  # no token is needed
        return None

    async def may_list(self, user: User, plural: str, namespace: str = "") -> bool:
        return self._may_do(user, plural, namespace)

    async def may(self, user: User, right: Right) -> bool:
        return self._may_do(user, right.resource, right.namespace) and (
            user.name == ADMINISTRATOR or right.verb in {"get", "list", "watch"}
        )

    @staticmethod
    def _may_do(user: User, plural: str, namespace: str) -> bool:
        if user.name == ADMINISTRATOR:
            return True
        return bool(namespace) and namespace == TENANTS.get(user.name) and plural in _OF_TENANTS


_OF_TENANTS: Final = frozenset({"workloads", "localqueues", "jobs", "pods"})


class DemoPage(Page):
    """Answers all requests, as those of a person that the viewer chooses."""

    def __init__(self, stage: Stage, sessions: Sessions) -> None:
        """Serve a stage, to this machine only."""
        super().__init__(stage, DemoAccess(), sessions, ("localhost",))

    def app(self) -> web.Application:
        made = super().app()
        made.add_routes([web.post("/api/demo", self._choose)])
        return made

    async def _user(self, request: web.Request) -> User:
        chosen = request.cookies.get(COOKIE, "")
        return User(PERSONS[int(chosen)] if chosen in _NUMBERS else ADMINISTRATOR, ())

    async def _me(self, request: web.Request) -> web.Response:
        user = await self._user(request)
        return json_answer({"name": user.name, "tree": user.name == ADMINISTRATOR, "demo": PERSONS})

    @staticmethod
    async def _choose(request: web.Request) -> web.Response:
        """Look as another person from now on."""
        same_origin(request)
        try:
            asked = orjson.loads(await request.read())
        except orjson.JSONDecodeError as error:
            raise HttpRefusal(400, f"the body is no JSON: {error}") from error
        person = asked.get("person") if isinstance(asked, dict) else None
        if person not in PERSONS:
            raise HttpRefusal(400, f"person: must be one of {', '.join(PERSONS)}")
        answer = web.json_response({})
        answer.set_cookie(COOKIE, str(PERSONS.index(person)), httponly=True, samesite="Strict", path="/")
        return answer


_NUMBERS: Final = frozenset(map(str, range(len(PERSONS))))
"""What the cookie may be: names have blanks."""
