"""Jobs that name no queue find theirs by the rules of a PlacementPolicy."""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest

from admitter.sandbox.cluster import Cluster, KubectlError
from tests.cluster.definitions import delete_definitions
from tests.cluster.objects import ADMITTER, Json, elastic_quota, job, local_queue
from tests.cluster.people import JOBS, Person
from tests.cluster.team import Team
from tests.cluster.waiting import eventually, later_than

pytestmark = pytest.mark.cluster

QUEUE, PLACEMENT = "admitter.dev/queue-name", "admitter.dev/placement"
KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
KUEUE: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "topologies.kueue.x-k8s.io"},
    "spec": {
        "group": "kueue.x-k8s.io",
        "names": {"kind": "Topology", "plural": "topologies"},
        "scope": "Cluster",
        "versions": [
            {
                "name": "v1beta1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }
        ],
    },
}
"""One of the definitions that come with Kueue."""


@dataclass
class Placing:
    """A namespace, and a PlacementPolicy of the same name for it.

    Attributes:
        team: the namespace.
        person: a user that makes Jobs there and may submit to any queue.
    """

    team: Team
    person: Person

    @property
    def name(self) -> str:
        """Of the namespace, and what the names of all queues and Cohorts of the test start with."""
        return self.team.namespace

    def manifest(self, *rules: Json, namespace: str | None = None) -> Json:
        """The policy, for its own namespace or for another one."""
        selector = {"matchLabels": {"team": namespace or self.name}}
        return {
            "apiVersion": ADMITTER,
            "kind": "PlacementPolicy",
            "metadata": {"name": self.name},
            "spec": {"namespaceSelector": selector, "rules": list(rules)},
        }

    def policy(self, *rules: Json, namespace: str | None = None) -> None:
        """Make the policy, or change it, and wait until the API server acts on it."""
        self.team.apply(self.manifest(*rules, namespace=namespace))
        eventually(lambda: self.marks() == (namespace is None), what="API server that knows the policy")

    def marks(self) -> bool:
        """Whether the API server suspends a Job that names no queue."""
        tried = self.person.makes(self.plain("tried"), "--dry-run=server")
        return bool(PLACEMENT in tried["metadata"].get("annotations", {}) and tried["spec"]["suspend"])

    def plain(self, name: str = "work", **labels: str) -> Json:
        """A Job that names no queue and is not suspended."""
        made = job(self.name, name, queue=None, suspend=False)
        made["metadata"]["labels"] = labels
        return made

    def queue(self, name: str = "work") -> str | None:
        """The queue of a Job."""
        labels: dict[str, str] = self.team.read("job", name)["metadata"].get("labels", {})
        return labels.get(QUEUE)

    def placed(self, queue: str, name: str = "work") -> None:
        """Wait until a Job has a queue."""
        eventually(lambda: self.queue(name) == queue, what=f"{name} in {queue}")

    def told(self, reason: str, words: str, name: str = "work") -> None:
        """Wait until an event on a Job says why it has no queue; it is suspended."""
        eventually(lambda: words in self.team.events(name).get(reason, ""), what=f"event {reason}: {words}")
        assert self.team.read("job", name)["spec"]["suspend"] is True
        assert self.queue(name) is None

    def finished(self, name: str = "work") -> None:
        """Wait until a Job is done."""
        done = "jsonpath={.status.succeeded}"
        eventually(lambda: self.team.kubectl("get", "job", name, f"-o={done}") == "1", what=f"end of {name}")

    def limits(self, queue: str) -> Json | None:
        """What a ClusterQueue limits; None if there is no such queue, or no limit."""
        found = self.team.read("clusterqueues", f"--field-selector=metadata.name={queue}")["items"]
        return found[0]["spec"].get("limits") if found else None

    def names(self, kind: str) -> set[str]:
        """What there is of a kind that the test has made."""
        items = self.team.cluster.read(kind)["items"]
        return {i["metadata"]["name"] for i in items if i["metadata"]["name"].startswith(self.name)}


@pytest.fixture
def placing(team: Team) -> Iterator[Placing]:
    """A namespace in which a user makes Jobs."""
    person = Person(team.cluster, team.namespace, f"{team.namespace}-bob").may(JOBS).submits_to()
    yield Placing(team, person)
    for kind in ("clusterqueues", "cohorts"):
        for name in Placing(team, person).names(kind):
            with suppress(KubectlError):  # the controller may have deleted it
                team.kubectl("annotate", kind, name, "admitter.dev/delete-in-use=true")
            team.cluster.run_kubectl("delete", kind, name, "--wait=false", "--ignore-not-found")


def annotate(placing: Placing, parent: str) -> None:
    """Say to which Cohort the namespace's queue belongs."""
    text = f"yunikorn.apache.org/parentqueue={parent}"
    placing.team.cluster.run_kubectl("annotate", "namespace", placing.name, text, "--overwrite")


def test_a_namespace_gets_its_queue_with_its_first_job(placing: Placing) -> None:
    placing.policy({"from": "Namespace", "create": True})
    assert placing.names("clusterqueues") == set()
    placing.person.makes(placing.plain())
    placing.placed(placing.name)
    placing.finished()
    queue = placing.team.read("clusterqueue", placing.name)
    assert queue["spec"]["cohort"] == "root"
    assert queue["metadata"]["labels"]["admitter.dev/generated-for"] == placing.name
    (owner,) = queue["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("Namespace", placing.name)
    assert placing.team.read("localqueue", placing.name)["spec"]["clusterQueue"] == placing.name


def test_finance_goes_to_production_and_waits_as_long_as_its_parent_does_not_exist(placing: Placing) -> None:
    production, research = (f"{placing.name}-{name}" for name in ("production", "research"))
    placing.team.apply({"apiVersion": ADMITTER, "kind": "Cohort", "metadata": {"name": production}})
    placing.policy({"from": "Namespace", "create": True})
    annotate(placing, f"root.{research}")
    placing.person.makes(placing.plain())
    words = f"Cohort {research} does not exist"
    eventually(lambda: words in str(placing.team.workload("work").get("status")), what=words)
    annotate(placing, f"root.{production}")
    placing.finished()
    assert placing.team.read("clusterqueue", placing.name)["spec"]["cohort"] == production


def test_a_user_has_a_queue_of_its_own_that_goes_with_the_policy(placing: Placing) -> None:
    placing.policy(
        {"from": "User", "create": True, "createParent": True, "parent": f"root.{placing.name}-users"}
    )
    placing.person.makes(placing.plain())
    placing.placed(placing.person.name)
    placing.finished()
    queue = placing.team.read("clusterqueue", placing.person.name)
    assert queue["spec"]["cohort"] == f"{placing.name}-users"
    assert queue["metadata"]["ownerReferences"][0]["kind"] == "PlacementPolicy"
    assert placing.team.read("cohort", f"{placing.name}-users")["spec"]["parent"] == "root"
    placing.team.kubectl("delete", "placementpolicy", placing.name)
    eventually(lambda: not placing.names("clusterqueues"), what="end of the user's queue")


def test_labels_and_fixed_queues(placing: Placing) -> None:
    placing.team.offers({"cpu": {"on-demand": "4"}})
    rest = placing.team.cluster_queue
    placing.policy({"from": "Label", "label": "wants"}, {"from": "Queue", "queue": rest})
    gold = placing.team.offers({"cpu": {"on-demand": "4"}}, name="gold", flavors=False)
    eventually(lambda: placing.team.active("cq", gold), what="a controller that knows the queue")
    placing.person.makes(placing.plain("rich", wants=f"root.{gold}"))
    placing.person.makes(placing.plain("poor", wants="nothing"))
    placing.placed(gold, "rich")
    placing.placed("main", "poor")
    assert placing.team.read("localqueue", gold)["spec"]["clusterQueue"] == gold
    placing.finished("rich")
    placing.finished("poor")


def test_a_job_without_a_queue_waits_until_there_is_one(placing: Placing) -> None:
    gold = f"{placing.name}-queue"
    placing.policy({"from": "Queue", "queue": gold})
    placing.person.makes(placing.plain())
    words = f"rule 1 (from Queue): there is no ClusterQueue {gold}"
    placing.told("NotPlaced", f"PlacementPolicy {placing.name} finds no queue for it: {words}")
    resumed = placing.person.patches("job", "work", {"spec": {"suspend": False}})
    assert resumed["spec"]["suspend"] is True
    placing.team.apply(local_queue(placing.name, gold))  # first: else one may be made for it
    eventually(lambda: placing.team.active("lq", "main"), what="a controller that knows the LocalQueue")
    placing.team.offers({"cpu": {"on-demand": "1"}})
    placing.placed("main")
    placing.finished()


def test_better_rules_place_the_jobs_that_wait(placing: Placing) -> None:
    placing.policy({"from": "Label", "label": "wants"})
    placing.person.makes(placing.plain())
    placing.told("NotPlaced", "neither the Job nor its pods have the label wants")
    placing.policy({"from": "Label", "label": "wants"}, {"from": "Namespace", "create": True})
    placing.finished()


def test_a_job_does_not_get_out_by_dropping_its_label(placing: Placing) -> None:
    placing.policy({"from": "Namespace", "create": True})
    made = placing.person.makes(placing.plain(**{QUEUE: "nowhere"}))
    assert made["spec"]["suspend"] is True
    free = {"metadata": {"labels": {QUEUE: None}}}
    placing.person.patches("job", "work", free)
    placing.placed(placing.name)
    placing.finished()


def test_jobs_made_together_with_their_policy_are_placed_too(placing: Placing) -> None:
    nowhere, together = {"from": "Queue", "queue": "nowhere"}, placing.plain("together")
    together["spec"]["template"]["metadata"]["annotations"] = {}
    placing.team.apply(placing.manifest(nowhere), together)
    placing.told("NotPlaced", "there is no ClusterQueue nowhere", "together")
    eventually(lambda: not placing.team.pods("together"), what="end of pods that had started")
    placing.team.apply(placing.manifest(nowhere, {"from": "Namespace", "create": True}))
    placing.placed(placing.name, "together")
    placing.team.runs("together")


def test_jobs_from_before_are_left_alone(placing: Placing) -> None:
    long = placing.plain("old")
    long["spec"]["template"]["metadata"]["annotations"] = {}
    placing.person.makes(long)
    placing.person.makes(placing.plain("paused") | {"spec": placing.plain()["spec"] | {"suspend": True}})
    placing.team.runs("old")
    later_than(placing.team.cluster, placing.team.read("job", "paused")["metadata"]["creationTimestamp"])
    placing.policy({"from": "Namespace", "create": True})
    placing.person.makes(placing.plain())
    placing.finished()
    placing.team.runs("old")
    for name, suspended in (("old", False), ("paused", True)):
        assert placing.queue(name) is None
        assert placing.team.read("job", name)["spec"]["suspend"] is suspended
    placing.person.patches("job", "paused", {"spec": {"suspend": False}})
    placing.finished("paused")


def test_other_namespaces_are_nobodys_business(placing: Placing) -> None:
    placing.policy({"from": "Namespace", "create": True}, namespace="another")
    placing.person.makes(placing.plain())
    placing.finished()
    assert placing.queue() is None
    assert placing.names("clusterqueues") == set()


def test_a_job_that_no_policy_places_any_more_is_its_users(placing: Placing) -> None:
    placing.policy({"from": "Queue", "queue": "nowhere"})
    placing.person.makes(placing.plain())
    placing.told("NotPlaced", "there is no ClusterQueue nowhere")
    placing.team.kubectl("delete", "placementpolicy", placing.name)
    placing.told("PlacementEnded", "resume it yourself, or give it a queue")
    eventually(
        lambda: not placing.person.patches("job", "work", {"spec": {"suspend": False}})["spec"]["suspend"],
        what="a Job that its user resumes",
    )
    placing.finished()


def test_a_new_policy_has_the_jobs_that_the_old_one_had_not_placed(placing: Placing) -> None:
    placing.policy({"from": "Queue", "queue": "nowhere"})
    placing.person.makes(placing.plain())
    placing.told("NotPlaced", "there is no ClusterQueue nowhere")
    placing.team.kubectl("delete", "placementpolicy", placing.name)
    placing.told("PlacementEnded", "resume it yourself, or give it a queue")
    placing.team.apply(placing.manifest({"from": "Namespace", "create": True}))
    placing.placed(placing.name)
    placing.finished()


def test_the_end_of_a_policy_is_told_again_by_the_next_leader(placing: Placing) -> None:
    placing.policy({"from": "Queue", "queue": "nowhere"})
    placing.person.makes(placing.plain())
    placing.team.kubectl("delete", "placementpolicy", placing.name)
    words = "resume it yourself, or give it a queue"
    placing.told("PlacementEnded", words)
    # As if the leader had died between the write to the Job and that of the event.
    placing.team.kubectl("delete", "events", "--field-selector=reason=PlacementEnded")
    placing.team.controller.restart()
    placing.told("PlacementEnded", words)


def test_a_job_is_placed_again_when_its_queue_goes(placing: Placing) -> None:
    placing.policy({"from": "Namespace", "create": True})
    quota = "admitter.dev/namespace.quota"
    annotation = ("annotate", "namespace", placing.name)
    placing.team.cluster.run_kubectl(*annotation, f'{quota}={{"cpu": "100m"}}')
    eventually(lambda: placing.names("clusterqueues") == {placing.name}, what="queue of the namespace")
    waits = placing.plain()
    waits["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    placing.person.makes(waits)
    placing.placed(placing.name)
    eventually(lambda: placing.team.reason("work") != "", what="that it waits")
    placing.team.cluster.run_kubectl(*annotation, f"{quota}-")
    placing.finished()


def test_a_job_is_placed_by_the_next_policy_when_its_queue_goes_with_its_own(placing: Placing) -> None:
    stopped = f"{placing.name}-made"
    placing.policy({"from": "Queue", "queue": stopped, "create": True})
    placing.person.makes(placing.plain("first"))
    placing.finished("first")
    placing.team.patch("clusterqueue", stopped, {"spec": {"stopPolicy": "Hold"}})
    eventually(lambda: placing.team.active("cq", stopped).get("reason") == "Stopped", what="a stop")
    placing.person.makes(placing.plain())
    placing.placed(stopped)
    placing.person.makes(placing.plain("named", **{QUEUE: "nowhere"}))
    # A controller that sees the end of the queue before that of the policy makes it anew, and not stopped.
    keep = {"metadata": {"finalizers": ["example.com/keep"]}}
    placing.team.patch("clusterqueue", stopped, keep)
    Person(placing.team.cluster, placing.name, "eve").may(JOBS).makes(placing.plain("denied"))
    placing.told("SubmitDenied", "user eve may not submit to queue", "denied")
    placing.team.kubectl("delete", "placementpolicy", placing.name)
    placing.told("PlacementEnded", "resume it yourself, or give it a queue", "denied")
    placing.team.patch("clusterqueue", stopped, {"metadata": {"finalizers": None}})
    eventually(lambda: placing.team.reason("work") == "ClusterQueueNotFound", what="end of the queue")
    placing.team.apply(placing.manifest({"from": "Namespace", "create": True}))
    placing.placed(placing.name)
    placing.finished()
    assert placing.queue("named") == "nowhere", "what its user has chosen stays"


def test_no_user_takes_the_queue_of_a_namespace(placing: Placing) -> None:
    other, quota = f"{placing.name}-other", "admitter.dev/namespace.quota"
    placing.policy({"from": "Label", "label": "wants", "create": True})
    placing.person.makes(placing.plain("early", wants=other))
    placing.placed(other, "early")
    placing.team.cluster.run_kubectl("create", "namespace", other)
    try:
        placing.person.makes(placing.plain("late", wants=placing.name))
        words = f"the name {placing.name} is kept for the ClusterQueue of namespace {placing.name}"
        placing.told("NotPlaced", words, "late")
        placing.team.cluster.run_kubectl("annotate", "namespace", other, f'{quota}={{"cpu": "4"}}')
        eventually(
            lambda: placing.limits(other) == {"cpu": "4"},
            what="the quota of the namespace",
        )
        metadata = placing.team.read("clusterqueue", other)["metadata"]
        assert [owner["kind"] for owner in metadata["ownerReferences"]] == ["Namespace"]
    finally:
        placing.team.cluster.run_kubectl("delete", "namespace", other, "--wait=false")


def test_no_label_leads_to_the_queue_of_a_user(placing: Placing) -> None:
    placing.policy({"from": "Label", "label": "wants"}, {"from": "User", "create": True})
    placing.person.makes(placing.plain())
    placing.placed(placing.person.name)
    eve = Person(placing.team.cluster, placing.name, f"{placing.name}-eve").may(JOBS).submits_to()
    eve.makes(placing.plain("hers", wants=placing.person.name))
    placing.placed(eve.name, "hers")


def test_a_restart_says_nothing_again(placing: Placing) -> None:
    placing.policy({"from": "Queue", "queue": "nowhere"})
    placing.person.makes(placing.plain())
    placing.told("NotPlaced", "there is no ClusterQueue nowhere")
    placing.team.controller.restart()
    placing.person.makes(placing.plain("later"))
    placing.told("NotPlaced", "there is no ClusterQueue nowhere", "later")
    found = placing.team.read("events", "--field-selector=involvedObject.name=work")["items"]
    assert [event["reason"] for event in found if event["reason"] == "NotPlaced"] == ["NotPlaced"]


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"from": "Label"}, "label is needed with from Label, and means nothing without"),
        ({"from": "User", "label": "x"}, "label is needed with from Label, and means nothing without"),
        ({"from": "Queue"}, "queue is needed with from Queue, and means nothing without"),
        ({"from": "Namespace", "parent": "a..b"}, "spec.rules[0].parent"),
        ({"from": "Weather"}, "spec.rules[0].from"),
    ],
    ids=["no label", "a label for nothing", "no queue", "no name", "no source"],
)
def test_a_rule_that_means_nothing_is_refused(installed: Cluster, rule: Json, words: str) -> None:
    spec = {"namespaceSelector": {}, "rules": [rule]}
    metadata = {"name": "tried"}
    policy = {"apiVersion": ADMITTER, "kind": "PlacementPolicy", "metadata": metadata, "spec": spec}
    with pytest.raises(KubectlError) as caught:
        installed.run_kubectl("create", "--dry-run=server", "-f-", content=json.dumps(policy))
    assert words in str(caught.value)


@pytest.mark.timeout(600)
def test_a_job_of_a_user_that_may_not_submit_waits_until_the_user_may(placing: Placing) -> None:
    placing.policy({"from": "Namespace", "create": True})
    eve = Person(placing.team.cluster, placing.name, "eve@example.com").may(JOBS)
    eve.makes(placing.plain())
    words = f"user eve@example.com may not submit to queue {placing.name} in namespace {placing.name}"
    placing.told("SubmitDenied", words)
    assert placing.names("clusterqueues") == set(), "nothing is made for a user that may not use it"
    with pytest.raises(KubectlError, match="may not submit to queue"):
        eve.patches("job", "work", {"metadata": {"labels": {QUEUE: placing.name}}})
    placing.person.makes(placing.plain("other"))
    placing.finished("other")
    assert placing.queue() is None
    eve.submits_to(placing.name)
    placing.team.apply(
        {"apiVersion": ADMITTER, "kind": "Cohort", "metadata": {"name": f"{placing.name}-new"}}
    )
    eventually(lambda: placing.queue() == placing.name, timeout=120, what="a Job that may submit by now")


def test_an_elastic_quota_that_manages_all_comes_first(placing: Placing) -> None:
    placing.policy({"from": "Namespace", "create": True})
    placing.team.apply(elastic_quota(placing.name, manageAllJobs=True))

    def queue() -> Any:
        tried = placing.person.makes(placing.plain("tried"), "--dry-run=server")
        return tried["metadata"].get("labels", {}).get(QUEUE)

    eventually(lambda: queue() == "elastic-quota", what="policy that knows the quota")
    placing.person.makes(placing.plain())
    assert placing.queue() == "elastic-quota"
    placing.finished()


@pytest.mark.timeout(600)
def test_jobs_of_a_cron_job_are_placed_as_their_maker(installed: Cluster, placing: Placing) -> None:
    placing.policy({"from": "User", "create": True})
    spec = placing.plain()["spec"]
    cron_job = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "minutely", "namespace": placing.name},
        "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": spec}},
    }
    placing.person.makes(cron_job)

    def queues() -> list[str | None]:
        jobs = installed.read("jobs", f"--namespace={placing.name}")["items"]
        return [j["metadata"].get("labels", {}).get(QUEUE) for j in jobs]

    eventually(lambda: placing.person.name in queues(), timeout=200, what="a placed Job of the CronJob")


@pytest.mark.timeout(600)
def test_jobs_of_kueue_are_left_to_it_as_long_as_it_is_there(installed: Cluster, placing: Placing) -> None:
    placing.policy({"from": "Namespace", "create": True})
    numbers = count(1)

    def queue_of_another() -> str | None:
        name = f"kueues-{next(numbers)}"
        made = placing.person.makes(placing.plain(name, **{KUEUE_QUEUE: "main"}))
        assert PLACEMENT not in made["metadata"]["annotations"]
        assert made["spec"].get("suspend", False) is False
        placing.finished(name)
        return placing.queue(name)

    # One that has finished before its queue is made is not given it: so more than one is tried.
    eventually(lambda: queue_of_another() == placing.name, what="a Job that no other policy holds")
    installed.run_kubectl("create", "-f-", content=json.dumps(KUEUE))
    try:
        eventually(lambda: queue_of_another() is None, what="a Job that is left to Kueue")
        assert [queue_of_another() for _ in range(3)] == [None] * 3, "none of them by chance"
        placing.person.makes(placing.plain())
        placing.placed(placing.name)
    finally:
        delete_definitions(installed, KUEUE["metadata"]["name"])
    eventually(lambda: queue_of_another() == placing.name, what="a Job that Kueue does not hold any more")
