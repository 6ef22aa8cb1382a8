"""The page with a cluster that never was, and people with rights that are made up."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import cast

from aiohttp import web
from playwright.async_api import expect
from yarl import URL

from admitter.client.access import Access, Right, User
from admitter.insight.controller_status import ControllerStatus, ShardLease
from admitter.insight.forecast.deadline import NO_LIMIT, Allowance
from admitter.insight.snapshot_file import SnapshotFile, facts
from admitter.policy.snapshot import Snapshot
from admitter.web.scene import WebScene
from admitter.web.server import Page
from admitter.web.sessions import Sessions
from admitter.web.stage import Stage
from tests.insight.states import NOW, State
from tests.patience import PATIENCE_SECONDS

_LEASE = ShardLease(0, "admitter-controller", alive=True, holder="pod_1", since=NOW - 7500.0)
LEADS = ControllerStatus((_LEASE,), NOW)
ADMIN, TENANT, EDITOR = "admins-token", "tenants-token", "editors-token"
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")  # the fastest first
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
expect.set_options(timeout=1000 * PATIENCE_SECONDS)
HOW = "needs a browser: apt-get install chromium-headless-shell"


class Rights(Access):
    """An administrator, a tenant of one namespace, and an editor of one queue, that sees all queues."""

    def __init__(self) -> None:
        self.expired: set[str] = set()

    async def user(self, token: str, _: str) -> User | None:
        known = {ADMIN: "admin", TENANT: "system:serviceaccount:team-a:user", EDITOR: "editor"}
        return User(known[token], ()) if token in known and token not in self.expired else None

    async def may_list(self, user: User, plural: str, namespace: str = "") -> bool:
        if user.name == "editor" and plural == "clusterqueues":
            return True
        return user.name == "admin" or (plural == "workloads" and namespace == "team-a")

    async def may(self, user: User, right: Right) -> bool:
        edits = (right.verb, right.resource, right.name) == ("patch", "clusterqueues", "a")
        return user.name == "admin" or (user.name == "editor" and edits)


class Still(Stage):
    """Shows scenes that are put on it."""

    def __init__(self, allowance: Allowance) -> None:
        super().__init__(_Nothing(), allowance)  # type: ignore[arg-type]  # nothing is followed
        self._revision = 0

    def show(self, state: State | SnapshotFile, later: float = 0.0) -> None:
        """The next scene: a state, so many seconds later than it says."""
        self._revision += 1
        known = facts(state if isinstance(state, SnapshotFile) else state.snapshot())
        known = replace(known, taken=known.taken + later)
        scene = WebScene(known, Snapshot(known), self._revision, self.limits, lambda: self.controllers)
        self.take_in(scene)
        self.put(scene)


class _Nothing:
    revision = 0
    controllers = LEADS


@dataclass
class Served:
    """A page that is served.

    Attributes:
        stage: what it shows.
        rights: what each user may see.
        hosts: the names by which it is reached; none: any.
        sessions: of users that have logged in.
        address: of it.
        page: what answers.
    """

    stage: Still
    rights: Rights
    hosts: tuple[str, ...] = ()
    sessions: Sessions = field(default_factory=lambda: Sessions(lambda: 0.0))
    address: str = "http://127.0.0.1:0"
    page: Page = field(init=False)
    _runner: web.AppRunner = field(init=False)

    def streams(self) -> int:
        """How many streams of changes are open."""
        return self.page.streams

    async def work_out_reasons(self) -> None:
        """Work out why Workloads wait in the scene that is shown: an answer waits for that only a moment."""
        assert self.stage.scene is not None
        await asyncio.to_thread(self.stage.scene.reasons)

    async def start(self) -> None:
        """Serve; at the address that it had before, if it had one."""
        self.page = Page(self.stage, cast("Access", self.rights), self.sessions, self.hosts)
        self._runner = web.AppRunner(self.page.app(), access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", URL(self.address).port, reuse_address=True).start()
        self.address = "http://{}:{}".format(*self._runner.addresses[0][:2])

    async def stop(self) -> None:
        """Answer nothing any more."""
        await self._runner.cleanup()


@asynccontextmanager
async def served(
    state: State | SnapshotFile | None, allowance: Allowance = NO_LIMIT, hosts: tuple[str, ...] = ()
) -> AsyncIterator[Served]:
    """A page that shows a state, on a port of its own; estimates may take as long as is allowed."""
    page = Served(Still(allowance), Rights(), hosts)
    if state is not None:
        page.stage.show(state)
    await page.start()
    try:
        yield page
    finally:
        await page.stop()


def department(jobs: int = 3) -> State:
    """Two teams in a Cohort; team-a holds quota, borrows and has a line, in which team-b is too."""
    state = State()
    state.put("cohorts", "research", spec={})
    for name in ("a", "b"):
        state.queue(name, {"cpu": {"default": {"min": "8"}}}, "research")
        state.namespace(f"team-{name}", name)
    state.put("localqueues", "shared", "team-b", spec={"clusterQueue": "a"})
    state.holds("team-a", "long", {"cpu": ("10", "default")}, cluster_queue="a", since=-200)
    for number in range(3):  # by which the runtime of others is known
        state.holds(
            "team-a",
            f"past-{number}",
            {"cpu": ("1", "default")},
            cluster_queue="a",
            since=-5000,
            finished=-4700 + 60 * number,
        )
    state.holds("team-a", "done", {"cpu": ("1", "default")}, cluster_queue="a", since=-900, finished=-500)
    for number in range(jobs):
        state.waits("team-a", f"train-{number}", {"cpu": "7"}, created=number)
    state.waits("team-b", "secret", {"cpu": "7"}, queue="shared", created=-5)
    return state


def fleet(queues: int, workloads: int) -> State:
    """Very many queues in Cohorts of ten, and Workloads that wait in them."""
    state = State()
    for number in range(queues):
        if number % 10 == 0:
            state.put("cohorts", f"cohort-{number // 10:03}", spec={})
        name = f"queue-{number:04}"
        state.queue(name, {"cpu": {"default": {"min": "8"}}}, f"cohort-{number // 10:03}")
        state.namespace(f"ns-{number:04}", name)
        state.holds(f"ns-{number:04}", "runs", {"cpu": ("8", "default")}, cluster_queue=name)
    for number in range(workloads):
        state.waits(f"ns-{number % queues:04}", f"job-{number:05}", {"cpu": "4"}, created=number / 1000)
    return state
