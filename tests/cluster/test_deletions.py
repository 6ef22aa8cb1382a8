"""What is in use is not deleted by mistake (manifests/22-deletion-policy.yaml)."""

from collections.abc import Iterator
from contextlib import suppress

import pytest

from admitter.sandbox.cluster import KubectlError
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
    words = (
        f"Cohort {cohort} is in use: 2 cpu of {flavor}, 2 waiting. Set spec.stopPolicy of the ClusterQueues"
    )
    assert words in refused(used, "cohort", cohort, words)


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
    words = f"ResourceFlavor {flavor} is in use: 1 waiting in ClusterQueue {queue}, which names it."
    assert words in refused(team, "resourceflavor", flavor, words)
    words = f"Cohort {cohort} is in use: 1 waiting. Set spec.stopPolicy of the ClusterQueues below it"
    assert words in refused(team, "cohort", cohort, words)
    team.kubectl("delete", "job", "waits")
    eventually(lambda: counts(team, "clusterqueue", queue) == (0, 0), what="the counts")
    eventually(lambda: not answer(team, "resourceflavor", flavor), what="the end of the flavor")
    eventually(lambda: not answer(team, "cohort", cohort), what="the end of the Cohort")


def test_a_cohort_above_others_counts_what_waits_and_runs_far_below(team: Team) -> None:
    top, queue = f"{team.namespace}-top", f"{team.namespace}-low"
    team.cohort("top")
    team.cohort("mid", "top")
    team.kubectl("annotate", "cohort.admitter.dev", top, f"{FORCE}-")
    team.shares(("low", "2"), cohort="mid")
    team.apply(*(job(team.namespace, name, pods=2, seconds=None, queue="low") for name in ("one", "two")))
    words = f"Cohort {top} is in use: 2 cpu of {team.flavor('on-demand')}, 1 waiting."
    assert words in refused(team, "cohort", top, words)
    team.patch("clusterqueue", queue, {"spec": {"stopPolicy": "Hold"}})
    words = f"Cohort {top} is in use: 2 cpu of {team.flavor('on-demand')}. "
    assert words in refused(team, "cohort", top, words), "what waits in a stopped queue counts"
    team.kubectl("delete", "job", "one", "two")
    eventually(lambda: counts(team, "clusterqueue", queue) == (0, 0), what="the counts")
    team.apply(job(team.namespace, "late", pods=2, seconds=None, queue="low"))
    eventually(lambda: not answer(team, "cohort", top), what="the end of the Cohort")


def test_the_annotation_forces_it(used: Team) -> None:
    cohort = f"{used.namespace}-all"
    refused(used, "cohort", cohort, "2 waiting")
    refused(used, "resourceflavor", used.flavor("on-demand"), "is in use")
    for kind, name in (
        ("resourceflavor", used.flavor("on-demand")),
        ("cohort", cohort),
        ("clusterqueue", used.cluster_queue),
        ("localqueue", "main"),
    ):
        used.kubectl("annotate", f"{kind}.admitter.dev", name, f"{FORCE}=true")
        used.kubectl("delete", f"{kind}.admitter.dev", name)
