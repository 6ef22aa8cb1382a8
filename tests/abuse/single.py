"""Single operations of tenants, drawn by chance from all that the role `edit` may ask for, and some more."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from tests.abuse.operations import (
    ANY,
    APPLY,
    JSON_PATCH,
    KEEP,
    MERGE,
    STRATEGIC,
    UPDATE,
    Operation,
    create,
    delete,
    merged,
    patch,
)
from tests.abuse.scene import Ground
from tests.abuse.shapes import (
    KUEUE,
    MANAGER,
    MARKS,
    NOTES,
    OWN_NOTES,
    QUEUE,
    drawn_job,
    drawn_pod,
    drawn_workload,
    job_owner,
    labels_of_queues,
)

Json = dict[str, Any]

NAMES: Final = 8
"""So many Jobs a tenant makes at a time: names come again and again."""
BY_HAND: Final = 4
"""So many pods, and so many Workloads, a tenant makes by hand at a time."""


@dataclass
class Mind:
    """What a tenant believes that there is, so that most operations find something.

    Attributes:
        random: of all that the tenant does.
        ground: the namespace.
        names: of its own Jobs.
        others: of the Jobs of others there.
        alive: its own Jobs that it has made and not deleted.
        made: how many pods and Workloads it has made by hand.
    """

    random: Random
    ground: Ground
    names: tuple[str, ...]
    others: tuple[str, ...]
    alive: set[str] = field(default_factory=set)
    made: int = 0

    @property
    def namespace(self) -> str:
        """The name of the namespace."""
        return self.ground.namespace

    def some_job(self) -> str:
        """The name of a Job that is probably there; at times one of another tenant."""
        if self.others and self.random.random() < 0.15:
            return self.random.choice(self.others)
        return self.random.choice(sorted(self.alive) or self.names)

    def new_name(self) -> str:
        """A name for a Job; mostly one that is free."""
        free = [name for name in self.names if name not in self.alive]
        name = self.random.choice(free if free and self.random.random() < 0.9 else self.names)
        self.alive.add(name)
        return name

    def number(self) -> int:
        """Of the next thing that is made by hand; numbers come again."""
        self.made += 1
        return self.made % BY_HAND


def deleting(mind: Mind) -> dict[str, str]:
    """In what way something is deleted."""
    ways: tuple[dict[str, str], ...] = (
        {"propagationPolicy": "Background"},
        {"propagationPolicy": "Background"},
        {"propagationPolicy": "Foreground"},
        {"propagationPolicy": "Orphan"},
        {"propagationPolicy": "Background", "gracePeriodSeconds": "0"},
        {"gracePeriodSeconds": "0"},
        {"gracePeriodSeconds": "3600"},
        {},
    )
    return mind.random.choice(ways)


def _create_job(mind: Mind) -> Operation:
    return create(mind.namespace, "jobs", drawn_job(mind.random, mind.ground, mind.new_name()))


def _delete_job(mind: Mind) -> Operation:
    name = mind.some_job()
    mind.alive.discard(name)
    return delete(mind.namespace, "jobs", name, **deleting(mind))


def _change_job(mind: Mind) -> Operation:
    random = mind.random
    change = random.choice(CHANGES)(mind)
    content = random.choice((MERGE, MERGE, STRATEGIC, UPDATE))
    return patch(mind.namespace, "jobs", mind.some_job(), change, content=content)


def _spec(mind: Mind) -> Json:
    changes: tuple[Json, ...] = (
        {"suspend": False},
        {"suspend": False},
        {"suspend": True},
        {"suspend": None},
        {"parallelism": mind.random.choice((0, 1, 3, 9, 1000))},
        {"completions": mind.random.choice((1, 2, 9, None))},
        {"parallelism": 4, "completions": 4},
        {"podReplacementPolicy": mind.random.choice(("TerminatingOrFailed", "Failed", None))},
        {"activeDeadlineSeconds": mind.random.choice((1, 1000, None))},
        {"ttlSecondsAfterFinished": 0},
        {"backoffLimit": mind.random.choice((0, 30))},
        {"managedBy": MANAGER},
        {"manualSelector": True},
        {"selector": {"matchLabels": {"app": "mine"}}},
    )
    return {"spec": mind.random.choice(changes)}


def _labels(mind: Mind) -> Json:
    wanted: Json = {QUEUE: None, KUEUE: None} | labels_of_queues(mind.random, mind.ground)
    return {"metadata": {"labels": wanted}}


def _labels_and_start(mind: Mind) -> Json:
    return merged(_labels(mind), {"spec": {"suspend": False, "parallelism": 5, "completions": 5}})


def _annotations(mind: Mind) -> Json:
    key = mind.random.choice(OWN_NOTES)
    return {"metadata": {"annotations": {key: mind.random.choice((None, "", "{}", "90m", "main"))}}}


def _owners(mind: Mind) -> Json:
    return {"metadata": {"ownerReferences": mind.random.choice((None, [job_owner(mind.some_job())]))}}


def _finalizers(mind: Mind) -> Json:
    return {"metadata": {"finalizers": mind.random.choice((None, None, [KEEP]))}}


def _template(mind: Mind) -> Json:
    random = mind.random
    requests = {"requests": {"cpu": random.choice(("1m", "1", "8", "0"))}}
    container = {"name": "main", "image": "work", "resources": requests}
    changes: tuple[Json, ...] = (
        {"spec": {"containers": [container]}},
        {"spec": {"nodeSelector": random.choice((None, {"instance-type": "spot"}))}},
        {"spec": {"tolerations": [{"operator": "Exists"}]}},
        {"spec": {"priorityClassName": random.choice(("abuse-high", "abuse-low", None))}},
        {"spec": {"schedulingGates": random.choice((None, [{"name": "example.com/gate"}]))}},
        {"metadata": {"labels": {random.choice(MARKS): random.choice((None, "forged", "abuse-a"))}}},
        {"metadata": {"annotations": {random.choice(NOTES): random.choice((None, "{}", "forged"))}}},
        {"metadata": {"labels": None, "annotations": None}},
    )
    return {"spec": {"template": random.choice(changes)}}


CHANGES: Final[tuple[Callable[[Mind], Json], ...]] = (
    _spec,
    _spec,
    _spec,
    _labels,
    _labels,
    _labels_and_start,
    _annotations,
    _owners,
    _finalizers,
    _template,
    _template,
)


def _json_patch(mind: Mind) -> Operation:
    changes: tuple[list[Json], ...] = (
        [{"op": "remove", "path": "/metadata/labels"}],
        [{"op": "replace", "path": "/spec/suspend", "value": False}],
        [{"op": "remove", "path": "/spec/template/spec/nodeSelector"}],
        [{"op": "remove", "path": "/spec/template/metadata/labels"}],
        [{"op": "remove", "path": "/metadata/annotations"}],
        [{"op": "add", "path": "/spec/parallelism", "value": 7}],
    )
    change = mind.random.choice(changes)
    return patch(mind.namespace, "jobs", mind.some_job(), change, content=JSON_PATCH)


def _apply(mind: Mind) -> Operation:
    name = mind.new_name()
    return patch(mind.namespace, "jobs", name, drawn_job(mind.random, mind.ground, name), content=APPLY)


def _a_pod(mind: Mind) -> str:
    of = mind.some_job() if mind.random.random() < 0.4 else ANY
    return f"@pod/{of}/{mind.random.randrange(20)}@"


def _change_pod(mind: Mind) -> Operation:
    random, other = mind.random, mind.some_job()
    changes: tuple[Json, ...] = (
        {"metadata": {"labels": {random.choice(MARKS): random.choice((None, "forged"))}}},
        {"metadata": {"annotations": {random.choice(NOTES): random.choice((None, "{}", "forged"))}}},
        {"metadata": {"labels": {"batch.kubernetes.io/controller-uid": f"@uid/{other}@"}}},
        {"metadata": {"labels": {"controller-uid": None, "batch.kubernetes.io/controller-uid": None}}},
        {"metadata": {"ownerReferences": random.choice((None, [job_owner(other)]))}},
        {"metadata": {"finalizers": random.choice((None, [KEEP]))}},
        {"metadata": {"annotations": {"touched": str(random.randrange(9))}}},
        {"metadata": {"annotations": {"admitter.dev/simulated-runtime": random.choice(("0", "30"))}}},
        {"spec": {"activeDeadlineSeconds": random.choice((1, 5))}},
        {"spec": {"tolerations": [{"operator": "Exists"}]}},
    )
    return patch(mind.namespace, "pods", _a_pod(mind), random.choice(changes))


def _delete_pod(mind: Mind) -> Operation:
    return delete(mind.namespace, "pods", _a_pod(mind), **deleting(mind))


def _part_of_pod(mind: Mind) -> Operation:
    name, random = _a_pod(mind), mind.random
    evicted = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    larger = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "4"}}}]}}
    bound = {"metadata": {"name": name}, "target": {"kind": "Node", "name": "abuse-on-demand-0"}}
    choices = (
        create(mind.namespace, "pods", evicted, (name, "eviction")),
        create(mind.namespace, "pods", evicted, (name, "eviction")),
        patch(mind.namespace, "pods", name, larger, part="resize", content=STRATEGIC),
        patch(mind.namespace, "pods", name, {"status": {"phase": "Succeeded"}}, part="status"),
        create(mind.namespace, "pods", bound, (name, "binding")),
    )
    return random.choice(choices)


def _create_pod(mind: Mind) -> Operation:
    made = drawn_pod(mind.random, mind.ground, mind.number(), mind.some_job())
    return create(mind.namespace, "pods", made)


def _a_workload(mind: Mind) -> str:
    by_hand = f"wl-{mind.random.randrange(BY_HAND)}"
    some = (by_hand, f"@workload/{mind.some_job()}@", f"@workload/{ANY}/{mind.random.randrange(20)}@")
    return mind.random.choices(some, (15, 35, 50))[0]


def _change_workload(mind: Mind) -> Operation:
    random, name = mind.random, _a_workload(mind)
    changes: tuple[Json, ...] = (
        {"spec": {"active": False}},
        {"spec": {"active": False}},
        {"spec": {"active": True}},
        {"spec": {"active": True}},
        {"spec": {"priority": 1000}},
        {"spec": {"queueName": "other"}},
        {"spec": {"podSets": [{"name": "main", "count": 1, "requests": {"cpu": "1m"}}]}},
        {"metadata": {"finalizers": random.choice((None, [KEEP]))}},
        {"metadata": {"labels": {"admitter.dev/job-uid": random.choice((None, "forged"))}}},
        {"metadata": {"ownerReferences": random.choice((None, [job_owner(mind.some_job())]))}},
        {"metadata": {"annotations": {"admitter.dev/returned": random.choice((None, "0", "9" * 9))}}},
    )
    content = random.choice((MERGE, UPDATE))
    return patch(mind.namespace, "workloads", name, random.choice(changes), content=content)


def _status_of_workload(mind: Mind) -> Operation:
    admission = {"clusterQueue": "abuse-a", "podSets": []}
    status = {"status": {"admission": mind.random.choice((None, admission))}}
    return patch(mind.namespace, "workloads", _a_workload(mind), status, part="status")


def _delete_workload(mind: Mind) -> Operation:
    return delete(mind.namespace, "workloads", _a_workload(mind), **deleting(mind))


def _create_workload(mind: Mind) -> Operation:
    name = f"wl-{mind.number()}" if mind.random.random() < 0.6 else f"@workload/{mind.some_job()}@"
    made = drawn_workload(mind.random, mind.ground, name)
    return create(mind.namespace, "workloads", made)


def _sweep(mind: Mind) -> Operation:
    kind = mind.random.choice(("pods", "jobs"))
    return delete(mind.namespace, kind, **deleting(mind))


def _cronjob(mind: Mind) -> Operation:
    random, name = mind.random, f"cron-{mind.random.randrange(2)}"
    if random.random() < 0.3:
        return delete(mind.namespace, "cronjobs", name, **deleting(mind))
    made = drawn_job(random, mind.ground, name)
    template = {"metadata": {"labels": made["metadata"]["labels"]}, "spec": made["spec"]}
    spec = {"schedule": "* * * * *", "concurrencyPolicy": "Replace", "jobTemplate": template}
    if random.random() < 0.4:
        return patch(mind.namespace, "cronjobs", name, {"spec": spec})
    body = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name}, "spec": spec}
    return create(mind.namespace, "cronjobs", body)


def _of_others(mind: Mind) -> Operation:
    """Quota, queues, statuses and rights: a user with `edit` may write none of them."""
    namespace, random = mind.namespace, mind.random
    weight = {"metadata": {"name": "mine"}, "spec": {"hard": {"admitter.dev/namespace.weight": "100"}}}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admitter-admin"}
    binding = {"metadata": {"name": "mine"}, "roleRef": role, "subjects": []}
    done = {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}
    choices = (
        patch(namespace, "localqueues", "main", {"spec": {"clusterQueue": "abuse-sound"}}),
        delete(namespace, "localqueues", "main"),
        patch(namespace, "elasticquotas", "quota", {"spec": {"min": {"cpu": "100"}}}),
        delete(namespace, "elasticquotas", "quota"),
        create(namespace, "resourcequotas", weight),
        create(namespace, "rolebindings", binding),
        patch(namespace, "jobs", mind.some_job(), done, part="status"),
        Operation("PATCH", f"/api/v1/namespaces/{namespace}", '{"metadata": {"labels": null}}', MERGE),
        Operation("DELETE", "/apis/admitter.dev/v1alpha1/clusterqueues/abuse-a"),
        create("sound", "jobs", drawn_job(random, mind.ground, "intruder")),
    )
    return random.choice(choices)


def _guard(mind: Mind) -> Operation:
    """A PodDisruptionBudget, which refuses evictions by the API."""
    if mind.random.random() < 0.5:
        return delete(mind.namespace, "poddisruptionbudgets", "mine")
    spec = {"minAvailable": 100, "selector": {}}
    body = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "mine"},
        "spec": spec,
    }
    return create(mind.namespace, "poddisruptionbudgets", body)


WEIGHTS: Final[tuple[tuple[int, Callable[[Mind], Operation]], ...]] = (
    (24, _create_job),
    (12, _delete_job),
    (16, _change_job),
    (4, _json_patch),
    (4, _apply),
    (6, _change_pod),
    (8, _delete_pod),
    (3, _part_of_pod),
    (3, _create_pod),
    (8, _change_workload),
    (2, _status_of_workload),
    (4, _delete_workload),
    (3, _create_workload),
    (1, _sweep),
    (2, _cronjob),
    (2, _of_others),
    (1, _guard),
)


def drawn(mind: Mind, weights: Collection[tuple[int, Callable[[Mind], Operation]]]) -> Operation:
    """One operation, of some with weights."""
    (chosen,) = mind.random.choices([made for _, made in weights], [weight for weight, _ in weights])
    return chosen(mind)
