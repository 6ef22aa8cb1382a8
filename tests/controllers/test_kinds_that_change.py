"""A JobKind that changes while the API server is asked: the answer is read by what holds then."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from admitter.cache.described_views import source_of_kind
from admitter.cache.job_resources import resource_of, sort_of
from admitter.cache.views import WorkloadView, parse_job, parse_workload
from admitter.cache.world import KnownKind, World, parse_held
from admitter.client.errors import NotFoundError, UnreadableError
from admitter.client.transport import Transport
from admitter.controllers.workload.held_status import HeldPods
from admitter.controllers.workload.jobs import Jobs
from admitter.controllers.workload.resizes import Resizes
from admitter.kinds.registry import Kinds
from admitter.names import JOB_LABEL, QUEUE_LABEL
from tests.apiserver.experiments import GROUP, job_kind
from tests.apiserver.server import clock
from tests.cache.test_described_views import TRIAL

Json = dict[str, Any]

TITLE = "experiment/trial"


class Scene:
    """A world with Experiments, and an API server during the answers of which something happens."""

    def __init__(self) -> None:
        self.world = World()
        self.meanwhile: Callable[[], None] = self.describe
        self.answer: Json | None = TRIAL
        self.deleted: list[str] = []
        self.describe()
        parts, transport = cast("Any", None), cast("Transport", self)
        held = HeldPods(self.world, transport, clock)
        resizes = Resizes(self.world, transport, parts, clock)
        self.jobs = Jobs(self.world, parts, parts, parts, parts, held, resizes, transport)

    def describe(self) -> None:
        """The objects are read anew, by a JobKind that has just changed."""
        kinds = Kinds([job_kind()], {})
        source = source_of_kind(kinds.declared[0], kinds, lambda *_: None)
        self.world.kinds["experiment"] = KnownKind(source, resource=resource_of(kinds.declared[0]))
        self.world.jobs.include(source.store)

    def lose(self) -> None:
        """The JobKind does not work any more."""
        resource = self.world.kinds["experiment"].resource
        self.world.kinds["experiment"] = KnownKind(None, "it has just changed", resource)

    async def get(self, _path: str) -> Json:
        self.meanwhile()
        if self.answer is None:
            raise NotFoundError(404, "NotFound", "gone")
        return self.answer

    async def delete(self, path: str, _body: Json) -> None:
        self.deleted.append(path)

    @property
    def workload(self) -> WorkloadView:
        owner = {"apiVersion": f"{GROUP}/v1", "kind": "Experiment", "name": "trial", "uid": "u"}
        owners = [{**owner, "controller": True}]
        metadata = TRIAL["metadata"] | {"name": "w", "labels": {JOB_LABEL: "u"}, "ownerReferences": owners}
        return parse_workload({"metadata": metadata, "spec": {"queueName": "main", "podSets": []}})

    def forget(self) -> None:
        """What the newest source knows is gone: what is left is in force though no source has it."""
        source = self.world.kinds[sort_of(TITLE)].source
        assert source is not None
        source.store.clear()


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def test_the_object_of_a_workload_is_taken_in_by_the_source_that_reads_it_now(scene: Scene) -> None:
    view = await scene.jobs._newest(scene.workload)
    assert view is not None
    assert scene.world.jobs.get(("team", TITLE)) is view
    scene.forget()
    assert scene.world.jobs.get(("team", TITLE)) is None


async def test_no_workload_is_deleted_once_its_kind_is_not_known_any_more(scene: Scene) -> None:
    scene.meanwhile, scene.answer = scene.lose, None
    await scene.jobs._without_job(scene.workload)
    assert scene.deleted == []
    scene.describe()
    scene.meanwhile = lambda: None
    await scene.jobs._without_job(scene.workload)
    assert len(scene.deleted) == 1, "its object is gone"


def test_a_workload_that_can_be_read_no_more_is_still_of_the_kind_that_it_was_of(scene: Scene) -> None:
    """It was admitted meanwhile, and its status can't be read."""
    place = {"name": "main", "count": 1, "flavors": {"cpu": "any"}, "usage": {"cpu": "1"}}
    admission = {"clusterQueue": "q", "podSets": [place]}
    raw = {"metadata": TRIAL["metadata"], "status": {"admission": admission, "conditions": 7}}
    held = parse_held(raw, scene.workload)
    assert held is not None
    assert held.job is not None
    assert scene.world.unknown_kind(held.job[0], held.group) == ""


async def test_an_answer_about_an_object_of_a_kind_that_is_lost_is_not_taken_in(scene: Scene) -> None:
    scene.meanwhile = scene.lose
    with pytest.raises(UnreadableError, match="describes experiment/trial any more"):
        await scene.jobs._newest(scene.workload)
    assert len(scene.world.jobs) == 0


async def test_a_child_is_recognized_by_an_owner_that_is_read_anew_meanwhile(scene: Scene) -> None:
    owner = {"apiVersion": f"{GROUP}/v1", "kind": "Experiment", "name": "trial", "uid": "u"}
    metadata = TRIAL["metadata"] | {
        "name": "child",
        "uid": "c",
        "labels": {QUEUE_LABEL: "main"},
        "ownerReferences": [{**owner, "controller": True}],
    }
    child = parse_job({"metadata": metadata, "spec": {"template": {"spec": {"containers": []}}}})
    assert await scene.jobs._is_child(child)
    scene.forget()
    assert scene.world.jobs.get(("team", TITLE)) is None
