"""Which PlacementPolicy governs a namespace, and which Jobs are its."""

from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import pytest

from admitter.api.conditions import ActiveReason
from admitter.controllers.namespace_views import parse_namespace
from admitter.controllers.placement_policies import PlacementPolicies
from admitter.controllers.views import JobView, at, parse_job, parse_object, timestamp
from admitter.controllers.world import World

Json = dict[str, Any]

BY_NAMESPACE = {"from": "Namespace"}


@dataclass
class Cluster:
    """Stores that are filled by hand, and what is said of the policies in them."""

    world: World = field(default_factory=World)
    serial: Any = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        self.policies = PlacementPolicies(self.world)

    def _metadata(self, name: str, created: float, **more: Any) -> Json:
        version = {"resourceVersion": str(next(self.serial)), "creationTimestamp": timestamp(at(created))}
        return {"name": name, "uid": name, "generation": 1, **version, **more}

    def namespace(self, name: str, **labels: str) -> None:
        self.world.namespaces.apply(parse_namespace({"metadata": self._metadata(name, 0, labels=labels)}))

    def policy(
        self, name: str, spec: Json, created: float = 0, status: Json | None = None, generation: int = 1
    ) -> None:
        metadata = self._metadata(name, created, generation=generation)
        view = parse_object({"metadata": metadata, "spec": spec, "status": status or {}})
        self.world.placement_policies.apply(view)
        self.policies.changed(name)

    def governing(self, namespace: str) -> str | None:
        found = self.policies.governing(namespace)
        return found.name if found is not None else None

    def places(self, created: float, **annotations: str) -> bool:
        policy = self.policies.governing("a")
        assert policy is not None
        return self.policies.places(policy, self.job(created, **annotations))

    def job(self, created: float, **annotations: str) -> JobView:
        given = {f"admitter.dev/{name}": text for name, text in annotations.items()}
        template: Json = {"spec": {"containers": []}}
        metadata = self._metadata("work", created, namespace="a", annotations=given)
        return parse_job({"metadata": metadata, "spec": {"template": template}})


def spec(**labels: str) -> Json:
    """A spec for namespaces with some labels."""
    return {"namespaceSelector": {"matchLabels": labels}, "rules": [BY_NAMESPACE]}


def test_the_first_policy_by_name_that_selects_a_namespace_governs_it() -> None:
    cluster = Cluster()
    cluster.namespace("a", team="x")
    cluster.namespace("b", team="y")
    cluster.policy("z-all", {"namespaceSelector": {}})
    cluster.policy("m-x", spec(team="x"))
    cluster.policy("a-nobody", {"rules": [BY_NAMESPACE]})
    assert (cluster.governing("a"), cluster.governing("b")) == ("m-x", "z-all")
    cluster.world.placement_policies.delete(("", "m-x"), "m-x")
    cluster.policies.changed("m-x")
    assert cluster.governing("a") == "z-all"


def test_an_invalid_policy_stays_what_it_was() -> None:
    cluster = Cluster()
    cluster.namespace("a", team="x")
    cluster.policy("p", spec(team="x"))
    wrong = {"namespaceSelector": {}, "rules": [{"from": "Label"}]}
    cluster.policy("p", wrong)
    assert cluster.governing("a") == "p"
    assert cluster.policies.problem("p") == (ActiveReason.INVALID_SPEC, "spec.rules[0]: label is missing")
    assert cluster.policies.readable
    cluster.policy("q", wrong)
    assert not cluster.policies.readable, "nobody knows whom q selects"
    cluster.policy("q", spec(team="y"))
    assert cluster.policies.readable


SINCE_100 = {"conditions": [{"type": "Active", "observedGeneration": 1}], "since": timestamp(at(100))}
STAMPED = {"user": "alice"}


@pytest.mark.parametrize(
    ("created", "annotations", "placed"),
    [
        pytest.param(50, {"placement": "p"}, True, id="marked, and older than the rules"),
        pytest.param(99, {}, False, id="there before"),
        pytest.param(99, STAMPED, False, id="there before, and its maker is known"),
        pytest.param(100, STAMPED, True, id="made before the API server took notice"),
        pytest.param(160, STAMPED, True, id="made before it must have taken notice"),
        pytest.param(161, STAMPED, False, id="passed by the API server, as its namespace was not selected"),
        pytest.param(9999, {}, True, id="made where the API server looks at none"),
    ],
)
def test_which_jobs_are_a_policys(created: float, annotations: dict[str, str], placed: bool) -> None:
    cluster = Cluster()
    cluster.namespace("a")
    cluster.policy("p", {"namespaceSelector": {}}, status=SINCE_100)
    assert cluster.places(created, **annotations) is placed


@pytest.mark.parametrize(("suspend", "placed"), [(True, True), (False, False)], ids=["waits", "runs"])
def test_a_job_whose_policy_has_ended_is_the_next_ones_unless_it_was_resumed(
    suspend: bool, placed: bool
) -> None:
    cluster = Cluster()
    cluster.namespace("a")
    cluster.policy("p", {"namespaceSelector": {}}, created=100)
    policy = cluster.policies.governing("a")
    assert policy is not None
    job = cluster.job(50, **{"placed-in": "", "user": "alice"})
    job = replace(job, spec=job.spec | {"suspend": suspend})
    assert cluster.policies.places(policy, job) is placed


def test_a_policy_is_what_it_is_since_the_api_server_took_it_and_not_since_its_status_was_written() -> None:
    fields = [
        {"manager": "kubectl", "time": timestamp(at(100))},
        {"manager": "editor", "time": timestamp(at(200))},
        {"manager": "admitter", "subresource": "status", "time": timestamp(at(300))},
    ]
    metadata = {"name": "p", "uid": "p", "resourceVersion": "1", "creationTimestamp": timestamp(at(50))}
    assert parse_object({"metadata": metadata}).changed == 50
    assert parse_object({"metadata": metadata | {"managedFields": fields}}).changed == 200


def test_a_new_policy_counts_from_its_creation_and_a_changed_one_once_its_time_is_written() -> None:
    cluster = Cluster()
    cluster.namespace("a")
    cluster.policy("p", {"namespaceSelector": {}}, created=70)
    assert [cluster.places(time) for time in (69, 70)] == [False, True]
    cluster.policy("p", {"namespaceSelector": {}}, created=70, status=SINCE_100, generation=2)
    assert cluster.places(200) is False
    assert cluster.places(200, placement="p") is True


def test_a_job_with_a_queue_is_nobodys() -> None:
    cluster = Cluster()
    cluster.namespace("a")
    cluster.policy("p", {"namespaceSelector": {}})
    policy = cluster.policies.governing("a")
    assert policy is not None
    template: Json = {"spec": {"containers": []}}
    labels = {"admitter.dev/queue-name": "main"}
    metadata = cluster._metadata("work", 10, namespace="a", labels=labels)
    assert not cluster.policies.places(
        policy, parse_job({"metadata": metadata, "spec": {"template": template}})
    )
