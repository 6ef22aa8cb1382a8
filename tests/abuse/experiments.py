"""Experiments: objects of a kind that only a JobKind describes, as tenants make, change and forge them.

Their operator (`tests.cluster.experiment_operator`) knows nothing of Admitter. Tenants mean one by the name
`experiment.NAME` in references.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, Final

from admitter.client.transport import HttpTransport
from admitter.install.apply import install_kinds
from admitter.sandbox.control_plane import ControlPlane
from tests.abuse.operations import KEEP, MERGE, UPDATE, Operation, Pause, Step, create, delete, patch
from tests.abuse.scene import Ground
from tests.abuse.shapes import MARKS, NOTES, QUEUE, drawn_job, labels_of_queues, slow_job, sound_job
from tests.abuse.single import Mind, deleting
from tests.abuse.watcher import HAND
from tests.apiserver.experiments import GROUP, definition, job_kind

Json = dict[str, Any]

OPERATOR: Final = "system:serviceaccount:lab:operator"
ROLE: Final[Json] = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "lab", "labels": {"rbac.authorization.k8s.io/aggregate-to-edit": "true"}},
    "rules": [{"apiGroups": [GROUP], "resources": ["*"], "verbs": ["*"]}],
}
PREFIX: Final = "x-"
"""What their names start with: a Job may have the rest."""
SECONDS: Final = 2.5
"""The longest that a tenant waits for something; the operator takes its time."""


async def install(transport: HttpTransport) -> None:
    """Have a cluster with Admitter queue Experiments."""
    await install_kinds(transport, {"experiment": job_kind(operators=[OPERATOR])})


def define(plane: ControlPlane) -> None:
    """Have a cluster serve Experiments.

    Policies know a new kind up to half a minute later: that passes while Admitter is installed.
    """
    for made in (definition(), ROLE):
        plane.run_kubectl("create", "-f-", content=json.dumps(made))
    plane.await_definitions(f"experiments.{GROUP}")
    plane.run_kubectl("create", "namespace", "lab")
    plane.run_kubectl("create", "serviceaccount", "operator", "--namespace=lab")
    role, account = "--clusterrole=edit", "--serviceaccount=lab:operator"
    plane.run_kubectl("create", "clusterrolebinding", "lab-operator", role, account)


@contextmanager
def operated(plane: ControlPlane, folder: Path) -> Iterator[None]:
    """The operator runs; what it is refused is in `operator.log` in a folder."""
    kubeconfig = plane.service_account_kubeconfig("lab", "operator", folder / "operator")
    command = [sys.executable, "-m", "tests.cluster.experiment_operator", str(kubeconfig)]
    with (folder / "operator.log").open("wb") as log, subprocess.Popen(command, stderr=log) as operator:
        try:
            yield
            assert operator.poll() is None, "the operator of Experiments has ended"
        finally:
            operator.kill()


def experiment(ground: Ground, name: str, control: Json, probe: Json, copies: int = 1) -> Json:
    """An Experiment in the queue of a Job in order, from the manifests of two Jobs."""
    templates = [made["spec"]["template"] for made in (control, probe)]
    for template in templates:
        template["spec"].setdefault("restartPolicy", "Never")
    labels = {QUEUE: ground.own_queue}
    probes = [{"name": "probe", "copies": copies, "template": templates[1]}]
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Experiment",
        "metadata": {"name": name, "namespace": ground.namespace, "labels": labels},
        "spec": {"state": "Running", "control": templates[0], "probes": probes},
    }


def slow(random: Random, ground: Ground, name: str) -> Json:
    """One with pods that run for long, and take their time to end."""
    control, probe = (slow_job(random, ground, name) for _ in range(2))
    return experiment(ground, name, control, probe, random.randint(1, 3))


def drawn_experiment(random: Random, ground: Ground, name: str) -> Json:
    """Any Experiment."""
    control, probe = (drawn_job(random, ground, name) for _ in range(2))
    made = experiment(ground, name, control, probe, random.choice((1, 1, 2, 3, 0, -1, 1000)))
    made["metadata"]["labels"] = labels_of_queues(random, ground)
    made["spec"]["state"] = random.choice(("Running", "Running", "Stopped", "Odd"))
    further: tuple[Json, ...] = ({}, {}, {}, {"finalizers": [KEEP]})
    made["metadata"] |= random.choice(further)
    if random.random() < 0.1:
        made["spec"]["probes"] = []
    return made


def owner(name: str) -> Json:
    """What says that an Experiment controls something."""
    uid = f"@uid/experiment.{name}@"
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Experiment",
        "name": name,
        "uid": uid,
        "controller": True,
    }


def forged_child(random: Random, ground: Ground, of: str, number: int) -> tuple[str, Json]:
    """A Job or a pod that pretends to be made by the operator; the plural of its kind comes first."""
    made = sound_job(ground, f"child-{number}", seconds=5) | {}
    made["metadata"]["ownerReferences"] = [owner(of)]
    made["metadata"]["labels"] = random.choice(({}, {QUEUE: ground.own_queue}, {QUEUE: "absent"}))
    marks = {MARKS[0]: f"@workload/experiment.{of}@", MARKS[1]: "abuse-a"}
    template = made["spec"]["template"]
    if random.random() < 0.6:
        template["metadata"]["labels"] = marks
        template["metadata"]["annotations"] |= {NOTES[0]: "forged", NOTES[1]: '{"cpu": "on-demand"}'}
    made["spec"]["suspend"] = random.random() < 0.3
    if random.random() < 0.5:
        return "jobs", made
    names = {"name": f"{HAND}child-{number}", "namespace": ground.namespace, "ownerReferences": [owner(of)]}
    return "pods", {"apiVersion": "v1", "kind": "Pod", **template, "metadata": template["metadata"] | names}


def _some(mind: Mind) -> str:
    return f"{PREFIX}{mind.some_job()}"


def _create(mind: Mind) -> Operation:
    name = f"{PREFIX}{mind.random.choice(mind.names)}"
    return create(mind.namespace, "experiments", drawn_experiment(mind.random, mind.ground, name))


def _delete(mind: Mind) -> Operation:
    return delete(mind.namespace, "experiments", _some(mind), **deleting(mind))


def _change(mind: Mind) -> Operation:
    random = mind.random
    other = drawn_job(random, mind.ground, "any")["spec"]["template"]
    labels = {QUEUE: None, **labels_of_queues(random, mind.ground)}
    probes = [{"name": "probe", "copies": random.choice((1, 3, 9)), "template": other}]
    marked = {"labels": {random.choice(MARKS): "forged"}, "annotations": {random.choice(NOTES): "forged"}}
    changes: tuple[Json, ...] = (
        {"spec": {"state": "Running"}},
        {"spec": {"state": random.choice(("Stopped", "Odd", None))}},
        {"spec": {"control": other}},
        {"spec": {"control": {"metadata": random.choice((None, marked))}}},
        {"spec": {"control": {"spec": {"nodeSelector": random.choice((None, {"instance-type": "spot"}))}}}},
        {"spec": {"probes": probes}},
        {"spec": {"probes": [*probes, {**probes[0], "name": "more"}]}},
        {"spec": {"probes": random.choice((None, []))}},
        {"metadata": {"labels": labels}},
        {"metadata": {"labels": labels}, "spec": {"state": "Running", "probes": probes}},
        {"metadata": {"annotations": {"admitter.dev/injected": random.choice((None, "", "{}"))}}},
        {"metadata": {"finalizers": random.choice((None, [KEEP]))}},
    )
    content = random.choice((MERGE, UPDATE))
    return patch(mind.namespace, "experiments", _some(mind), random.choice(changes), content=content)


def _status(mind: Mind) -> Operation:
    """Its status is a user's to write, where the role of the kind says so: it may say that all is over."""
    said = mind.random.choice(({"phase": "Done"}, {"pods": 0}, {"pods": 9}, {"pods": None, "phase": None}))
    return patch(mind.namespace, "experiments", _some(mind), {"status": said}, part="status")


def _forge(mind: Mind) -> Operation:
    kind, made = forged_child(mind.random, mind.ground, _some(mind), mind.number())
    return create(mind.namespace, kind, made)


def _pause(mind: Mind) -> Operation:
    change = {"spec": {"active": mind.random.random() < 0.5}}
    return patch(mind.namespace, "workloads", f"@workload/experiment.{_some(mind)}@", change)


def _adopt_pod(mind: Mind) -> Operation:
    change = {"metadata": {"ownerReferences": mind.random.choice((None, [owner(_some(mind))]))}}
    return patch(mind.namespace, "pods", f"@pod/experiment.{_some(mind)}/0@", change)


WEIGHTS: Final[tuple[tuple[int, Callable[[Mind], Operation]], ...]] = (
    (8, _create),
    (3, _delete),
    (6, _change),
    (1, _status),
    (3, _forge),
    (2, _pause),
    (1, _adopt_pod),
)


def _started(mind: Mind) -> Generator[Step, None, str]:
    """One runs, if there is quota; what had the name before is deleted. Returns its name."""
    name = f"{PREFIX}{mind.random.choice(mind.names)}"
    yield delete(mind.namespace, "experiments", name, propagationPolicy="Background")
    yield Pause(f"experiment.{name}", "gone", SECONDS)
    yield create(mind.namespace, "experiments", slow(mind.random, mind.ground, name))
    yield Pause(f"experiment.{name}", "runs", SECONDS)
    return name


def _an_experiment_grows_while_it_starts_and_runs(mind: Mind) -> Iterator[Step]:
    name = yield from _started(mind)
    made = slow(mind.random, mind.ground, name)
    made["spec"]["probes"][0]["copies"] = 9
    for content in (MERGE, UPDATE):
        yield patch(mind.namespace, "experiments", name, {"spec": made["spec"]}, content=content)
    yield patch(mind.namespace, "experiments", name, {"metadata": {"labels": {QUEUE: None}}})


def _an_experiment_is_paused_changed_and_resumed(mind: Mind) -> Iterator[Step]:
    name = yield from _started(mind)
    known = f"@workload/experiment.{name}@"
    yield patch(mind.namespace, "workloads", known, {"spec": {"active": False}})
    made = slow(mind.random, mind.ground, name)
    for _ in range(3):
        yield patch(mind.namespace, "experiments", name, {"spec": made["spec"]})
    yield patch(mind.namespace, "workloads", known, {"spec": {"active": True}})
    yield patch(mind.namespace, "experiments", name, {"spec": {"state": "Running"}})
    yield Pause(f"experiment.{name}", "runs", SECONDS)
    yield delete(mind.namespace, "workloads", known)


def _an_experiment_leaves_its_pods_behind(mind: Mind) -> Iterator[Step]:
    name = yield from _started(mind)
    yield delete(mind.namespace, "experiments", name, propagationPolicy="Orphan")
    yield delete(mind.namespace, "workloads", f"@workload/experiment.{name}@")
    yield create(mind.namespace, "experiments", slow(mind.random, mind.ground, name))
    yield patch(
        mind.namespace,
        "pods",
        f"@pod/experiment.{name}/0@",
        {"metadata": {"ownerReferences": [owner(name)]}},
    )
    yield Pause(f"experiment.{name}", "runs", SECONDS)


def _children_of_an_experiment_are_forged(mind: Mind) -> Iterator[Step]:
    name = yield from _started(mind)
    for number in range(4):
        kind, made = forged_child(mind.random, mind.ground, name, number)
        yield create(mind.namespace, kind, made)
    yield patch(mind.namespace, "jobs", "child-0", {"spec": {"suspend": False, "parallelism": 5}})
    yield delete(mind.namespace, "experiments", name, propagationPolicy="Orphan")


THEMES: Final[tuple[Callable[[Mind], Iterator[Step]], ...]] = (
    _an_experiment_grows_while_it_starts_and_runs,
    _an_experiment_is_paused_changed_and_resumed,
    _an_experiment_leaves_its_pods_behind,
    _children_of_an_experiment_are_forged,
)
