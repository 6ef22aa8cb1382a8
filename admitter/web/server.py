"""The page's server: checks what a user may see, and answers with JSON. It writes and decides nothing.

Previous step: `admitter.web.stage` has a scene. Next step: the browser (`static/app.js`) draws it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final

import orjson
from aiohttp import web
from yarl import URL

from admitter.client.access import LONGEST_TOKEN, Access, TooManyTokensError, User, bearer
from admitter.client.errors import ClusterError
from admitter.insight.explain.explainer import UnknownError
from admitter.web.scene import WebScene
from admitter.web.sessions import COOKIE, PartyShares, Sessions
from admitter.web.stage import Stage

STATIC: Final = Path(__file__).parent / "static"
HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
HEARTBEAT_SECONDS: Final = 15.0
MOST_STREAMS: Final = 500
MOST_STREAMS_OF_ONE: Final = 20
"""Of one user, or of all service accounts of a namespace; the oldest of these ends first."""
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Question = Callable[[WebScene, str, str, Callable[[str], bool]], Awaitable[dict[str, Any]]]
"""A question to a scene about a namespace and a name in it, from a user that may see some namespaces."""


class HttpRefusal(web.HTTPException):
    """An answer that says in a sentence why the request is refused."""

    def __init__(self, status: int, words: str) -> None:
        self.status_code = status
        super().__init__(text=orjson.dumps({"error": words}).decode(), content_type="application/json")


class Page:
    """Answers requests."""

    def __init__(self, stage: Stage, access: Access, sessions: Sessions, hosts: Collection[str] = ()) -> None:
        """Serve a stage; `hosts` are the names by which it is reached, beside this machine's; none: any."""
        self._stage = stage
        self._access = access
        self._sessions = sessions
        self._hosts = frozenset(name.lower() for name in hosts)
        self._streams = PartyShares(MOST_STREAMS, MOST_STREAMS_OF_ONE)
        self._numbers = count()

    @property
    def streams(self) -> int:
        return len(self._streams)

    def app(self) -> web.Application:
        made = web.Application(middlewares=[_guarded, self._addressed], client_max_size=2 * LONGEST_TOKEN)
        made.add_routes(
            [
                web.get("/", _static("index.html", "text/html")),
                web.get("/app.js", _static("app.js", "text/javascript")),
                web.get("/view.js", _static("view.js", "text/javascript")),
                web.get("/app.css", _static("app.css", "text/css")),
                web.get("/icon.svg", _static("icon.svg", "image/svg+xml")),
                web.get("/healthz", self._healthy),
                web.post("/api/session", self._log_in),
                web.delete("/api/session", self._log_out),
                web.get("/api/me", self._me),
                web.get("/api/controller", self._controller),
                web.get("/api/tree", self._tree),
                web.get("/api/queue", self._queue),
                web.get("/api/starts", self._starts),
                web.get("/api/namespace", self._namespace),
                web.get("/api/workload", partial(self._about_one, WebScene.explanation)),
                web.get("/api/outlook", partial(self._about_one, WebScene.outlook)),
                web.get("/api/changes", self._changes),
            ]
        )
        return made

    @web.middleware
    async def _addressed(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse requests to other names, such as a name of another site that resolves to this machine."""
        if self._hosts and request.path != "/healthz" and _host(request) not in self._hosts | LOOPBACK:
            raise HttpRefusal(
                421, f"this page is not {request.host}: --allow-host says by which names it is reached"
            )
        return await handler(request)

    async def _healthy(self, _request: web.Request) -> web.Response:
        ready = self._stage.scene is not None
        return web.Response(status=200 if ready else 503, text="ok\n" if ready else "not read yet\n")

    async def _log_in(self, request: web.Request) -> web.Response:
        _same_origin(request)
        token = (await request.text()).strip()
        if not token or len(token) > LONGEST_TOKEN:
            raise HttpRefusal(400, "a token is needed")
        user = await self._known(request, token)
        if user is None:
            raise HttpRefusal(401, "the API server does not know this token, or it has expired")
        answer = web.json_response({})
        session = self._sessions.begin(token, user.name)
        answer.set_cookie(COOKIE, session, httponly=True, samesite="Strict", secure=True, path="/")
        return answer

    async def _log_out(self, request: web.Request) -> web.Response:
        _same_origin(request)
        self._sessions.end(request.cookies.get(COOKIE, ""))
        answer = web.json_response({})
        answer.del_cookie(COOKIE, path="/")
        return answer

    async def _user(self, request: web.Request) -> User:
        """The user: by a session, or by a token in the header, as proxies with their own login send it."""
        header = request.headers.get("Authorization", "")
        scheme = header.partition(" ")[0].lower()
        token = (
            bearer(header) if scheme == "bearer" else self._sessions.token(request.cookies.get(COOKIE, ""))
        )
        user = await self._known(request, token) if token else None
        if user is None:
            raise HttpRefusal(401, "log in with a token")
        return user

    async def _known(self, request: web.Request, token: str) -> User | None:
        try:
            return await self._access.user(token, request.remote or "")
        except TooManyTokensError as error:
            raise HttpRefusal(429, "too many unknown tokens were tried: try again in a minute") from error

    def _scene(self) -> WebScene:
        if self._stage.scene is None:
            raise HttpRefusal(503, "the cluster has not been read yet")
        return self._stage.scene

    async def _me(self, request: web.Request) -> web.Response:
        user = await self._user(request)
        return _json({"name": user.name, "tree": await self._access.may_list(user, "clusterqueues")})

    async def _controller(self, request: web.Request) -> web.Response:
        """Whether a controller decides; trees without one are named to users that may see the tree."""
        user = await self._user(request)
        scene, sees_tree = self._stage.scene, await self._access.may_list(user, "clusterqueues")
        roots = scene.roots() if scene is not None and sees_tree else ()
        return _json(self._stage.controllers.as_json(roots))

    async def _tree(self, request: web.Request) -> web.Response:
        user = await self._user(request)
        if not await self._access.may_list(user, "clusterqueues"):
            raise HttpRefusal(403, f"{user.name} may not list ClusterQueues: choose a namespace")
        return _json(self._scene().tree())

    async def _queue(self, request: web.Request) -> web.Response:
        scene, name, may_see = await self._about_queue(request)
        return _json({**scene.queue(name, may_see), "course": self._stage.course(name)})

    async def _starts(self, request: web.Request) -> web.Response:
        scene, name, may_see = await self._about_queue(request)
        starts = await scene.starts(name)
        return _json({key: start for key, start in starts.items() if may_see(key.partition("/")[0])})

    async def _namespace(self, request: web.Request) -> web.Response:
        user, name = await self._user(request), request.query.get("name", "")
        await self._may_see_namespace(user, name)
        scene = self._scene()
        if not scene.has_namespace(name):
            raise HttpRefusal(404, f"there is no namespace {name}")
        queues = scene.queues_of(name)
        lines = [line for line in scene.tree()["lines"] if line["kind"] == "queue" and line["name"] in queues]
        return _json({**scene.namespace(name), "lines": [{**line, "depth": 0} for line in lines]})

    async def _about_one(self, question: Question, request: web.Request) -> web.Response:
        user = await self._user(request)
        namespace, name = request.query.get("namespace", ""), request.query.get("name", "")
        await self._may_see_namespace(user, namespace)
        scene = self._scene()
        may_see = await self._visible(user, {row.workload.namespace for row in scene.rows})
        try:
            return _json(await question(scene, namespace, name, may_see))
        except UnknownError as error:
            raise HttpRefusal(404, str(error)) from error

    async def _changes(self, request: web.Request) -> web.StreamResponse:
        """Server-sent events: a line for each new scene; the client then requests what it shows."""
        user = await self._user(request)
        kind = {"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
        answer = web.StreamResponse(headers={**HEADERS, **kind})
        name = str(next(self._numbers))
        self._streams.take(name, user.name)
        try:
            await answer.prepare(request)
            last: WebScene | None = None
            while name in self._streams and await self._still(request, user):
                try:
                    last = await asyncio.wait_for(self._stage.newer(last), HEARTBEAT_SECONDS)
                    await answer.write(f"data: {last.revision}\n\n".encode())
                except TimeoutError:
                    await answer.write(b": still here\n\n")
        except ConnectionResetError:
            pass  # the client is gone
        finally:
            self._streams.leave(name)
        return answer

    async def _still(self, request: web.Request, user: User) -> bool:
        """Whether the request still has the same user: tokens expire, and sessions end."""
        try:
            return await self._user(request) == user
        except HttpRefusal:
            return False

    async def _may_see_namespace(self, user: User, name: str) -> None:
        if not name or not (await self._visible(user, [name]))(name):
            raise HttpRefusal(403, f"{user.name} may not list Workloads in namespace {name or '(none)'}")

    async def _about_queue(self, request: web.Request) -> tuple[WebScene, str, Callable[[str], bool]]:
        """The scene, the name of a queue in it, and whether the user may see Workloads of a namespace.

        A user that may list ClusterQueues sees all of them; others see those that a namespace of theirs uses.
        """
        user, scene, name = await self._user(request), self._scene(), request.query.get("name", "")
        if not await self._access.may_list(user, "clusterqueues"):
            namespace = request.query.get("namespace", "")
            await self._may_see_namespace(user, namespace)
            if name not in scene.queues_of(namespace):
                raise HttpRefusal(403, f"{user.name} may not see queue {name}")
        if scene.line(name) is None:
            raise HttpRefusal(404, f"there is no queue {name}")
        return scene, name, await self._visible(user, scene.namespaces_in(name))

    async def _visible(self, user: User, namespaces: Iterable[str]) -> Callable[[str], bool]:
        """Whether the user may see the Workloads of a namespace, for some namespaces."""
        if await self._access.may_list(user, "workloads"):
            return lambda _: True
        seen = {name for name in namespaces if await self._access.may_list(user, "workloads", name)}
        return seen.__contains__


def _json(answer: Any) -> web.Response:  # noqa: ANN401  # whatever JSON has
    return web.Response(
        body=orjson.dumps(answer), content_type="application/json", headers={"Cache-Control": "no-store"}
    )


def _static(name: str, kind: str) -> Handler:
    content = (STATIC / name).read_bytes()

    async def answer(_request: web.Request) -> web.StreamResponse:
        fresh = {"Cache-Control": "no-cache"}
        return web.Response(body=content, content_type=kind, charset="utf-8", headers=fresh)

    return answer


def _host(request: web.Request) -> str:
    """The name by which the page was reached, without the port; empty if it is invalid."""
    try:
        return (URL(f"//{request.host}").host or "").lower()
    except ValueError:
        return ""


def _same_origin(request: web.Request) -> None:
    """Refuse requests that another site's page makes a browser send; programs send no such header."""
    if request.headers.get("Sec-Fetch-Site", "same-origin") not in {"same-origin", "none"}:
        raise HttpRefusal(403, "another site's page may not do this")


@web.middleware
async def _guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Headers on every answer; errors of the API server become answers."""
    try:
        answer = await handler(request)
    except HttpRefusal as refusal:
        answer = refusal
    except web.HTTPException as other:
        answer = other
    except ClusterError as error:
        answer = HttpRefusal(502, f"the API server does not answer: {error}")
    if not answer.prepared:
        answer.headers.update(HEADERS)
    if isinstance(answer, web.HTTPException):
        raise answer
    return answer
