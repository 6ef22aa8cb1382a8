"""The kinds that are tried on their operators: a row for each.

Those of `OPTIONAL` are there if `ADMITTER_TEST_OPERATORS` names their operators, as `make test-kinds` does:
they take minutes to build.
"""

import os
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from tests.cluster.described import (
    TRAINING,
    app_wrapper,
    job_set,
    mpi_job,
    ray_cluster,
    train_job,
    training_job,
    training_runtime,
)
from tests.cluster.objects import Json


class Kind(NamedTuple):
    """A kind in tests.

    Attributes:
        resource: as kubectl takes it.
        group: its API group.
        mark: the label of its pods with its name.
        part: the label of its pods with the pod set.
        parts: the values of that label.
        sets: how many pods each of its pod sets has.
        made: the manifests of one, for namespace and name, with `seconds` and `pod` as of `job`.
        grows: the place of a field that lets it grow.
        refused: what such a change is refused with.
        children: what a tenant makes with it as an owner and is queued by itself: its operator makes none.
        suspend: the place of the field that stops it.
        job_kind: the name of its JobKind; by default its resource.
        operator: the name of its operator, if that is optional.
        page: its page in docs/kinds; by default its resource.
        ends: whether it ends by itself.
        alone: makes one that needs no other object, for namespace and name; by default `made` does.
    """

    resource: str
    group: str
    mark: str
    part: str
    parts: tuple[str, str]
    sets: tuple[int, int]
    made: Callable[..., list[Json]]
    grows: str
    refused: str
    children: frozenset[str]
    suspend: tuple[str, ...] = ("suspend",)
    job_kind: str = ""
    operator: str = ""
    page: str = ""
    ends: bool = True
    alone: Callable[[str, str], Json] | None = None

    @property
    def label(self) -> str:
        """What a test with it is called; `optional` is what `make test-kinds` chooses by."""
        return f"optional-{self.resource}" if self.operator else self.resource

    @property
    def pods(self) -> int:
        return sum(self.sets)

    def stopped(self, manifest: Json) -> bool:
        """Whether an object is, by its spec."""
        found = manifest["spec"]
        for key in self.suspend:
            found = found.get(key, {})
        return found is True


REMEDY = r"admitter pause \w+/runs -n [-\w]+, change it once it is stopped, then admitter resume \w+/runs -n"
_JOB_SET_MARKS = ("jobset.sigs.k8s.io/jobset-name", "jobset.sigs.k8s.io/replicatedjob-name")


def _train_job(namespace: str, name: str, **more: Any) -> list[Json]:
    return [training_runtime(namespace, name, **more), train_job(namespace, name, runtime=name)]


def _training_job(kind: str, namespace: str, name: str, **more: Any) -> list[Json]:
    return [training_job(kind, namespace, name, **more)]


JOB_SET = Kind(
    "jobset",
    "jobset.x-k8s.io",
    *_JOB_SET_MARKS,
    ("driver", "workers"),
    (1, 4),
    lambda *names, **more: [job_set(*names, **more)],
    "/spec/replicatedJobs/1/replicas",
    f"so spec.replicatedJobs can't grow: {REMEDY}",
    frozenset({"jobset"}),
)
RAY_CLUSTER = Kind(
    "raycluster",
    "ray.io",
    "ray.io/cluster",
    "ray.io/group",
    ("headgroup", "small"),
    (1, 2),
    lambda *names, **more: [ray_cluster(*names, **more)],
    "/spec/workerGroupSpecs/0/maxReplicas",
    f"so spec.workerGroupSpecs can't grow: {REMEDY}",
    frozenset({"job", "jobset"}),
    ends=False,
)
TRAIN_JOB = Kind(
    "trainjob",
    "trainer.kubeflow.org",
    *_JOB_SET_MARKS,
    ("driver", "node"),
    (1, 2),
    _train_job,
    "/spec/trainer/numNodes",
    # That of its own definition.
    "spec.trainer: Invalid value: field is immutable",
    frozenset({"job"}),
    alone=train_job,
)
_MPI_JOB = Kind(
    "mpijob",
    "kubeflow.org",
    "training.kubeflow.org/job-name",
    "training.kubeflow.org/job-role",
    ("launcher", "worker"),
    (1, 2),
    lambda *names, **more: [mpi_job(*names, **more)],
    "/spec/mpiReplicaSpecs/Worker/replicas",
    f"so spec.mpiReplicaSpecs can't grow: {REMEDY}",
    frozenset({"jobset"}),
    suspend=("runPolicy", "suspend"),
    job_kind="mpijob-v2beta1",
    operator="mpi",
)
APP_WRAPPER = Kind(
    "appwrapper",
    "workload.codeflare.dev",
    "workload.codeflare.dev/appwrapper",
    "part",
    ("driver", "workers"),
    (1, 2),
    lambda *names, **more: [app_wrapper(*names, **more)],
    "/spec/components/1/template/spec/parallelism",
    f"so spec.components can't describe other pods, or lose what Admitter has put into it: {REMEDY}",
    frozenset(),
    operator="appwrapper",
)


def _of_training_operator(kind: str) -> Kind:
    field, _, leads = TRAINING[kind]
    return Kind(
        kind.lower(),
        "kubeflow.org",
        "training.kubeflow.org/job-name",
        "training.kubeflow.org/replica-type",
        (leads.lower(), "worker"),
        (1, 2),
        partial(_training_job, kind),
        f"/spec/{field}/Worker/replicas",
        f"so spec.{field} can't grow: {REMEDY}",
        frozenset({"job", "jobset"}),
        suspend=("runPolicy", "suspend"),
        operator="training",
        page="training",
    )


OPTIONAL = (
    _MPI_JOB,
    APP_WRAPPER,
    *(_of_training_operator(kind) for kind in TRAINING),
)
ASKED = [name for name in os.environ.get("ADMITTER_TEST_OPERATORS", "").split(",") if name]
"""The optional operators that run in the tests."""
ASKED_KINDS = tuple(kind for kind in OPTIONAL if kind.operator in ASKED)
KINDS = (JOB_SET, RAY_CLUSTER, TRAIN_JOB, *ASKED_KINDS)
