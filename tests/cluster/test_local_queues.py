"""LocalQueues that ClusterQueues ask for in the namespaces that they select, on a real API server."""

import pytest

from admitter.sandbox.cluster import Cluster, KubectlError
from tests.cluster.objects import Json, job, local_queue
from tests.cluster.team import Team
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster


def asks(team: Team, name: str = "main", queue: str = "queue", cpu: str = "1") -> str:
    """Make a ClusterQueue that asks for LocalQueues where the label `gpus` has the team's name."""
    rule = {"name": name, "namespaceSelector": {"matchLabels": {"gpus": team.namespace}}}
    full = team.offers({"cpu": {"on-demand": cpu}}, name=queue, localQueues=rule)
    if name == "main":
        team.kubectl("delete", "localqueue", "main")  # that of `offers`
        eventually(lambda: "main" not in leads(team), what="no LocalQueue")
    return full


def labelled(team: Team, value: str) -> None:
    team.kubectl("label", "namespace", team.namespace, f"gpus{value}", "--overwrite")


def leads(team: Team) -> dict[str, str]:
    """Where the LocalQueues of the team lead."""
    return {q["metadata"]["name"]: q["spec"]["clusterQueue"] for q in team.read("localqueues")["items"]}


def made_by(team: Team, name: str) -> Json:
    return dict(team.read("localqueue", name)["metadata"]["labels"])


def test_it_comes_with_the_label_of_its_namespace_and_goes_when_it_is_empty(
    team: Team, user: Cluster
) -> None:
    queue = asks(team)
    labelled(team, f"={team.namespace}")
    eventually(lambda: leads(team) == {"main": queue}, what="a LocalQueue")
    assert made_by(team, "main") == {
        "admitter.dev/generated-by": "cluster-queue",
        "admitter.dev/generated-for": team.namespace,
    }
    team.apply(job(team.namespace, "train", seconds=None))
    team.runs("train")
    eventually(
        lambda: team.read("localqueue", "main").get("status", {}).get("admittedWorkloads") == 1,
        what="a status that tells of it",
    )
    with pytest.raises(KubectlError, match="is in use: 1 admitted"):
        team.kubectl("delete", "localqueue", "main")
    for refused in (
        ("label", "namespace", team.namespace, "gpus=other", "--overwrite"),
        ("delete", "localqueue", "main", f"--namespace={team.namespace}"),
    ):
        with pytest.raises(KubectlError, match="forbidden"):
            user.run_kubectl(*refused)
    labelled(team, "-")
    team.apply(job(team.namespace, "late", seconds=None))
    eventually(lambda: team.state("late") == "Pending", what="a Job that waits behind it")
    assert leads(team) == {"main": queue}
    assert team.state("train") == "Admitted"
    team.kubectl("delete", "jobs", "train", "late")
    eventually(lambda: leads(team) == {}, what="no LocalQueue any more")


def test_one_of_that_name_that_was_made_otherwise_is_told_at_the_cluster_queue(team: Team) -> None:
    asks(team, "shared", queue="other")
    queue = asks(team, queue="queue")
    team.apply(local_queue(team.namespace, "elsewhere", "main"))
    labelled(team, f"={team.namespace}")
    words = f"spec.localQueues: LocalQueue {team.namespace}/main leads to another ClusterQueue"
    eventually(lambda: team.active("cq", queue).get("reason") == "LocalQueueTaken", what="a conflict")
    assert {k: team.active("cq", queue)[k] for k in ("status", "message")} == {
        "status": "True",
        "message": words,
    }
    assert leads(team)["main"] == "elsewhere"
    assert "labels" not in team.read("localqueue", "main")["metadata"]
    eventually(lambda: leads(team).get("shared") == f"{team.namespace}-other", what="that of the other rule")
    team.kubectl("delete", "localqueue", "main")
    eventually(lambda: leads(team).get("main") == queue, what="a LocalQueue by rule in its place")
    eventually(lambda: team.active("cq", queue).get("reason") == "Ready", what="no conflict any more")
    with pytest.raises(KubectlError, match="elastic-quota means the elastic quota of a namespace"):
        team.patch("cq", queue, {"spec": {"localQueues": {"name": "elastic-quota"}}})
