"""What users learn that may read one namespace alone, on an API server in memory."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from admitter.cache.world import OWN
from admitter.cli import looking
from admitter.cli.complaints import CommandError
from admitter.client.errors import api_error
from tests.apiserver.experiments import JOB_KINDS
from tests.apiserver.server import Json, place
from tests.cli.test_stops import COUNTS, Desk
from tests.cluster.pods import group_pod, pod
from tests.kinds.described import experiment, trial
from tests.simulate.elastic import asks

CPU = {"name": "cpu", "quota": "4", "max": "4", "used": "1", "borrowed": "0", "free": "3"}
TOLD = {**COUNTS, "line": [], "flavors": [{"name": "any", "resources": [CPU]}]}


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    """The desk of a user without rights in the whole cluster."""
    made = Desk()
    get = made.server.get

    async def restricted(path: str, query: Mapping[str, str] | None = None) -> Json:
        if not place(path).namespace:
            raise api_error(403, {"reason": "Forbidden"})
        return await get(path, query)

    monkeypatch.setattr(made.server, "get", restricted)
    monkeypatch.setattr(looking, "ask_beside", made.ask)
    monkeypatch.setattr(looking, "ask", lambda *given: made.ask(*given)[0])
    return made


def test_a_job_is_explained_and_not_a_workload_of_its_name(desk: Desk) -> None:
    pod_sets = [{"name": "main", "count": 1}]
    by_hand = f"{OWN}/namespaces/blue/workloads/train-7"
    desk.make(by_hand, spec={"queueName": "main", "podSets": pod_sets}, status={})
    for name, found in (("job/train-7", "job-train-7"), ("wl/train-7", "train-7"), ("train-7", "train-7")):
        answer = json.loads("".join(desk.say("explain", name, "-o", "json")))
        assert answer["workload"] == found
    with pytest.raises(CommandError, match="there is no Workload of a Job job-train-7 in namespace blue"):
        desk.say("explain", "job/job-train-7")


def tried(desk: Desk, folder: Path, *manifests: Json) -> str:
    """What what-if says of manifests, as JSON."""
    path = folder / "more.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}))
    return "".join(desk.say("what-if", "-f", str(path), "-o", "json", "--estimate-for", "0s", within=()))


def test_a_job_for_a_queue_on_hold_is_not_said_to_be_admitted(desk: Desk, tmp_path: Path) -> None:
    more = asks("blue", "more", {"cpu": 1}, queue="main")
    desk.tell(desk.local, clusterQueue=TOLD)
    (admitted,) = json.loads(tried(desk, tmp_path, more))["workloads"]
    assert (admitted["name"], admitted["effect"]) == ("more", "admitted")
    words = "ClusterQueue gpus is stopped"
    inactive = {"type": "Active", "status": "False", "reason": "ClusterQueueInactive", "message": words}
    desk.tell(desk.local, conditions=[inactive | {"lastTransitionTime": "2026-01-01T00:00:00Z"}])
    (blocked,) = json.loads(tried(desk, tmp_path, more))["workloads"]
    assert (blocked["effect"], blocked["message"]) == ("may not compete", words)


def test_pods_and_groups_are_tried_as_jobs_are(desk: Desk, tmp_path: Path) -> None:
    desk.tell(desk.local, clusterQueue=TOLD)
    pods = [group_pod("blue", f"tune-{n}", "tune") for n in range(2)]
    pods += [pod("blue", "train"), pod("blue", "late")]
    found = json.loads(tried(desk, tmp_path, *pods))["workloads"]
    assert {each["name"]: each["effect"] for each in found} == {
        "podgroup/tune": "admitted",
        "pod/train": "admitted",
        "pod/late": "waits",
    }


@pytest.mark.parametrize("manifests", [(), ({"apiVersion": "v1", "kind": "ConfigMap"},)])
def test_files_without_a_job_are_refused(desk: Desk, tmp_path: Path, manifests: tuple[Json, ...]) -> None:
    named = [each | {"metadata": {"name": "settings", "namespace": "blue"}} for each in manifests]
    with pytest.raises(CommandError, match="Without it only further Jobs of one namespace can be tried"):
        tried(desk, tmp_path, *named)


def test_the_job_kinds_of_the_cluster_are_known_to_users_that_may_read_them(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.tell(desk.local, clusterQueue=TOLD)
    more, get = trial("more", copies=1), desk.server.get
    more["metadata"]["namespace"] = "blue"
    with pytest.raises(CommandError, match="Without it only further Jobs of one namespace can be tried"):
        tried(desk, tmp_path, more)
    works = {"conditions": [{"type": "Active", "status": "True"}]}

    async def reads_job_kinds(path: str, query: Mapping[str, str] | None = None) -> Json:
        if path == JOB_KINDS:
            return {"items": [{**experiment(), "status": works}], "metadata": {}}
        return await get(path, query)

    monkeypatch.setattr(desk.server, "get", reads_job_kinds)
    (found,) = json.loads(tried(desk, tmp_path, more))["workloads"]
    assert (found["name"], found["effect"]) == ("experiment/more", "admitted")


def test_resource_claims_are_said_to_keep_jobs_pods_and_groups_waiting(desk: Desk, tmp_path: Path) -> None:
    desk.tell(desk.local, clusterQueue=TOLD)
    job, single = asks("blue", "more", {"cpu": 1}, queue="main"), pod("blue", "train")
    group = [group_pod("blue", f"tune-{n}", "tune") for n in range(2)]
    for spec in (job["spec"]["template"]["spec"], *(each["spec"] for each in (single, *group))):
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    found = json.loads(tried(desk, tmp_path, job, single, *group))["workloads"]
    assert {each["name"] for each in found} == {"more", "pod/train", "podgroup/tune"}
    assert {(each["effect"], each["message"]) for each in found} == {
        ("may not compete", "its pods use resource claims, which no quota counts")
    }
