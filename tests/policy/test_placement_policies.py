"""Which PlacementPolicy governs a namespace, and which Jobs are its."""

from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import pytest

from admitter.api.conditions import ActiveReason
from admitter.cache.namespace_views import parse_namespace
from admitter.cache.views import JobView, at, parse_job, parse_object, timestamp
from admitter.cache.world import World
from admitter.policy.placement_policies import PlacementClaim, PlacementPolicies

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

    def claim(self, job: JobView, labelled: float = 0) -> PlacementClaim:
        policy = self.policies.governing("a")
        assert policy is not None
        return self.policies.claim(policy, job, labelled)

    def job(self, created: float, labels: Json | None = None, **annotations: str) -> JobView:
        given = {f"admitter.dev/{name}": text for name, text in annotations.items()}
        template: Json = {"spec": {"containers": []}}
        metadata = self._metadata("work", created, namespace="a", annotations=given, labels=labels or {})
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
    assert not cluster.policies.readable, "it is unknown which namespaces q selects"
    cluster.policy("q", spec(team="y"))
    assert cluster.policies.readable


SINCE_100 = {"conditions": [{"type": "Active", "observedGeneration": 1}], "since": timestamp(at(100))}
STAMPED = {"user": "alice", "groups": "[]"}
LATE = 10**6


@pytest.mark.parametrize(
    ("created", "annotations", "labelled", "claim"),
    [
        pytest.param(50, {"placement": "p"}, 0, PlacementClaim.YES, id="marked, and older than the rules"),
        pytest.param(99, {}, 0, PlacementClaim.NO, id="there before"),
        pytest.param(100, {}, LATE, PlacementClaim.YES, id="made before the API server took notice"),
        pytest.param(160, {}, LATE, PlacementClaim.YES, id="made before it must have taken notice"),
        pytest.param(
            161, {}, LATE, PlacementClaim.UNLESS_PASSED, id="made before its namespace was labelled, or not"
        ),
        pytest.param(
            161, {}, 101, PlacementClaim.UNLESS_PASSED, id="made before it must have known of the label"
        ),
        pytest.param(
            162, {}, 101, PlacementClaim.YES, id="missed by an API server that could not read policies"
        ),
    ],
)
@pytest.mark.parametrize("stamp", [{}, STAMPED], ids=["its maker is unknown", "it names its maker"])
def test_which_jobs_are_a_policys_whatever_they_say_of_their_maker(
    created: float, annotations: dict[str, str], labelled: float, claim: PlacementClaim, stamp: dict[str, str]
) -> None:
    cluster = Cluster()
    cluster.namespace("a")
    cluster.policy("p", {"namespaceSelector": {}}, status=SINCE_100)
    assert cluster.claim(cluster.job(created, {}, **annotations, **stamp), labelled) is claim


@pytest.mark.parametrize(
    ("created", "annotations", "claim"),
    [
        pytest.param(99, {}, PlacementClaim.NO, id="there before"),
        pytest.param(LATE, {}, PlacementClaim.UNLESS_KUEUES, id="passed by the API server"),
        pytest.param(
            LATE, {"placement": "p"}, PlacementClaim.YES, id="marked when it had a queue of ours too"
        ),
    ],
)
def test_a_job_with_a_queue_of_kueue_is_placed_only_if_kueue_does_not_have_it(
    created: float, annotations: dict[str, str], claim: PlacementClaim
) -> None:
    cluster = Cluster()
    cluster.namespace("a")
    cluster.policy("p", {"namespaceSelector": {}}, status=SINCE_100)
    labels = {"kueue.x-k8s.io/queue-name": "main"}
    assert cluster.claim(cluster.job(created, labels, **annotations)) is claim


@pytest.mark.parametrize(
    ("suspend", "claim"), [(True, PlacementClaim.YES), (False, PlacementClaim.NO)], ids=["waits", "runs"]
)
def test_a_job_of_a_policy_that_has_ended_is_the_next_ones_unless_it_was_resumed(
    suspend: bool, claim: PlacementClaim
) -> None:
    cluster = Cluster()
    cluster.namespace("a")
    cluster.policy("p", {"namespaceSelector": {}}, created=100)
    job = cluster.job(50, {}, **{"placed-in": "", "user": "alice"})
    job = replace(job, spec=job.spec | {"suspend": suspend})
    assert cluster.claim(job) is claim


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
    assert [cluster.claim(cluster.job(time)) for time in (69, 70)] == [PlacementClaim.NO, PlacementClaim.YES]
    cluster.policy("p", {"namespaceSelector": {}}, created=70, status=SINCE_100, generation=2)
    assert cluster.claim(cluster.job(200)) is PlacementClaim.NO
    assert cluster.claim(cluster.job(200, placement="p")) is PlacementClaim.YES


def test_a_job_with_a_queue_is_nobodys() -> None:
    cluster = Cluster()
    cluster.namespace("a")
    cluster.policy("p", {"namespaceSelector": {}})
    assert cluster.claim(cluster.job(10, {"admitter.dev/queue-name": "main"})) is PlacementClaim.NO
