"""Objects of described kinds among Jobs, beside as many Jobs alone: `make bench-kinds SCALE=0.2`.

The load of `benchmarks.jobs`, twice, each on an API server of its own, with written starts so that victims
stop: first of Jobs alone, then with every third as an Experiment (the made-up kind of the tests), a JobSet
or a TFJob in turn, with a pod set of one pod and another of the rest. Their operators are played: a
status is written when a start, a stop and an end are seen; there are no children and no pods. Prints the
figures of both, and writes them to `benchmarks/results/kinds-SCALE.json`.
"""

import argparse
import asyncio
import json
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

import uvloop
from tenacity import AsyncRetrying, retry_if_exception_type, wait_fixed

from admitter.client.errors import NotFoundError
from admitter.client.transport import Transport
from admitter.install.apply import install_kinds
from admitter.install.kinds import DEFINITIONS, shipped
from admitter.sandbox.control_plane import ControlPlane
from benchmarks.crowd import Course, Task
from benchmarks.driver import FaithfulDriver, job
from benchmarks.jobs import RESULTS, measure
from benchmarks.server import setting
from benchmarks.watch import events, newest
from tests.apiserver.experiments import GROUP, definition, job_kind

Json = dict[str, Any]

EVERY: Final = 3
LOOK_SECONDS: Final = 0.2


@dataclass(frozen=True)
class Described:
    """A kind, and its operator.

    Attributes:
        version: group and version.
        kind: its name.
        plural: its name in paths.
        spec: of a pod template, how many pods, and the PriorityClass, the spec of one that is stopped.
        waits: whether a spec says that it is stopped.
        begun: the status of one that runs.
        stopped: the status of one that has stopped.
        ended: the status of one that is over.
    """

    version: str
    kind: str
    plural: str
    spec: Callable[[Json, int], Json]
    waits: Callable[[Json], bool]
    begun: Json
    stopped: Json
    ended: Json

    @property
    def collection(self) -> str:
        """The path of all of them."""
        return f"/apis/{self.version}/{self.plural}"

    def path(self, namespace: str) -> str:
        """The path of those in a namespace."""
        return f"/apis/{self.version}/namespaces/{namespace}/{self.plural}"


def _experiment(template: Json, pods: int) -> Json:
    probes = [{"name": "probe", "copies": pods - 1, "template": template}]
    return {"state": "Stopped", "control": template, "probes": probes if pods > 1 else []}


def _job_set(template: Json, pods: int) -> Json:
    def jobs(name: str, parallelism: int) -> Json:
        spec = {"parallelism": parallelism, "completions": parallelism, "template": template}
        return {"name": name, "replicas": 1, "template": {"spec": spec}}

    workers = [jobs("workers", pods - 1)] if pods > 1 else []
    return {"suspend": True, "replicatedJobs": [jobs("driver", 1), *workers]}


def _tf_job(template: Json, pods: int) -> Json:
    roles = {"Chief": {"replicas": 1, "template": template}}
    if pods > 1:
        roles["Worker"] = {"replicas": pods - 1, "template": template}
    return {"runPolicy": {"suspend": True}, "tfReplicaSpecs": roles}


def _over(kind: str) -> list[Json]:
    return [{"type": kind, "status": "True", "message": "all pods have ended"}]


KINDS: Final = (
    Described(
        f"{GROUP}/v1",
        *("Experiment", "experiments", _experiment),
        lambda spec: spec["state"] == "Stopped",
        {"pods": 1},
        {"pods": 0},
        {"pods": 0, "phase": "Done", "words": "all probes have come back"},
    ),
    Described(
        "jobset.x-k8s.io/v1alpha2",
        *("JobSet", "jobsets", _job_set),
        lambda spec: bool(spec["suspend"]),
        {"replicatedJobsStatus": [{"name": "driver", "active": 1}]},
        {"replicatedJobsStatus": [{"name": "driver", "active": 0}]},
        {"replicatedJobsStatus": [], "conditions": _over("Completed")},
    ),
    Described(
        "kubeflow.org/v1",
        *("TFJob", "tfjobs", _tf_job),
        lambda spec: bool(spec["runPolicy"]["suspend"]),
        {"replicaStatuses": {"Chief": {"active": 1}}},
        {"replicaStatuses": {"Chief": {"active": 0}}},
        {"replicaStatuses": {"Chief": {"active": 0}}, "conditions": _over("Succeeded")},
    ),
)


def stand_in(kind: Described) -> Json:
    """A definition that takes any object of a kind; that of an operator has a thousand fields."""
    made = definition()
    if kind.version.startswith(GROUP):
        return made
    group, version = kind.version.split("/")
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    (served,) = made["spec"]["versions"]
    served |= {"name": version, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": kind.kind, "plural": kind.plural}
    made["metadata"]["name"] = f"{kind.plural}.{group}"
    # A group below k8s.io needs a word on its review.
    made["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, for a benchmark"}
    made["spec"] |= {"group": group, "names": names}
    return made


@dataclass
class MixedDriver(FaithfulDriver):
    """Creates every third task as an object of one of the kinds, and plays the kinds' operators."""

    own_writes: ClassVar[tuple[str, ...]] = (
        *FaithfulDriver.own_writes,
        *(f"POST {kind.plural}" for kind in KINDS),
        *(f"PATCH {kind.plural}/status" for kind in KINDS),
    )

    _kinds: dict[Task, Described] = field(default_factory=dict)

    @staticmethod
    async def prepare(transport: Transport) -> None:
        """Kinds with their JobKinds, rights and policies."""
        served = AsyncRetrying(retry=retry_if_exception_type(NotFoundError), wait=wait_fixed(LOOK_SECONDS))
        for kind in KINDS:
            await transport.create(DEFINITIONS, stand_in(kind))
            await served(transport.get, kind.collection)
        known = shipped()
        described = {name: known[name] for name in ("jobset", "tfjob")}
        await install_kinds(transport, {"experiment": job_kind()} | described)

    async def run(self, tasks: Iterable[Task]) -> None:
        """Create all at their times; which of them are described depends on their order alone."""
        due = list(tasks)
        for number, task in enumerate(due[EVERY - 1 :: EVERY]):
            self._kinds[task] = KINDS[number % len(KINDS)]
        await super().run(due)

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """See what happens to Jobs and to objects of all kinds."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(super().watching())
            watches = [
                self._group.create_task(self._follow(kind, await newest(self.transport, kind.collection)))
                for kind in KINDS
            ]
            yield
            for watch in watches:
                watch.cancel()

    async def _follow(self, kind: Described, version: str) -> None:
        async for _, seen in events(self.transport, kind.collection, version):
            self._see(seen)

    def waits(self, seen: Json) -> bool:
        """Whether it is stopped."""
        of_kind = (kind for kind in KINDS if kind.kind == seen.get("kind"))
        return any(kind.waits(seen["spec"]) for kind in of_kind) or super().waits(seen)

    async def make(self, task: Task) -> None:
        """Create one that is stopped."""
        kind = self._kinds.get(task)
        if kind is None:
            await super().make(task)
            return
        made = job(task)
        template = made["spec"]["template"]
        template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
        head = {"apiVersion": kind.version, "kind": kind.kind, "metadata": made["metadata"]}
        await self.transport.create(kind.path(task.namespace), head | {"spec": kind.spec(template, task.cpu)})

    async def begin(self, course: Course) -> None:
        """As its operator does."""
        kind = self._kinds.get(course.task)
        await (self._write_status(kind, course, kind.begun) if kind else super().begin(course))

    async def stop(self, course: Course) -> None:
        """As its operator does."""
        kind = self._kinds.get(course.task)
        await (self._write_status(kind, course, kind.stopped) if kind else super().stop(course))

    async def end(self, course: Course) -> None:
        """As its operator does."""
        kind = self._kinds.get(course.task)
        await (self._write_status(kind, course, kind.ended) if kind else super().end(course))

    async def _write_status(self, kind: Described, course: Course, status: Json) -> None:
        path = f"{kind.path(course.task.namespace)}/{course.task.name}/status"
        await self.transport.patch(path, {"status": status})


async def compare(scale: float, folder: Path) -> Json:
    """Jobs alone, then the same with described kinds among them."""
    found: Json = {}
    for name, driver in (("jobs", FaithfulDriver), ("kinds", MixedDriver)):
        place = folder / name
        place.mkdir()
        plane = await asyncio.to_thread(ControlPlane.start, place / "sandbox", nodes=None, owner=os.getpid())
        try:
            found[name], _ = await measure(plane, scale, place, driver=driver)
        finally:
            await asyncio.to_thread(plane.stop)
    return found


def main() -> None:
    """Run, print and save."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=float, default=0.2, help="how many of the Jobs of the baseline")
    parser.add_argument("--dry", action="store_true", help="nothing is saved")
    options = parser.parse_args()
    result: Json = setting(f"make bench-kinds SCALE={options.scale:g}")
    with tempfile.TemporaryDirectory() as text:
        result |= uvloop.run(compare(options.scale, Path(text)))
    print(json.dumps(result, indent=2))
    if not options.dry:
        (RESULTS / f"kinds-{options.scale:g}.json").write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
