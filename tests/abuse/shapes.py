"""Jobs, pods and Workloads as a tenant may write them: in order, odd, greedy and forged, drawn by chance."""

from collections.abc import Callable
from random import Random
from typing import Any, Final

from tests.abuse.operations import KEEP
from tests.abuse.scene import ELASTIC, Ground
from tests.abuse.watcher import HAND
from tests.cluster.objects import job, workload

Json = dict[str, Any]

QUEUE: Final = "admitter.dev/queue-name"
KUEUE: Final = "kueue.x-k8s.io/queue-name"
SHUTDOWN: Final = "admitter.dev/simulated-shutdown"
MANAGER: Final = "example.com/tenant"
MARKS: Final = ("admitter.dev/workload", "admitter.dev/cluster-queue")
NOTES: Final = ("admitter.dev/workload-uid", "admitter.dev/flavors", "admitter.dev/counted")
OWN_NOTES: Final = (
    "admitter.dev/injected",
    "admitter.dev/returned",
    "admitter.dev/placed-in",
    "admitter.dev/placement",
    "admitter.dev/user",
    "admitter.dev/expected-runtime",
    "admitter.dev/eviction-time",
)
GIANT: Final = ("999999999999", "9E", "1e15")
SMALL: Final = ("0", "1m", "1u")


def labels_of_queues(random: Random, ground: Ground) -> dict[str, str]:
    """Which queue a Job is given: mostly one that there is, at times another label, or none."""
    own = [*ground.queues, *([ELASTIC] if ground.elastic else [])]
    odd: list[dict[str, str]] = [
        {},
        {QUEUE: ""},
        {QUEUE: "absent"},
        {QUEUE: ELASTIC},
        {KUEUE: "absent"},
        {KUEUE: own[0]},
        {KUEUE: "absent", QUEUE: ""},
        {KUEUE: ""},
    ]
    return {QUEUE: random.choice(own)} if random.random() < 0.75 else random.choice(odd)


def sound_job(ground: Ground, name: str, *, cpu: str = "1", pods: int = 1, **more: Any) -> Json:
    """A Job in order."""
    return job(ground.namespace, name, requests={"cpu": cpu}, pods=pods, queue=ground.own_queue, **more)


def slow_job(random: Random, ground: Ground, name: str, *, pods: int = 0, seconds: int = 20) -> Json:
    """A Job with pods that run for long, and take their time to end once they are deleted."""
    made = sound_job(ground, name, cpu=random.choice(("1", "2", "500m")), pods=pods or random.randint(1, 4))
    annotations = made["spec"]["template"]["metadata"]["annotations"]
    annotations |= {
        "admitter.dev/simulated-runtime": str(seconds),
        SHUTDOWN: str(random.choice((2, 4, 8))),
    }
    return made


def drawn_job(random: Random, ground: Ground, name: str) -> Json:
    """Any Job."""
    made = job(
        ground.namespace,
        name,
        pods=random.choice((1, 1, 1, 2, 2, 3, 5)),
        requests={"cpu": random.choice(("1", "1", "2", "500m", "250m", "3"))},
        seconds=random.choice((0, 1, 2, 3, 5, 10, 20)),
        suspend=random.random() < 0.6,
    )
    made["metadata"]["labels"] = labels_of_queues(random, ground)
    made["spec"]["template"]["metadata"]["annotations"][SHUTDOWN] = str(random.choice((0, 0, 0, 1, 3, 8)))
    if random.random() < 0.35:
        for twist in random.sample(TWISTS, k=random.choice((1, 1, 2))):
            twist(random, made)
    return made


def _template(made: Json) -> Json:
    template: Json = made["spec"]["template"]
    return template


def _pod(made: Json) -> Json:
    spec: Json = _template(made)["spec"]
    return spec


def _container(made: Json) -> Json:
    container: Json = _pod(made)["containers"][0]
    return container


def _requests(random: Random, made: Json) -> None:
    requests = {"cpu": random.choice((*GIANT, *SMALL, "1.5", "-1", "1500u"))}
    _container(made)["resources"]["requests"] = requests


def _nothing_requested(_random: Random, made: Json) -> None:
    _container(made)["resources"] = {}


def _limits_only(_random: Random, made: Json) -> None:
    _container(made)["resources"] = {"limits": {"cpu": "2"}}


def _devices(random: Random, made: Json) -> None:
    devices = random.choice(({"nvidia.com/gpu": "1"}, {"example.com/device": "1"}, {"pods": "1"}))
    _container(made)["resources"] = {"requests": {"cpu": "1", **devices}, "limits": devices}


def _memory(random: Random, made: Json) -> None:
    _container(made)["resources"].setdefault("requests", {})["memory"] = random.choice(("1Gi", "20Gi", "1"))


def _init_containers(random: Random, made: Json) -> None:
    sidecar = {"restartPolicy": "Always"} if random.random() < 0.5 else {}
    requests = {"requests": {"cpu": random.choice(("2", "4", "100m"))}}
    _pod(made)["initContainers"] = [{"name": "first", "image": "work", "resources": requests, **sidecar}]


def _pod_resources(random: Random, made: Json) -> None:
    _pod(made)["resources"] = {"requests": {"cpu": random.choice(("1", "4"))}}


def _node_name(random: Random, made: Json) -> None:
    _pod(made)["nodeName"] = random.choice(("abuse-spot-0", "abuse-on-demand-1", "absent"))


def _node_selector(random: Random, made: Json) -> None:
    _pod(made)["nodeSelector"] = {"instance-type": random.choice(("spot", "on-demand", "none"))}


def _tolerations(_random: Random, made: Json) -> None:
    _pod(made)["tolerations"] = [{"operator": "Exists"}]


def _scheduler(random: Random, made: Json) -> None:
    gates = {"schedulingGates": [{"name": "example.com/gate"}]}
    _pod(made).update(random.choice((gates, {"schedulerName": "absent"})))


def _priority(random: Random, made: Json) -> None:
    _pod(made)["priorityClassName"] = random.choice(("abuse-low", "abuse-high", "system-node-critical", "no"))


def _manager(_random: Random, made: Json) -> None:
    made["spec"]["managedBy"] = MANAGER


def _own_selector(_random: Random, made: Json) -> None:
    made["spec"] |= {"manualSelector": True, "selector": {"matchLabels": {"app": "mine"}}}
    _template(made)["metadata"]["labels"] = {"app": "mine"}


def _replacement(random: Random, made: Json) -> None:
    made["spec"]["podReplacementPolicy"] = random.choice(("Failed", "TerminatingOrFailed"))


def _ends(random: Random, made: Json) -> None:
    choices: tuple[Json, ...] = (
        {"activeDeadlineSeconds": 2},
        {"ttlSecondsAfterFinished": 0},
        {"backoffLimit": 0},
        {"backoffLimit": 20},
    )
    made["spec"] |= random.choice(choices)


def _indexed(random: Random, made: Json) -> None:
    number = random.choice((0, 1, 4, 8))
    made["spec"] |= {
        "completionMode": "Indexed",
        "parallelism": random.choice((0, 2, 4)),
        "completions": number,
    }


def _work_queue(_random: Random, made: Json) -> None:
    made["spec"]["completions"] = None
    made["spec"]["parallelism"] = 3


def _many(random: Random, made: Json) -> None:
    number = random.choice((12, 100, 100_000))
    made["spec"] |= {"parallelism": number, "completions": number}


def _finalizer(_random: Random, made: Json) -> None:
    made["metadata"]["finalizers"] = [KEEP]


def _pod_finalizer(_random: Random, made: Json) -> None:
    _template(made)["metadata"]["finalizers"] = [KEEP]


def _marks(random: Random, made: Json) -> None:
    metadata = _template(made)["metadata"]
    if random.random() < 0.5:
        metadata["labels"] = {random.choice(MARKS): "forged"}
    else:
        metadata["annotations"][random.choice(NOTES)] = random.choice(("{}", "forged", '{"cpu": "spot"}'))


def _notes(random: Random, made: Json) -> None:
    value = random.choice(("{}", "", "90m", "-1", '{"nodeSelector": {}, "tolerations": []}', "[" * 200))
    made["metadata"]["annotations"] = {random.choice(OWN_NOTES): value}


def _owner(random: Random, made: Json) -> None:
    kind = random.choice(("CronJob", "Job", "Pod"))
    owner = {"apiVersion": "batch/v1", "kind": kind, "name": "forged", "uid": "forged", "controller": True}
    made["metadata"]["ownerReferences"] = [owner]


def _restarts(_random: Random, made: Json) -> None:
    _pod(made)["restartPolicy"] = "OnFailure"


def _grace(_random: Random, made: Json) -> None:
    _pod(made)["terminationGracePeriodSeconds"] = 1_000_000


TWISTS: Final[tuple[Callable[[Random, Json], None], ...]] = (
    _requests,
    _nothing_requested,
    _limits_only,
    _devices,
    _memory,
    _init_containers,
    _pod_resources,
    _node_name,
    _node_selector,
    _tolerations,
    _scheduler,
    _priority,
    _manager,
    _own_selector,
    _replacement,
    _ends,
    _indexed,
    _work_queue,
    _many,
    _finalizer,
    _pod_finalizer,
    _marks,
    _notes,
    _owner,
    _restarts,
    _grace,
)
"""What makes a Job odd."""


def drawn_pod(random: Random, ground: Ground, number: int, of: str) -> Json:
    """A pod made by hand, which may pretend to belong to a Job."""
    spec: Json = {"containers": [{"name": "main", "image": "work", "resources": {"requests": {"cpu": "1"}}}]}
    metadata: Json = {
        "name": f"{HAND}{number}",
        "namespace": ground.namespace,
        "labels": {},
        "annotations": {},
    }
    metadata["annotations"]["admitter.dev/simulated-runtime"] = "5"
    forgeries: tuple[Json, ...] = (
        {"labels": {QUEUE: ground.own_queue}},
        {"labels": {MARKS[0]: f"@workload/{of}@", MARKS[1]: "abuse-a"}},
        {"labels": {"batch.kubernetes.io/controller-uid": f"@uid/{of}@", "controller-uid": f"@uid/{of}@"}},
        {"ownerReferences": [job_owner(of)]},
        {"finalizers": ["batch.kubernetes.io/job-tracking"]},
        {},
    )
    metadata |= random.choice(forgeries)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def job_owner(name: str) -> Json:
    """What says that a Job controls something."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": name,
        "uid": f"@uid/{name}@",
        "controller": True,
        "blockOwnerDeletion": False,
    }


def drawn_workload(random: Random, ground: Ground, name: str) -> Json:
    """A Workload made by hand."""
    cpu = random.choice(("1", "2", "1m", "0", "999999999"))
    made = workload(ground.namespace, name, cpu)
    made["spec"]["queueName"] = random.choice((ground.own_queue, ground.own_queue, "absent", ""))
    made["spec"]["podSets"][0]["count"] = random.choice((1, 1, 2, 1000))
    further: tuple[Json, ...] = (
        {},
        {},
        {"priority": 1_000_000},
        {"priorityClassName": "abuse-high"},
        {"active": False},
    )
    made["spec"] |= random.choice(further)
    if random.random() < 0.2:
        made["metadata"]["finalizers"] = [KEEP]
    if random.random() < 0.1:
        made["metadata"]["labels"] = {"admitter.dev/job-uid": "forged"}
    return made
