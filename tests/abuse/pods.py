"""Queued pods and groups of them: as tenants make, copy, change, grow and forge them.

Users of a namespace give their groups the same few names, so that each may try to join those of others.
"""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final

from tests.abuse.operations import (
    ANY,
    JSON_PATCH,
    KEEP,
    MERGE,
    STRATEGIC,
    UPDATE,
    Operation,
    Pause,
    Step,
    copy,
    create,
    delete,
    patch,
)
from tests.abuse.scene import Ground
from tests.abuse.shapes import KUEUE, MARKS, NOTES, QUEUE, SHUTDOWN, job_owner, labels_of_queues
from tests.abuse.single import Mind, deleting
from tests.abuse.watcher import BOUND, HAND

Json = dict[str, Any]

GROUP: Final = "admitter.dev/pod-group"
SIZE: Final = "admitter.dev/pod-group-size"
FURTHER: Final = (
    *("retriable-in-group", "pod-group-serving", "pod-group-fast-admission", "pod-group-owner"),
    "beyond-group",
)
"""What else a pod says of its group."""
GROUPS: Final = ("g0", "g1")
NUMBERS: Final = 8
"""So many queued pods a tenant has at a time."""
NODE: Final = "abuse-on-demand-0"
SECONDS: Final = 1.5
"""The longest that a tenant waits for something."""


def queued_pod(random: Random, ground: Ground, name: str, *, seconds: int = 10) -> Json:
    """A pod in the queue of a Job in order."""
    requests = {"cpu": random.choice(("1", "1", "500m", "2"))}
    container = {"name": "main", "image": "work", "resources": {"requests": requests}}
    annotations = {
        "admitter.dev/simulated-runtime": str(seconds),
        SHUTDOWN: str(random.choice((0, 0, 1, 4))),
    }
    metadata = {"name": name, "namespace": ground.namespace, "labels": {QUEUE: ground.own_queue}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata | {"annotations": annotations},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }


def grouped(made: Json, group: str, size: int) -> Json:
    """The same as one of a group."""
    made["metadata"]["labels"][GROUP] = group
    made["metadata"]["annotations"][SIZE] = str(size)
    return made


def drawn_queued_pod(random: Random, ground: Ground, name: str) -> Json:
    """Any queued pod, and some that are none."""
    made = queued_pod(random, ground, name, seconds=random.choice((0, 1, 3, 10, 30)))
    if random.random() < 0.25:
        made["metadata"]["labels"] = labels_of_queues(random, ground)
    if random.random() < 0.5:
        grouped(made, random.choice(GROUPS), random.choice((1, 2, 2, 2, 3, 99)))
    if random.random() < 0.4:
        random.choice(ODDITIES)(random, made)
    return made


def _marks(random: Random, made: Json) -> None:
    made["metadata"]["labels"] |= {MARKS[0]: f"@workload/{ANY}/{random.randrange(9)}@", MARKS[1]: "abuse-a"}
    made["metadata"]["annotations"] |= {NOTES[0]: "forged", NOTES[1]: '{"cpu": "on-demand"}'}


def _creator(_random: Random, made: Json) -> None:
    made["metadata"]["annotations"] |= {"admitter.dev/user": "root", "admitter.dev/user-uid": "forged"}


def _odd_size(random: Random, made: Json) -> None:
    odd = random.choice(("", "0", "-1", "many", "1e3", "100000"))
    made["metadata"]["annotations"][SIZE] = odd


def _further(random: Random, made: Json) -> None:
    value = random.choice(("true", "false", "odd", ""))
    made["metadata"]["annotations"][f"admitter.dev/{random.choice(FURTHER)}"] = value


def _kueue(_random: Random, made: Json) -> None:
    labels = made["metadata"]["labels"]
    labels[KUEUE] = labels.pop(QUEUE, "main")
    labels["kueue.x-k8s.io/pod-group-name"] = labels.pop(GROUP, GROUPS[0])
    made["metadata"]["annotations"]["kueue.x-k8s.io/pod-group-total-count"] = "2"


def _gates(random: Random, made: Json) -> None:
    made["spec"]["schedulingGates"] = random.choice(([], [{"name": "example.com/gate"}]))


def _scheduler(_random: Random, made: Json) -> None:
    made["spec"]["schedulerName"] = "absent"


def _selector(random: Random, made: Json) -> None:
    made["spec"]["nodeSelector"] = {"instance-type": random.choice(("spot", "on-demand", "none"))}
    made["spec"]["tolerations"] = [{"operator": "Exists"}]


def _priority(random: Random, made: Json) -> None:
    made["spec"]["priorityClassName"] = random.choice(("abuse-low", "abuse-high"))


def _owner(_random: Random, made: Json) -> None:
    made["metadata"]["ownerReferences"] = [{**job_owner("forged"), "uid": "forged"}]


def _finalizer(_random: Random, made: Json) -> None:
    made["metadata"]["finalizers"] = [KEEP]


def _requests(random: Random, made: Json) -> None:
    resources = random.choice(({}, {"requests": {"cpu": "999"}}, {"limits": {"cpu": "1"}}))
    made["spec"]["containers"][0]["resources"] = resources


ODDITIES: Final[tuple[Callable[[Random, Json], None], ...]] = (
    _marks,
    _creator,
    _odd_size,
    _further,
    _kueue,
    _gates,
    _scheduler,
    _selector,
    _priority,
    _owner,
    _finalizer,
    _requests,
)
"""What makes a queued pod odd."""


def _name(mind: Mind) -> str:
    """Of a queued pod of a tenant; those of other tenants have other names."""
    return f"{HAND}{mind.names[0].partition('-')[0]}-{mind.random.randrange(NUMBERS)}"


def _some(mind: Mind) -> str:
    """A queued pod of its own, or whichever pod there is."""
    return _name(mind) if mind.random.random() < 0.7 else f"@pod/{ANY}/{mind.random.randrange(20)}@"


def _create(mind: Mind) -> Operation:
    return create(mind.namespace, "pods", drawn_queued_pod(mind.random, mind.ground, _name(mind)))


def _bound(mind: Mind) -> Operation:
    """One that names its node: it is refused."""
    made = drawn_queued_pod(mind.random, mind.ground, f"{BOUND}{mind.random.randrange(NUMBERS)}")
    made["spec"]["nodeName"] = NODE
    return create(mind.namespace, "pods", made)


def _copy(mind: Mind) -> Operation:
    """A pod as one that there is, with all the marks that this has, and mostly without its node."""
    random, metadata = mind.random, {"name": _name(mind)}
    spec: Json = {"nodeName": None}
    if random.random() < 0.2:
        metadata, spec = {"name": f"{BOUND}{random.randrange(NUMBERS)}"}, {}
    further: Json = random.choice(({}, {"ownerReferences": None}, {"labels": {QUEUE: None}}))
    return copy(mind.namespace, "pods", _some(mind), {"metadata": metadata | further, "spec": spec})


def _delete(mind: Mind) -> Operation:
    return delete(mind.namespace, "pods", _some(mind), **deleting(mind))


def _change(mind: Mind) -> Operation:
    random = mind.random
    changes: tuple[Json, ...] = (
        {"spec": {"schedulingGates": None}},
        {"spec": {"schedulingGates": []}, "metadata": {"labels": {QUEUE: None}}},
        {"metadata": {"labels": {QUEUE: random.choice((None, "", "other", "absent"))}}},
        {"metadata": {"labels": {GROUP: random.choice((None, *GROUPS))}}},
        {"metadata": {"annotations": {SIZE: random.choice((None, "1", "3"))}}},
        {"metadata": {"annotations": {f"admitter.dev/{random.choice(FURTHER)}": "true"}}},
        {"metadata": {"annotations": {"admitter.dev/user": random.choice((None, "root"))}}},
        {"metadata": {"annotations": {random.choice(NOTES): random.choice((None, "{}"))}}},
        {"metadata": {"labels": {random.choice(MARKS): random.choice((None, "forged"))}}},
        {"metadata": {"ownerReferences": random.choice((None, [job_owner(mind.some_job())]))}},
        {"metadata": {"finalizers": random.choice((None, [KEEP]))}},
        {"spec": {"nodeSelector": {"instance-type": "spot"}}},
        {"spec": {"tolerations": [{"operator": "Exists"}]}},
        {"spec": {"activeDeadlineSeconds": 3}},
    )
    return patch(
        mind.namespace, "pods", _some(mind), random.choice(changes), content=random.choice((MERGE, UPDATE))
    )


def _part(mind: Mind) -> Operation:
    name, random = _some(mind), mind.random
    resources = {"requests": {"cpu": random.choice(("4", "1m"))}}
    resized = {"spec": {"containers": [{"name": "main", "resources": resources}]}}
    debugged = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "work"}]}}
    bound = {"metadata": {"name": name}, "target": {"kind": "Node", "name": NODE}}
    evicted = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    choices = (
        patch(mind.namespace, "pods", name, resized, part="resize", content=STRATEGIC),
        patch(mind.namespace, "pods", name, debugged, part="ephemeralcontainers", content=STRATEGIC),
        patch(
            mind.namespace,
            "pods",
            name,
            [{"op": "remove", "path": "/spec/schedulingGates"}],
            content=JSON_PATCH,
        ),
        patch(mind.namespace, "pods", name, {"status": {"phase": "Failed"}}, part="status"),
        create(mind.namespace, "pods", bound, (name, "binding")),
        create(mind.namespace, "pods", evicted, (name, "eviction")),
    )
    return random.choice(choices)


WEIGHTS: Final[tuple[tuple[int, Callable[[Mind], Operation]], ...]] = (
    (16, _create),
    (2, _bound),
    (5, _copy),
    (7, _delete),
    (8, _change),
    (5, _part),
)


def _members(mind: Mind, group: str, size: int, *, first: int = 0) -> Iterator[Step]:
    """Pods of a group, each in the place of one that had its name before."""
    prefix = f"{HAND}{mind.names[0].partition('-')[0]}-{group}"
    for number in range(first, size):
        name = f"{prefix}-{number}"
        yield delete(mind.namespace, "pods", name, gracePeriodSeconds="0")
        made = queued_pod(mind.random, mind.ground, name, seconds=8)
        yield create(mind.namespace, "pods", grouped(made, group, size))


def _a_group_of_the_name_of_another(mind: Mind) -> Iterator[Step]:
    """Whichever tenant comes second must not get into the group of the first one."""
    group = mind.random.choice(GROUPS)
    yield from _members(mind, group, 3)
    yield Pause(ANY, "runs", SECONDS)
    yield copy(
        mind.namespace,
        "pods",
        f"@pod/{ANY}/{mind.random.randrange(20)}@",
        {"metadata": {"name": _name(mind)}},
    )
    yield create(mind.namespace, "pods", grouped(queued_pod(mind.random, mind.ground, _name(mind)), group, 3))


def _a_group_with_more_pods_than_its_size(mind: Mind) -> Iterator[Step]:
    group = mind.random.choice(GROUPS)
    yield from _members(mind, group, 2)
    prefix = f"{HAND}{mind.names[0].partition('-')[0]}-{group}"
    for number in range(2, 5):
        made = queued_pod(mind.random, mind.ground, f"{prefix}-{number}")
        yield create(mind.namespace, "pods", grouped(made, group, 2))
    yield patch(mind.namespace, "pods", f"{prefix}-0", {"metadata": {"annotations": {SIZE: "5"}}})
    yield delete(mind.namespace, "pods", f"{prefix}-0", gracePeriodSeconds="0")
    yield delete(mind.namespace, "pods", f"{prefix}-1", gracePeriodSeconds="30")


def _a_pod_loses_its_gate_and_its_queue(mind: Mind) -> Iterator[Step]:
    name = f"{HAND}{mind.names[0].partition('-')[0]}-0"
    yield delete(mind.namespace, "pods", name, gracePeriodSeconds="0")
    yield create(mind.namespace, "pods", queued_pod(mind.random, mind.ground, name))
    for content in (MERGE, UPDATE):
        yield patch(mind.namespace, "pods", name, {"spec": {"schedulingGates": None}}, content=content)
        yield patch(mind.namespace, "pods", name, {"metadata": {"labels": {QUEUE: None}}}, content=content)
    yield Pause(ANY, "runs", SECONDS)
    larger = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "8"}}}]}}
    yield patch(mind.namespace, "pods", name, larger, part="resize", content=STRATEGIC)
    yield patch(mind.namespace, "pods", name, {"metadata": {"labels": {QUEUE: None}}})


def _a_pod_whose_workload_is_taken_away(mind: Mind) -> Iterator[Step]:
    name = f"{HAND}{mind.names[0].partition('-')[0]}-1"
    yield delete(mind.namespace, "pods", name, gracePeriodSeconds="0")
    yield create(mind.namespace, "pods", queued_pod(mind.random, mind.ground, name, seconds=20))
    yield Pause(ANY, "runs", SECONDS)
    known = f"@workload/queued.{name}@"
    yield patch(mind.namespace, "workloads", known, {"spec": {"active": mind.random.random() < 0.5}})
    yield delete(mind.namespace, "workloads", known)
    yield create(mind.namespace, "pods", queued_pod(mind.random, mind.ground, name, seconds=20))
    yield patch(mind.namespace, "pods", name, {"metadata": {"finalizers": [KEEP]}})
    yield delete(mind.namespace, "pods", name)
    yield delete(mind.namespace, "workloads", known)
    yield patch(mind.namespace, "pods", name, {"metadata": {"finalizers": None}})


THEMES: Final[tuple[Callable[[Mind], Iterator[Step]], ...]] = (
    _a_group_of_the_name_of_another,
    _a_group_with_more_pods_than_its_size,
    _a_pod_loses_its_gate_and_its_queue,
    _a_pod_whose_workload_is_taken_away,
)
