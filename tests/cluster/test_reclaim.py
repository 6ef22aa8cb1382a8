"""Pods of work that runs end for good, and what they used is for others, at no moment more than there is."""

import json
from functools import partial

import pytest

from admitter.sandbox.cluster import Cluster, KubectlError
from tests.cluster.auditor import Auditor
from tests.cluster.controller import Controller
from tests.cluster.described import job_set
from tests.cluster.objects import Json, job
from tests.cluster.operated import KINDS
from tests.cluster.queued_pods import group_workload, phases, queued_pod
from tests.cluster.team import Team
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster


def end_pods(team: Team, pods: list[Json], count: int) -> None:
    """Some of the pods that run succeed."""
    running = [pod["metadata"]["name"] for pod in pods if pod["status"].get("phase") == "Running"]
    for name in running[:count]:
        body = json.dumps({"status": {"phase": "Succeeded"}})
        team.kubectl("patch", "pod", name, "--subresource=status", "--type=merge", f"--patch={body}")


def held(team: Team, name: str) -> dict[str, int]:
    """For how many pods of each pod set a Workload says that it still holds quota; empty if for all."""
    status = team.workload(name).get("status", {})
    return {each["name"]: each["count"] for each in status.get("held", ())}


def running(pods: list[Json]) -> int:
    return sum(pod["status"].get("phase") == "Running" for pod in pods)


def audited(team: Team, cpus: int) -> Auditor:
    return Auditor(team.cluster, team.namespace, {(team.flavor("on-demand"), "cpu"): float(cpus)})


def test_the_quota_of_ended_pods_starts_the_next_job_also_after_a_restart(team: Team) -> None:
    team.offers({"cpu": {"on-demand": "4"}})
    with audited(team, 4) as auditor:
        team.apply(job(team.namespace, "wide", pods=4, seconds=None))
        team.runs("wide", pods=4)
        team.apply(job(team.namespace, "next", pods=2, seconds=None))
        eventually(lambda: team.reason("next") == "InsufficientQuota", what="the next Job to wait")
        team.controller.kill()
        end_pods(team, team.pods("wide"), 2)
        team.runs("next", pods=2)
        assert held(team, "wide") == {"main": 2}
        assert team.read("job", "wide")["status"]["active"] == 2
        given_back = _written(team, "wide")
        assert all(pod["metadata"]["creationTimestamp"] >= given_back for pod in team.pods("next"))
        team.controller.kill()
        team.apply(job(team.namespace, "third", seconds=None))
        eventually(lambda: team.reason("third") == "InsufficientQuota", what="the third Job to wait")
        end_pods(team, team.pods("wide"), 1)
        team.runs("third")
        assert held(team, "wide") == {"main": 1}
        end_pods(team, team.pods("wide"), 1)
        eventually(lambda: team.state("wide") == "Finished", what="the first Job to finish")
    assert auditor.excesses == []
    assert auditor.most_pods == 4
    assert auditor.started[_name(team, "wide")] == 4, "none was made again"


def _name(team: Team, job_name: str) -> str:
    return f"{team.namespace}/{team.workload(job_name)['metadata']['name']}"


def _written(team: Team, name: str) -> str:
    """When the status of a Workload was written last, as the API server says."""
    command = ("get", "workload.admitter.dev", team.workload(name)["metadata"]["name"])
    fields = json.loads(team.kubectl(*command, "--show-managed-fields", "--output=json"))
    entries = fields["metadata"]["managedFields"]
    return max(str(each["time"]) for each in entries if each.get("subresource"))


def test_what_a_narrower_job_gives_back_it_does_not_get_again_by_an_edit(team: Team) -> None:
    team.offers({"cpu": {"on-demand": "4"}})
    with audited(team, 4) as auditor:
        team.apply(job(team.namespace, "wide", pods=4, seconds=None))
        team.runs("wide", pods=4)
        team.apply(job(team.namespace, "next", pods=2, seconds=None))
        eventually(lambda: team.reason("next") == "InsufficientQuota", what="the next Job to wait")
        team.patch("job", "wide", {"spec": {"parallelism": 2}})
        team.runs("next", pods=2)
        assert held(team, "wide") == {"main": 2}
        with pytest.raises(KubectlError, match="parallelism of an admitted Job can't grow"):
            team.patch("job", "wide", {"spec": {"parallelism": 4}})
        assert running(team.pods("wide")) == 2
    assert auditor.excesses == []
    assert auditor.most_pods == 4


def test_pods_of_a_group_that_have_succeeded_give_their_places_back(team: Team) -> None:
    team.offers({"cpu": {"on-demand": "2"}})
    with audited(team, 2) as auditor:
        for number in range(2):
            team.apply(queued_pod(team.namespace, f"tune-{number}", group="tune", size=2))
        eventually(lambda: phases(team, "tune") == ["Running"] * 2, what="the group to run")
        team.apply(job(team.namespace, "next", seconds=None))
        eventually(lambda: team.reason("next") == "InsufficientQuota", what="the Job to wait")
        team.controller.kill()
        end_pods(team, [team.read("pod", "tune-0")], 1)
        team.runs("next")
        assert group_workload(team, "tune")["status"]["state"] == "Admitted"
    assert auditor.most_pods == 2


@pytest.fixture
def described_team(described: Cluster, controller: Controller, namespace: str) -> Team:
    assert "jobset" in {kind.resource for kind in KINDS}
    return Team(described, namespace, controller)


def test_jobs_of_a_jobset_that_have_succeeded_give_their_quota_back(described_team: Team) -> None:
    team = described_team
    team.offers({"cpu": {"on-demand": "5"}})

    def pods(part: str) -> list[Json]:
        labels = f"jobset.sigs.k8s.io/jobset-name=train,jobset.sigs.k8s.io/replicatedjob-name={part}"
        return list(team.read("pods", f"--selector={labels}")["items"])

    with audited(team, 5) as auditor:
        eventually(partial(_taken, team, job_set(team.namespace, "train")), what="the JobSet to be taken")
        eventually(lambda: running(pods("driver") + pods("workers")) == 5, what="five pods of the JobSet")
        team.apply(job(team.namespace, "next", pods=2, seconds=None))
        eventually(lambda: team.reason("next") == "InsufficientQuota", what="the Job to wait")
        first = [pod for pod in pods("workers") if "workers-0" in pod["metadata"]["name"]]
        end_pods(team, first, 2)
        team.runs("next", pods=2)
        assert held(team, "train") == {"driver": 1, "workers": 2}
        team.controller.kill()
        team.apply(job(team.namespace, "third", pods=3, seconds=None))
        eventually(lambda: team.reason("third") == "InsufficientQuota", what="the third Job to wait")
        end_pods(team, pods("workers"), 2)
        end_pods(team, pods("driver"), 1)
        team.runs("third", pods=3)
    assert auditor.excesses == []
    assert auditor.most_pods == 5
    team.close()


def _taken(team: Team, manifest: Json) -> bool:
    team.apply(manifest)
    return True


def test_a_jobset_that_begins_anew_is_stopped_and_waits_for_all_of_its_pods(described_team: Team) -> None:
    team = described_team
    team.offers({"cpu": {"on-demand": "5"}})
    made = job_set(team.namespace, "train", failurePolicy={"maxRestarts": 3})
    made["spec"]["replicatedJobs"][0]["template"]["spec"]["backoffLimit"] = 0

    def pods(part: str) -> list[Json]:
        labels = f"jobset.sigs.k8s.io/jobset-name=train,jobset.sigs.k8s.io/replicatedjob-name={part}"
        return list(team.read("pods", f"--selector={labels}")["items"])

    with audited(team, 5) as auditor:
        eventually(partial(_taken, team, made), what="the JobSet to be taken")
        eventually(lambda: running(pods("driver") + pods("workers")) == 5, what="five pods of the JobSet")
        team.apply(job(team.namespace, "next", pods=2, seconds=None))
        eventually(lambda: team.reason("next") == "InsufficientQuota", what="the Job to wait")
        end_pods(team, [pod for pod in pods("workers") if "workers-0" in pod["metadata"]["name"]], 2)
        team.runs("next", pods=2)
        (driver,) = pods("driver")
        body = json.dumps({"status": {"phase": "Failed"}})
        name = driver["metadata"]["name"]
        team.kubectl("patch", "pod", name, "--subresource=status", "--type=merge", f"--patch={body}")
        eventually(lambda: team.state("train") == "Pending", what="the JobSet to wait")
        evicted = team.condition("train", "Evicted")
        assert evicted["reason"] == "JobChanged"
        assert "has given back all but 2 of 4" in evicted["message"]
        assert running(team.pods("next")) == 2
        team.kubectl("delete", "job", "next")
        eventually(lambda: running(pods("driver") + pods("workers")) == 5, what="all pods of the JobSet")
        assert held(team, "train") == {}
    assert auditor.excesses == []
    team.close()
