"""The page's server: checks what a user may see, and answers with JSON. It writes and decides nothing.

Previous step: `admitter.web.stage` has a scene. Next step: the browser (`static/app.js`) draws it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from itertools import count
from typing import Any, Final

import orjson
import structlog
from aiohttp import web
from yarl import URL

from admitter.client.access import LONGEST_TOKEN, Access, TooManyTokensError, User, bearer
from admitter.client.errors import ClusterError
from admitter.insight.explain.explainer import UnknownError
from admitter.web.asked import Answering, Asked, HttpRefusal, Sight
from admitter.web.party_requests import PartyRequests, TooManyRequestsError
from admitter.web.routes import GET, POST
from admitter.web.scene import WebScene
from admitter.web.sessions import COOKIE, PartyShares, Sessions
from admitter.web.stage import Stage
from admitter.web.static_files import StaticFile, static_files

HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "worker-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
HEARTBEAT_SECONDS: Final = 15.0
PACKED_BYTES: Final = 4096
"""An answer that is as long is sent compressed, if the browser takes that."""
MOST_STREAMS: Final = 500
MOST_STREAMS_OF_ONE: Final = 20
"""Of one user, or of all service accounts of a namespace; the oldest of these ends first."""
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})

log = structlog.get_logger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


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
        self._requests = PartyRequests()

    @property
    def streams(self) -> int:
        return len(self._streams)

    def app(self) -> web.Application:
        made = web.Application(middlewares=[_guarded, self._addressed], client_max_size=2 * LONGEST_TOKEN)
        made.add_routes(
            [
                web.get("/healthz", self._healthy),
                web.post("/api/session", self._log_in),
                web.delete("/api/session", self._log_out),
                web.get("/api/me", self._me),
                web.get("/api/controller", self._controller),
                web.get("/api/changes", self._changes),
                *(web.get(path, partial(self._answered, answer)) for path, answer in GET.items()),
                *(web.post(path, partial(self._answered, answer)) for path, answer in POST.items()),
                *(web.get(path, partial(_served, file)) for path, file in static_files().items()),
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
        same_origin(request)
        token = (await request.read()).decode(errors="replace").strip()
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
        same_origin(request)
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
        return json_answer({"name": user.name, "tree": await self._access.may_list(user, "clusterqueues")})

    async def _controller(self, request: web.Request) -> web.Response:
        """Whether a controller decides; trees without one are named to users that may see the tree."""
        user = await self._user(request)
        scene, sees_tree = self._stage.scene, await self._access.may_list(user, "clusterqueues")
        roots = scene.roots() if scene is not None and sees_tree else ()
        return json_answer(self._stage.controllers.as_json(roots))

    async def _answered(self, answer: Answering, request: web.Request) -> web.Response:
        """Answer a known user by one of the views."""
        if request.method != "GET":
            same_origin(request)
        user = await self._user(request)
        try:
            async with self._requests.place(user.name):
                sight = Sight(self._access, user, self._stage.namespaces)
                body, scene = await _body(request), self._scene()
                return json_answer(await answer(Asked(user, request.query, body, scene, self._stage, sight)))
        except TooManyRequestsError as error:
            raise HttpRefusal(429, f"{user.name} has too many requests at once: try again") from error
        except UnknownError as error:
            raise HttpRefusal(404, str(error)) from error

    async def _changes(self, request: web.Request) -> web.StreamResponse:
        """Server-sent events: a line for each new scene; the client then requests what it shows.

        While there is none, the client hears that the stream is `still` there.
        """
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
                    await answer.write(b"event: still\ndata:\n\n")
        except ConnectionResetError:
            pass  # the client is gone
        finally:
            self._streams.leave(name)
        return answer

    async def _still(self, request: web.Request, user: User) -> bool:
        """Whether the request still has the same user: tokens expire, and sessions end.

        While the API server does not answer that is not known, and the stream goes on: it has numbers only.
        """
        try:
            return await self._user(request) == user
        except HttpRefusal:
            return False
        except ClusterError:
            return True


def json_answer(answer: Any) -> web.Response:  # noqa: ANN401  # whatever JSON has
    body = orjson.dumps(answer)
    made = web.Response(body=body, content_type="application/json", headers={"Cache-Control": "no-store"})
    if len(body) >= PACKED_BYTES:
        made.enable_compression()
    return made


async def _body(request: web.Request) -> Any:  # noqa: ANN401  # whatever JSON has
    """The body of a request that has one.

    Raises:
        HttpRefusal: it is no JSON.
    """
    if request.method == "GET":
        return None
    try:
        return orjson.loads(await request.read())
    except orjson.JSONDecodeError as error:
        raise HttpRefusal(400, f"the body is no JSON: {error}") from error


async def _served(file: StaticFile, request: web.Request) -> web.StreamResponse:
    """A file of the console; a browser that has it already is told so."""
    headers = {"Cache-Control": "no-cache", "ETag": file.tag, "Vary": "Accept-Encoding"}
    if request.headers.get("If-None-Match") == file.tag:
        return web.Response(status=304, headers=headers)
    packed = "gzip" in request.headers.get("Accept-Encoding", "")
    content = file.packed if packed else file.content
    if packed:
        headers["Content-Encoding"] = "gzip"
    return web.Response(body=content, content_type=file.kind, charset="utf-8", headers=headers)


def _host(request: web.Request) -> str:
    """The name by which the page was reached, without the port; empty if it is invalid."""
    try:
        return (URL(f"//{request.host}").host or "").lower()
    except ValueError:
        return ""


def same_origin(request: web.Request) -> None:
    """Refuse requests that another site's page makes a browser send.

    Older browsers tell the page's address only, and programs nothing of that.
    """
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    own = site in {"same-origin", "none"} if site is not None else origin is None or _is_own(origin, request)
    if not own:
        raise HttpRefusal(403, "another site's page may not do this")


def _is_own(origin: str, request: web.Request) -> bool:
    """Whether a page's address is that to which the request was sent."""
    return origin.lower() in {f"{scheme}://{request.host}".lower() for scheme in ("http", "https")}


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
    except ConnectionError:
        raise  # the client is gone
    except Exception:  # of one request, and others go on
        log.exception("a request failed", path=request.path)
        answer = HttpRefusal(500, "this could not be answered: the log of the console says why")
    if not answer.prepared:
        answer.headers.update(HEADERS)
    if isinstance(answer, web.HTTPException):
        raise answer
    return answer
