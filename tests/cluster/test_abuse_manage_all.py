"""Jobs that try to run uncounted where an elastic quota manages all Jobs of a namespace."""

import json
from collections.abc import Iterable

import pytest

from admitter.sandbox.cluster import Cluster
from tests.cluster.abuse import Attacker
from tests.cluster.objects import Json, elastic_quota, job, local_queue
from tests.cluster.team import Team
from tests.cluster.test_elastic_policies import queued
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

QUEUE, KUEUE_QUEUE = "admitter.dev/queue-name", "kueue.x-k8s.io/queue-name"
TIMES = 20
"""What is a matter of milliseconds shows itself when it is tried again and again."""
UNSUSPENDED = {"spec": {"suspend": False}}


def eager(namespace: str, name: str, **labels: str) -> Json:
    """A Job that would run at once, and asks for more than the quota ever has."""
    made = job(namespace, name, queue=None, suspend=False, seconds=None, requests={"cpu": "2"})
    made["metadata"]["labels"] = labels
    return made


def is_queued(made: Json, queue: str = "elastic-quota") -> bool:
    """Whether a Job waits in a queue."""
    return bool(made["metadata"]["labels"].get(QUEUE) == queue and made["spec"]["suspend"])


def never_ran(team: Team, names: Iterable[str]) -> None:
    """All of some Jobs wait, and no pod of them was ever made."""
    expected = dict.fromkeys(names, "NeverFits")
    eventually(
        lambda: (
            {n: w["status"].get("reason") for n, w in team.workloads().items() if "status" in w} == expected
        ),
        what="Jobs that wait",
    )
    assert team.read("pods")["items"] == []
    for made in team.read("jobs")["items"]:
        assert is_queued(made), made["metadata"]
        assert "startTime" not in made.get("status", {}), made["metadata"]["name"]


@pytest.fixture
def managing(team: Team, attacker: Attacker) -> Team:
    """A namespace with quota that manages all Jobs, as the API server knows."""
    team.apply(elastic_quota(team.namespace, min={"cpu": "1"}, max={"cpu": "1"}, manageAllJobs=True))
    eventually(lambda: team.active("elasticquota", "quota").get("status") == "True", what="a quota")
    eventually(lambda: queued(attacker.user, team.namespace), what="policy that knows the quota")
    return team


def test_the_label_of_kueue_is_no_way_around_the_quota(managing: Team, attacker: Attacker) -> None:
    names = [f"work-{number}" for number in range(TIMES)]
    for name in names:
        attacker.create(eager(managing.namespace, name, **{KUEUE_QUEUE: "nope"}))
        assert is_queued(attacker.job(name)), "from the beginning"
        attacker.patch("job", name, UNSUSPENDED)
    never_ran(managing, names)


@pytest.mark.parametrize("label", [None, ""], ids=["no label", "an empty label"])
def test_a_queue_that_is_taken_off_is_put_on_again(
    managing: Team, attacker: Attacker, label: str | None
) -> None:
    """First the label and then `suspend`, before the controller has looked, and both in one step."""
    names = [f"work-{number}" for number in range(TIMES)]
    off: Json = {"metadata": {"labels": {QUEUE: label, KUEUE_QUEUE: "nope"}}}
    for name in names:
        attacker.create(eager(managing.namespace, name, **({} if label is None else {QUEUE: label})))
        attacker.patch("job", name, off)
        attacker.patch("job", name, UNSUSPENDED)
        attacker.patch("job", name, off | UNSUSPENDED)
        assert is_queued(attacker.job(name))
    never_ran(managing, names)


def test_a_job_that_runs_does_not_stop_counting(managing: Team, attacker: Attacker) -> None:
    fits = eager(managing.namespace, "work")
    fits["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "1"}
    attacker.create(fits)
    managing.runs("work")
    for label in (None, ""):
        attacker.patch("job", "work", {"metadata": {"labels": {QUEUE: label}}})
    managing.runs("work")
    assert attacker.job("work")["metadata"]["labels"][QUEUE] == "elastic-quota"
    assert managing.state("work") == "Admitted"


def test_a_job_of_another_queue_that_drops_it_is_the_quotas(managing: Team, attacker: Attacker) -> None:
    managing.offers({"cpu": {"on-demand": "1"}})
    attacker.create(eager(managing.namespace, "work", **{QUEUE: "main"}))
    eventually(lambda: managing.reason("work") == "NeverFits", what="a reason to wait")
    attacker.patch("job", "work", {"metadata": {"labels": {QUEUE: None}}} | UNSUSPENDED)
    assert is_queued(attacker.job("work"))
    never_ran(managing, ["work"])


def test_the_label_of_kueue_leads_to_a_queue_that_there_is(managing: Team, attacker: Attacker) -> None:
    """Whichever of the policies the API server asks first."""
    managing.apply(local_queue(managing.namespace, "any", "iron"))
    alias = eager(managing.namespace, "work", **{KUEUE_QUEUE: "iron"})
    eventually(lambda: is_queued(tried(attacker.user, alias), "iron"), what="the queue")
    empty = eager(managing.namespace, "work", **{QUEUE: "", KUEUE_QUEUE: "iron"})
    for asked in (alias, empty):
        assert all(is_queued(tried(attacker.user, asked), "iron") for _ in range(TIMES))


def test_a_composite_quota_has_the_controller_take_such_jobs(team: Team, attacker: Attacker) -> None:
    """A moment later: policies see only a namespace's own quota."""
    team.apply(
        elastic_quota(
            team.namespace,
            namespaces=[team.namespace],
            min={"cpu": "1"},
            max={"cpu": "1"},
            manageAllJobs=True,
        )
    )
    eventually(lambda: team.active("ceq", "quota").get("status") == "True", what="a quota")
    attacker.create(
        eager(team.namespace, "empty", **{QUEUE: ""}), eager(team.namespace, "kueues", **{KUEUE_QUEUE: "no"})
    )
    eventually(lambda: all(is_queued(made) for made in team.read("jobs")["items"]), what="Jobs of the quota")
    eventually(lambda: team.reason("empty") == team.reason("kueues") == "NeverFits", what="reasons to wait")
    attacker.undone(lambda: not team.read("pods")["items"], "end of pods that were not admitted")
    attacker.patch("job", "empty", {"metadata": {"labels": {QUEUE: ""}}})
    attacker.undone(lambda: is_queued(attacker.job("empty")), "an emptied label")


def tried(cluster: Cluster, manifest: Json) -> Json:
    """What the API server would make of a Job."""
    command = ["create", "--dry-run=server", "-f-", "--output=json"]
    made: Json = json.loads(cluster.run_kubectl(*command, content=json.dumps(manifest)))
    return made
