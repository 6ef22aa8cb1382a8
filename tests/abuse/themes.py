"""Attacks of several steps: those of docs/permissions.md, their kin, and what they become when mixed.

Each is a function of what a tenant knows, and yields the steps in order.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from tests.abuse.operations import APPLY, KEEP, MERGE, UPDATE, Pause, Step, create, delete, patch
from tests.abuse.shapes import (
    KUEUE,
    MANAGER,
    QUEUE,
    SHUTDOWN,
    drawn_job,
    drawn_pod,
    job_owner,
    slow_job,
    sound_job,
)
from tests.abuse.single import Mind
from tests.cluster.objects import workload

Json = dict[str, Any]

SECONDS: Final = 1.5
"""The longest that a tenant waits for something."""
RUNNING: Final = {"spec": {"suspend": False}}
PAUSED: Final = {"spec": {"active": False}}
ACTIVE: Final = {"spec": {"active": True}}


def _fresh(mind: Mind) -> str:
    name = mind.random.choice(mind.names)
    mind.alive.add(name)
    return name


def _started(mind: Mind, name: str, manifest: Json | None = None) -> Iterator[Step]:
    """A Job of that name runs, if there is quota; what had the name before is deleted."""
    yield delete(mind.namespace, "jobs", name, propagationPolicy="Background")
    yield Pause(name, "gone", SECONDS)
    yield create(mind.namespace, "jobs", manifest or slow_job(mind.random, mind.ground, name))
    yield Pause(name, "runs", SECONDS)


def _orphans_under_a_workload_of_the_same_name(mind: Mind) -> Iterator[Step]:
    name, namespace = _fresh(mind), mind.namespace
    yield from _started(mind, name)
    known = f"@workload/{name}@"
    yield patch(namespace, "workloads", known, {"metadata": {"annotations": {"seen": "yes"}}})
    yield delete(namespace, "jobs", name, propagationPolicy="Orphan")
    yield delete(namespace, "workloads", known)
    made = workload(namespace, known, "1m")
    made["spec"]["queueName"] = mind.ground.own_queue
    yield create(namespace, "workloads", made)
    yield patch(namespace, "pods", f"@pod/{name}/0@", {"metadata": {"annotations": {"touched": "yes"}}})
    yield create(namespace, "jobs", slow_job(mind.random, mind.ground, name))
    yield Pause(name, "runs", SECONDS)
    yield delete(namespace, "workloads", known)


def _made_again_while_its_pods_end(mind: Mind) -> Iterator[Step]:
    name = _fresh(mind)
    yield from _started(mind, name)
    way = mind.random.choice(("Background", "Foreground", "Orphan"))
    yield delete(mind.namespace, "jobs", name, propagationPolicy=way)
    for _ in range(3):
        yield create(mind.namespace, "jobs", slow_job(mind.random, mind.ground, name))
    yield Pause(name, "runs", SECONDS)


def _paused_and_changed(mind: Mind) -> Iterator[Step]:
    name, namespace, random = _fresh(mind), mind.namespace, mind.random
    yield from _started(mind, name)
    yield patch(namespace, "workloads", f"@workload/{name}@", PAUSED)
    requests = {"requests": {"cpu": random.choice(("1m", "8", "1"))}}
    containers = [{"name": "main", "image": "work", "resources": requests}]
    for _ in range(3):
        yield patch(namespace, "jobs", name, {"spec": {"template": {"spec": {"containers": containers}}}})
        yield patch(namespace, "jobs", name, {"spec": {"parallelism": 5, "completions": 5}})
    yield delete(namespace, "workloads", f"@workload/{name}@")
    yield patch(namespace, "workloads", f"@workload/{name}@", ACTIVE)
    yield Pause(name, "runs", SECONDS)


def _on_and_off(mind: Mind) -> Iterator[Step]:
    name = _fresh(mind)
    yield from _started(mind, name)
    for number in range(6):
        state = PAUSED if number % 2 == 0 else ACTIVE
        yield patch(mind.namespace, "workloads", f"@workload/{name}@", state)
        if mind.random.random() < 0.3:
            yield patch(mind.namespace, "jobs", name, RUNNING)


def _to_another_queue(mind: Mind) -> Iterator[Step]:
    name, namespace = _fresh(mind), mind.namespace
    yield from _started(mind, name)
    yield patch(namespace, "workloads", f"@workload/{name}@", PAUSED)
    for label in ("other", "absent", "main", "", None):
        change: Json = {"metadata": {"labels": {QUEUE: label}}, "spec": {"suspend": False}}
        yield patch(namespace, "jobs", name, change)
        yield patch(namespace, "workloads", f"@workload/{name}@", ACTIVE)
    yield delete(namespace, "pods", f"@pod/{name}/0@", gracePeriodSeconds="0")


def _more_at_the_moment_of_the_start(mind: Mind) -> Iterator[Step]:
    name, namespace = _fresh(mind), mind.namespace
    yield delete(namespace, "jobs", name, propagationPolicy="Background")
    yield create(namespace, "jobs", sound_job(mind.ground, name, seconds=5))
    for number in (3, 6, 9):
        yield patch(namespace, "jobs", name, {"spec": {"parallelism": number, "completions": number}})
    yield patch(namespace, "jobs", name, RUNNING, content=UPDATE)
    yield Pause(name, "runs", SECONDS)
    yield patch(namespace, "jobs", name, {"spec": {"parallelism": 9}}, content=UPDATE)


def _pods_are_taken_from_their_job(mind: Mind) -> Iterator[Step]:
    name, other, namespace = _fresh(mind), mind.some_job(), mind.namespace
    yield from _started(mind, name)
    pod = f"@pod/{name}/0@"
    labels = {"batch.kubernetes.io/controller-uid": f"@uid/{other}@", "controller-uid": f"@uid/{other}@"}
    yield patch(namespace, "pods", pod, {"metadata": {"labels": labels}})
    yield patch(namespace, "pods", pod, {"metadata": {"ownerReferences": None}})
    yield delete(namespace, "jobs", name, propagationPolicy="Orphan")
    yield patch(namespace, "pods", pod, {"metadata": {"labels": labels}})
    yield patch(namespace, "pods", pod, {"metadata": {"ownerReferences": [job_owner(other)]}})


def _slow_ends_and_forced_ones(mind: Mind) -> Iterator[Step]:
    name, namespace = _fresh(mind), mind.namespace
    made = slow_job(mind.random, mind.ground, name, pods=3)
    made["spec"]["podReplacementPolicy"] = "TerminatingOrFailed"
    yield from _started(mind, name, made)
    yield patch(namespace, "jobs", name, {"spec": {"podReplacementPolicy": "TerminatingOrFailed"}})
    for index in range(3):
        yield delete(namespace, "pods", f"@pod/{name}/{index}@", gracePeriodSeconds="100000")
    yield delete(namespace, "pods", f"@pod/{name}/0@", gracePeriodSeconds="0")
    yield patch(namespace, "workloads", f"@workload/{name}@", PAUSED)
    yield delete(namespace, "pods", f"@pod/{name}/1@", gracePeriodSeconds="0")


def _finalizers_on_pods(mind: Mind) -> Iterator[Step]:
    name, namespace = _fresh(mind), mind.namespace
    yield from _started(mind, name)
    pod = f"@pod/{name}/0@"
    yield patch(namespace, "pods", pod, {"metadata": {"finalizers": [KEEP]}})
    yield delete(namespace, "pods", pod)
    yield delete(namespace, "jobs", name, propagationPolicy="Foreground")
    yield create(namespace, "jobs", slow_job(mind.random, mind.ground, name))
    yield patch(namespace, "pods", pod, {"metadata": {"finalizers": None}})
    yield Pause(name, "runs", SECONDS)


def _a_job_that_stays_while_it_is_deleted(mind: Mind) -> Iterator[Step]:
    name, namespace = _fresh(mind), mind.namespace
    made = slow_job(mind.random, mind.ground, name)
    made["metadata"]["finalizers"] = [KEEP]
    yield from _started(mind, name, made)
    yield delete(namespace, "jobs", name, propagationPolicy="Background")
    yield patch(namespace, "workloads", f"@workload/{name}@", PAUSED)
    yield patch(namespace, "workloads", f"@workload/{name}@", ACTIVE)
    yield patch(namespace, "jobs", name, RUNNING)
    yield delete(namespace, "workloads", f"@workload/{name}@")
    yield patch(namespace, "jobs", name, {"metadata": {"finalizers": None}})


def _a_workload_that_stays_while_it_is_deleted(mind: Mind) -> Iterator[Step]:
    name, namespace = _fresh(mind), mind.namespace
    yield from _started(mind, name)
    known = f"@workload/{name}@"
    yield patch(namespace, "workloads", known, {"metadata": {"finalizers": [KEEP]}})
    yield delete(namespace, "workloads", known)
    yield patch(namespace, "jobs", name, {"spec": {"parallelism": 1}})
    yield delete(namespace, "jobs", name, propagationPolicy=mind.random.choice(("Orphan", "Background")))
    yield create(namespace, "jobs", slow_job(mind.random, mind.ground, name))
    yield Pause(name, "runs", SECONDS)
    yield patch(namespace, "workloads", known, {"metadata": {"finalizers": None}})


def _managed_by_another_controller(mind: Mind) -> Iterator[Step]:
    name, namespace = _fresh(mind), mind.namespace
    made = sound_job(mind.ground, name, seconds=5) | {}
    made["spec"]["managedBy"] = MANAGER
    yield from _started(mind, name, made)
    yield create(namespace, "pods", drawn_pod(mind.random, mind.ground, mind.number(), name))
    yield patch(namespace, "workloads", f"@workload/{name}@", PAUSED)
    yield delete(namespace, "jobs", name, propagationPolicy="Orphan")


def _in_and_out_of_queues(mind: Mind) -> Iterator[Step]:
    """A Job without a queue runs where it may, is given one, and drops it."""
    name, namespace, random = _fresh(mind), mind.namespace, mind.random
    made = slow_job(random, mind.ground, name)
    odd: tuple[Json, ...] = ({}, {KUEUE: "absent"}, {QUEUE: ""}, {KUEUE: "", QUEUE: ""}, {KUEUE: "main"})
    made["metadata"]["labels"] = random.choice(odd)
    made["spec"]["suspend"] = False
    yield from _started(mind, name, made)
    yield patch(namespace, "jobs", name, {"metadata": {"labels": {QUEUE: mind.ground.own_queue}}})
    yield patch(namespace, "jobs", name, {"spec": {"parallelism": 9, "completions": 9}})
    leaves = {"metadata": {"labels": {QUEUE: random.choice((None, "")), KUEUE: "absent"}}} | RUNNING
    yield patch(namespace, "jobs", name, leaves)
    yield Pause(name, "runs", SECONDS)


def _out_before_it_is_admitted(mind: Mind) -> Iterator[Step]:
    name, namespace = _fresh(mind), mind.namespace
    yield delete(namespace, "jobs", name, propagationPolicy="Background")
    yield Pause(name, "gone", SECONDS)
    yield create(namespace, "jobs", slow_job(mind.random, mind.ground, name, pods=4))
    label = mind.random.choice((None, "", "absent"))
    yield patch(namespace, "jobs", name, {"metadata": {"labels": {QUEUE: label}}} | RUNNING)
    yield patch(namespace, "jobs", name, RUNNING)
    yield patch(namespace, "jobs", name, {"metadata": {"labels": {QUEUE: mind.ground.own_queue}}} | RUNNING)


def _a_manifest_that_takes_out_what_was_put_in(mind: Mind) -> Iterator[Step]:
    name, namespace = _fresh(mind), mind.namespace
    made = slow_job(mind.random, mind.ground, name)
    yield from _started(mind, name, made)
    for content in (APPLY, UPDATE, MERGE):
        yield patch(namespace, "jobs", name, made, content=content)
    bare: Json = {"spec": {"template": {"spec": {"nodeSelector": None}, "metadata": {"labels": None}}}}
    yield patch(namespace, "workloads", f"@workload/{name}@", PAUSED)
    yield patch(namespace, "jobs", name, bare)
    yield patch(namespace, "workloads", f"@workload/{name}@", ACTIVE)


def _preemption_while_its_victim_is_deleted(mind: Mind) -> Iterator[Step]:
    """A Job is preempted by the next one, and deleted while the place is being made."""
    first, second = mind.random.sample(mind.names, k=2)
    namespace = mind.namespace
    low, high = (slow_job(mind.random, mind.ground, name, pods=4) for name in (first, second))
    low["spec"]["template"]["spec"]["priorityClassName"] = "abuse-low"
    high["spec"]["template"]["spec"]["priorityClassName"] = "abuse-high"
    mind.alive |= {first, second}
    yield from _started(mind, first, low)
    yield delete(namespace, "jobs", second, propagationPolicy="Background")
    yield create(namespace, "jobs", high)
    yield delete(namespace, "jobs", first, propagationPolicy=mind.random.choice(("Orphan", "Foreground")))
    yield delete(namespace, "workloads", f"@workload/{first}@")
    yield create(namespace, "jobs", low)
    yield Pause(second, "runs", SECONDS)
    yield delete(namespace, "jobs", second, propagationPolicy="Background", gracePeriodSeconds="0")


def _fewer_and_more(mind: Mind) -> Iterator[Step]:
    """An indexed Job shrinks while it runs, and grows again, its pods failing in between."""
    name, namespace = _fresh(mind), mind.namespace
    made = slow_job(mind.random, mind.ground, name, pods=4)
    made["spec"] |= {"completionMode": "Indexed", "backoffLimit": 100}
    yield from _started(mind, name, made)
    for number in (1, 4, 0, 4):
        yield patch(namespace, "jobs", name, {"spec": {"parallelism": number, "completions": number}})
        yield delete(namespace, "pods", f"@pod/{name}/0@", gracePeriodSeconds="30")


def _a_burst(mind: Mind) -> Iterator[Step]:
    for name in mind.names:
        made = drawn_job(mind.random, mind.ground, name)
        made["spec"]["template"]["metadata"]["annotations"][SHUTDOWN] = "1"
        yield create(mind.namespace, "jobs", made)
    mind.alive |= set(mind.names)
    yield Pause(mind.names[0], "runs", SECONDS)
    yield delete(mind.namespace, "pods", gracePeriodSeconds="0")
    yield delete(mind.namespace, "jobs", propagationPolicy=mind.random.choice(("Orphan", "Background")))
    mind.alive.clear()


def _workloads_by_hand(mind: Mind) -> Iterator[Step]:
    names = [f"wl-{mind.number()}" for _ in range(4)]
    for name in names:
        made = workload(mind.namespace, name, mind.random.choice(("1", "2", "4")))
        made["spec"]["queueName"] = mind.ground.own_queue
        yield create(mind.namespace, "workloads", made)
    yield patch(mind.namespace, "workloads", names[0], PAUSED)
    for name in names:
        yield delete(mind.namespace, "workloads", name)


def _evicted_by_the_api(mind: Mind) -> Iterator[Step]:
    name = _fresh(mind)
    yield from _started(mind, name)
    for index in range(3):
        pod = f"@pod/{name}/{index}@"
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
        yield create(mind.namespace, "pods", body, (pod, "eviction"))
    yield patch(mind.namespace, "jobs", name, {"spec": {"backoffLimit": 100}})


THEMES: Final[tuple[Callable[[Mind], Iterator[Step]], ...]] = (
    _orphans_under_a_workload_of_the_same_name,
    _made_again_while_its_pods_end,
    _paused_and_changed,
    _on_and_off,
    _to_another_queue,
    _more_at_the_moment_of_the_start,
    _pods_are_taken_from_their_job,
    _slow_ends_and_forced_ones,
    _finalizers_on_pods,
    _a_job_that_stays_while_it_is_deleted,
    _a_workload_that_stays_while_it_is_deleted,
    _managed_by_another_controller,
    _in_and_out_of_queues,
    _out_before_it_is_admitted,
    _a_manifest_that_takes_out_what_was_put_in,
    _preemption_while_its_victim_is_deleted,
    _fewer_and_more,
    _a_burst,
    _workloads_by_hand,
    _evicted_by_the_api,
)


def title(theme: Callable[[Mind], Iterator[Step]]) -> str:
    """A theme in words."""
    return theme.__name__.strip("_").replace("_", " ")
