"""What is in use is not deleted by mistake (manifests/22-deletion-policy.yaml)."""

from collections.abc import Iterator
from contextlib import suppress

import pytest

from admitter.sandbox.cluster import KubectlError
from tests.cluster.elastic import Tenants
from tests.cluster.objects import job
from tests.cluster.team import Team
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

FORCE = "admitter.dev/delete-in-use"


@pytest.fixture
def used(team: Team) -> Iterator[Team]:
    """A team with quota that nothing marks as free to delete: one Job holds all of it, and two wait."""
    team.cohort("all")
    team.offers({"cpu": {"on-demand": "2"}}, cohort=f"{team.namespace}-all")
    for name in team.made:
        team.kubectl("annotate", name, f"{FORCE}-")
    team.kubectl("annotate", "localqueue/main", f"{FORCE}-")
    team.apply(*(job(team.namespace, name, pods=2, seconds=None) for name in ("runs", "waits", "too")))
    eventually(lambda: counts(team, "localqueue", "main") == (1, 2), what="the counts")
    yield team
    for name in team.made:
        with suppress(KubectlError):  # the test has deleted it
            team.kubectl("annotate", name, f"{FORCE}=true")


def counts(team: Team, kind: str, name: str) -> tuple[int, int]:
    """How many Workloads hold the quota of a queue, and how many wait, by its status."""
    status = team.read(kind, name).get("status", {})
    return status.get("admittedWorkloads", 0), status.get("pendingWorkloads", 0)


def refused(team: Team, kind: str, name: str, words: str) -> str:
    """Wait until the API server would refuse a deletion in these words, and be refused."""
    eventually(lambda: words in answer(team, kind, name, "--dry-run=server"), what=words)
    return answer(team, kind, name)


def answer(team: Team, kind: str, name: str, *options: str) -> str:
    """Why a deletion is refused; empty if it is not."""
    try:
        team.kubectl("delete", f"{kind}.admitter.dev", name, *options)
    except KubectlError as error:
        return str(error)
    return ""


def test_what_holds_quota_is_not_deleted_and_the_message_says_how_many_hold_it(used: Team) -> None:
    queue, flavor, cohort = used.cluster_queue, used.flavor("on-demand"), f"{used.namespace}-all"
    holds = "is in use: 1 admitted, 2 waiting. Set its spec.stopPolicy to HoldAndDrain"
    told = refused(used, "clusterqueue", queue, f"ClusterQueue {queue} {holds}")
    assert f"kubectl annotate clusterqueues.admitter.dev {queue} {FORCE}=true" in told
    told = refused(used, "localqueue", "main", f"LocalQueue main {holds}")
    assert f"localqueues.admitter.dev main --namespace={used.namespace} {FORCE}=true" in told
    words = f"ResourceFlavor {flavor} is in use: 2 cpu in ClusterQueue {queue}."
    assert words in refused(used, "resourceflavor", flavor, words)
    # By either rule: the API server tells of one of them.
    told = refused(used, "cohort", cohort, f"Cohort {cohort} is in use: 2")
    assert (
        f"Cohort {cohort} is in use: 2 cpu of {flavor}." in told
        or f"2 waiting in ClusterQueue {queue}" in told
    )


def test_a_stopped_queue_without_admitted_workloads_may_go_whatever_waits(used: Team) -> None:
    queue, flavor = used.cluster_queue, used.flavor("on-demand")
    used.patch("clusterqueue", queue, {"spec": {"stopPolicy": "Hold"}})
    assert "1 admitted, 0 waiting" in refused(used, "clusterqueue", queue, "1 admitted, 0 waiting")
    used.patch("clusterqueue", queue, {"spec": {"stopPolicy": "HoldAndDrain"}})
    eventually(lambda: counts(used, "clusterqueue", queue) == (0, 3), what="the drain")
    eventually(lambda: not unused(used, queue), what="what is in use")
    # A flavor and a Cohort may go when the API server's own copy of the ClusterQueue says so too.
    eventually(lambda: not answer(used, "resourceflavor", flavor), what="the end of the flavor")
    eventually(lambda: not answer(used, "cohort", f"{used.namespace}-all"), what="the end of the Cohort")
    used.kubectl("delete", "clusterqueue.admitter.dev", queue)


def unused(team: Team, queue: str) -> list[str]:
    """What of a queue is still in use, by its status and its Cohort's."""
    found = [team.read("clusterqueue", queue), team.read("cohort.admitter.dev", f"{team.namespace}-all")]
    return [
        str(resource["used"])
        for each in found
        for flavor in each.get("status", {}).get("flavors", [])
        for resource in flavor.get("resources", [])
        if str(resource["used"]) != "0"
    ]


def test_a_flavor_and_a_cohort_that_workloads_wait_for_are_not_deleted(team: Team) -> None:
    team.cohort("all")
    queue = team.offers({"cpu": {"on-demand": "0"}}, cohort=f"{team.namespace}-all")
    flavor, cohort = team.flavor("on-demand"), f"{team.namespace}-all"
    for name in (f"resourceflavor/{flavor}", f"cohort.admitter.dev/{cohort}"):
        team.kubectl("annotate", name, f"{FORCE}-")
    team.apply(job(team.namespace, "waits"))
    eventually(lambda: counts(team, "clusterqueue", queue) == (0, 1), what="the counts")
    waits = f"is in use: 1 waiting in ClusterQueue {queue}, which names it."
    for kind, name in (("ResourceFlavor", flavor), ("Cohort", cohort)):
        words = f"{kind} {name} {waits}"
        assert words in refused(team, kind.lower(), name, words)
    team.kubectl("delete", "job", "waits")
    eventually(lambda: counts(team, "clusterqueue", queue) == (0, 0), what="the counts")
    eventually(lambda: not answer(team, "resourceflavor", flavor), what="the end of the flavor")
    eventually(lambda: not answer(team, "cohort", cohort), what="the end of the Cohort")


def test_the_annotation_forces_it(used: Team) -> None:
    for kind, name in (("clusterqueue", used.cluster_queue), ("localqueue", "main")):
        used.kubectl("annotate", f"{kind}.admitter.dev", name, f"{FORCE}=true")
        used.kubectl("delete", f"{kind}.admitter.dev", name)


def test_an_elastic_quota_in_use_is_not_deleted_but_goes_with_its_namespace(tenants: Tenants) -> None:
    namespace = tenants.quota("a", min={"cpu": "1"})
    tenants.cluster.run_kubectl("annotate", "elasticquota", "quota", f"--namespace={namespace}", f"{FORCE}-")
    tenants.runs(namespace, "runs", {"cpu": "1"})

    def delete() -> str:
        done = ["delete", "elasticquotas.admitter.dev", "quota", f"--namespace={namespace}"]
        try:
            return tenants.cluster.run_kubectl(*done, "--dry-run=server")
        except KubectlError as error:
            return str(error)

    eventually(lambda: "1 admitted" in delete(), what="the refusal")
    tenants.cluster.run_kubectl("delete", "namespace", namespace, "--wait=false")
    gone = ["get", "namespace", namespace, "--ignore-not-found", "--output=name"]
    eventually(lambda: not tenants.cluster.run_kubectl(*gone).strip(), what="the end of the namespace")
