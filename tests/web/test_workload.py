"""What the page of a workload tells, and to which user."""

import asyncio
import shlex
from collections.abc import AsyncIterator

import pytest

from admitter.client.access import Right, User
from admitter.insight.snapshot_file import facts
from admitter.policy.snapshot import Snapshot
from admitter.web.masked import masked_text
from admitter.web.views.workload import named
from tests.insight.states import NOW, State
from tests.patience import PATIENCE_SECONDS
from tests.web.pages import ADMIN, TENANT, Rights, Served, served
from tests.web.test_server import Json, ask
from tests.web.workload_states import GPU, RULE, lab

MINE = ("train", "huge", "lost", "sweep", "bumped", "tune-0", "past-0")
"""Workloads of the tenant."""


@pytest.fixture
async def page() -> AsyncIterator[Served]:
    async with served(lab()) as made:
        yield made


async def told(page: Served, name: str, token: str = ADMIN, namespace: str = "team-a") -> Json:
    """The whole answer; on a busy machine a first one comes before it is worked out."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            answer = await ask(page, "/api/workload", token, namespace=namespace, name=name)
            if answer["complete"]:
                return answer


async def test_one_that_waits(page: Served) -> None:
    answer = await told(page, "train")
    assert (answer["state"], answer["reason"]) == ("Pending", "InsufficientQuota")
    assert answer["queue"] == {"name": "vision", "title": "ClusterQueue vision"}
    assert (answer["position"], answer["inLine"], answer["localQueue"]) == (3, 4, "main")
    assert answer["sentences"][0].startswith("waits for 8 × nvidia.com/gpu in flavor a100: 0 free")
    a100, t4, spot = answer["flavors"]
    assert (a100["binding"], t4["binding"]) == (True, False)
    assert [a100[name]["value"] for name in ("asked", "free", "borrowable", "short")] == [8, 0, 2, 6]
    assert [(each["title"], each["amount"]["words"]) for each in a100["kept"]] == [
        ("ClusterQueue speech", "4")
    ]
    assert spot["mismatch"] == "the taint spot=true:NoSchedule of spot is not tolerated"
    assert [each["name"] for each in answer["ahead"]] == ["bumped", "secret-job"]
    assert answer["advice"] == "Wait, or ask for less."
    outlook = await ask(page, "/api/outlook", namespace="team-a", name="train")
    (sweep,) = outlook["blocking"]
    assert (sweep["name"], sweep["ends"]) == ("sweep", NOW + 3000)
    assert sweep["notEvicted"] == "its priority 0 is not lower than 0"
    start = outlook["start"]
    assert NOW <= start["earliest"] <= start["median"] <= start["latest"]


async def test_one_that_runs_with_its_limits_and_its_pods(page: Served) -> None:
    answer = await told(page, "sweep")
    assert (answer["state"], answer["name"]) == ("Admitted", "sweep")
    (holds,) = answer["holds"]
    assert (holds["count"], holds["of"]) == (8, 8)
    assert holds["usage"] == [{"resource": GPU, "flavor": "t4", "amount": {"value": 8, "words": "8"}}]
    assert (answer["runTime"]["deadline"], answer["runTime"]["used"]) == (NOW + 3000, 1200)
    assert answer["resize"] == {
        "admitted": 8,
        "granted": 8,
        "wanted": 10,
        "words": "runs with 8 pods, and could use 10",
    }
    assert answer["checkpoint"] == NOW - 300
    pods = answer["pods"]
    assert (pods["wanted"], pods["ready"]) == (8, 5)
    assert pods["words"].startswith("1 of 8 pods crashes: container main: exit code 137; 2 of 8 pods unsched")
    assert {each["state"]: each["count"] for each in pods["states"]} == {
        "Unschedulable": 2,
        "Crashes": 1,
        "Ready": 5,
    }
    assert [each["node"] for each in pods["pods"]][:4] == [None, None, "gpu-1", "gpu-0"]
    assert [each["what"] for each in answer["timeline"] if each["coming"]] == ["ToBeReady", "Ends"]


async def test_one_that_was_evicted_says_for_which_and_by_which_rule(page: Served) -> None:
    answer = await told(page, "bumped")
    evicted = [each for each in answer["timeline"] if each["what"] == "Evicted"]
    assert [each["at"] - NOW for each in evicted] == [-4000, -300]
    assert evicted[-1]["preemptor"] == {
        "visible": True,
        "namespace": "team-b",
        "name": "secret-urgent",
        "queue": "ClusterQueue vision",
        "rule": RULE,
    }
    assert "Workload team-b/secret-urgent in ClusterQueue vision" in evicted[-1]["message"]


async def test_one_that_is_over_has_its_last_state(page: Served) -> None:
    answer = await told(page, "past-0")
    assert (answer["state"], answer["reason"]) == ("Finished", "JobSucceeded")
    assert answer["sentences"] == ["the Job has succeeded"]
    (held,) = answer["held"]
    assert held["usage"][0]["amount"]["words"] == "2"
    assert not answer["holds"]
    assert not answer["waits"]


async def test_a_job_without_a_workload_says_why() -> None:
    state = lab()
    job = state.waits("team-a", "over", {GPU: "1"})
    job["status"] = {"conditions": [{"type": "Failed", "status": "True", "message": "it was too late"}]}
    async with served(state) as page:
        answer = await told(page, "over")
        assert answer["sentences"] == ["it has finished, and its Workload is gone"]
        assert (answer["jobEnd"], answer["jobEndMessage"]) == ("Failed", "it was too late")
        assert (answer["timeline"], answer["pods"], answer["state"]) == ([], None, None)


async def test_a_tenant_gets_no_name_of_another_namespace(page: Served) -> None:
    for name in MINE:
        whole = await told(page, name)
        mine = await told(page, name, TENANT)
        outlook = await ask(page, "/api/outlook", TENANT, namespace="team-a", name=name)
        assert "secret" not in str(mine), name
        assert "secret" not in str(outlook), name
        assert "team-b" not in str(mine) + str(outlook), name
        assert whole["sentences"] == mine["sentences"] or name in {"bumped"}
    bumped = await told(page, "bumped", TENANT)
    (last,) = (each for each in bumped["timeline"] if each["preemptor"] is not None)
    assert last["preemptor"] == {
        "visible": False,
        "namespace": None,
        "name": None,
        "queue": "ClusterQueue vision",
        "rule": RULE,
    }
    assert last["message"].startswith("preempted for a Workload of another namespace in ClusterQueue vision")


async def test_the_owner_of_a_claim_has_no_name_either() -> None:
    state = State()
    state.put("cohorts", "all", spec={})
    for name, least, namespace in (("a", "4", "team-a"), ("b", "8", "team-b"), ("c", "0", "team-c")):
        state.queue(name, {"cpu": {"default": {"min": least}}}, "all")
        state.namespace(namespace, name)
    state.holds("team-a", "runs", {"cpu": ("4", "default")}, cluster_queue="a")
    state.holds("team-c", "borrows", {"cpu": ("3", "default")}, cluster_queue="c")
    state.waits("team-b", "secret-owner", {"cpu": "8"})
    state.waits("team-a", "train", {"cpu": "2"})
    async with served(state) as page:
        whole, mine = await told(page, "train"), await told(page, "train", TENANT)
        (claim,) = whole["flavors"][0]["claims"]
        assert (claim["namespace"], claim["name"]) == ("team-b", "secret-owner")
        assert "are kept for team-b/secret-owner, as ClusterQueue b owns them" in whole["sentences"][0]
        assert "are kept for a Workload of another namespace, as ClusterQueue b" in mine["sentences"][0]
        assert "secret" not in str(mine)
        assert not mine["flavors"][0]["claims"][0]["visible"]


@pytest.mark.parametrize("path", ["/api/workload", "/api/outlook"])
async def test_what_is_not_there_is_answered_as_what_may_not_be_seen(path: str, page: Served) -> None:
    """Not by its words either: another namespace with a Job of that name is named to those that see it."""
    missing = await ask(page, path, status=404, namespace="team-a", name="secret-job")
    assert str(missing["error"]).endswith("; there is one in team-b")
    mine = await ask(page, path, TENANT, 404, namespace="team-a", name="secret-job")
    assert mine == {"error": "there is no Job and no Workload secret-job in namespace team-a"}
    forbidden = await ask(page, path, TENANT, 403, namespace="team-b", name="secret-job")
    unknown = await ask(page, path, TENANT, 403, namespace="team-x", name="secret-job")
    assert str(forbidden["error"]).replace("team-b", "team-x") == str(unknown["error"])
    none = await ask(page, path, TENANT, 403, namespace="", name="train")
    assert "(none)" in str(none["error"])


async def test_names_of_pods_and_nodes_are_for_those_that_may_list_pods(
    page: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = (await told(page, "sweep", TENANT))["pods"]
    assert (mine["named"], mine["pods"], mine["ready"]) == (False, [], 5)
    assert "gpu-1" not in str(mine)

    async def may(_rights: Rights, _user: User, right: Right) -> bool:
        return right == Right("list", "pods", "team-a", group="")

    monkeypatch.setattr(Rights, "may", may)
    mine = (await told(page, "sweep", TENANT))["pods"]
    assert (mine["named"], len(mine["pods"]), mine["pods"][2]["node"]) == (True, 8, "gpu-1")


@pytest.mark.parametrize(
    ("text", "sees", "expected"),
    [
        ("for Workload b/x in ClusterQueue q", "", "for a Workload of another namespace in ClusterQueue q"),
        ("for Workload b/x in ClusterQueue q", "b", "for Workload b/x in ClusterQueue q"),
        ("LocalQueue c/main, LocalQueue d/main", "c", "LocalQueue c/main, a LocalQueue of another namespace"),
        ("image registry/b/x:2 of ElasticQuota b/x", "", "image registry/b/x:2 of ElasticQuota b/x"),
    ],
)
def test_messages_that_name_objects_of_other_namespaces(text: str, sees: str, expected: str) -> None:
    assert masked_text(text, sees.__eq__) == expected


def test_a_workload_is_found_by_each_of_its_names() -> None:
    state = State()
    state.queue("q", {"cpu": {"default": {"min": "1"}}})
    state.namespace("a", "q")
    state.waits("a", "train", {"cpu": "1"})
    state.holds("a", "by-hand", {"cpu": ("1", "default")}, cluster_queue="q")
    for name, kind in (("one", "JobSet"), ("train", "JobSet"), ("two", "RayJob"), ("two", "JobSet")):
        made = state.holds("a", f"{kind.lower()}-{name}", {"cpu": ("1", "default")}, cluster_queue="q")
        owner = {"apiVersion": "x.dev/v1", "kind": kind, "name": name, "uid": f"{kind}-{name}"}
        made["metadata"]["ownerReferences"] = [owner | {"controller": True}]
        made["metadata"]["labels"] = {"admitter.dev/job-uid": f"{kind}-{name}"}
    snapshot = Snapshot(facts(state.snapshot()))
    waiting = snapshot.find("a", "train")
    assert waiting is not None

    def found(text: str) -> str:
        view = snapshot.find("a", named(snapshot, "a", text))
        return view.name if view is not None else ""

    for text in ("train", "job/train", "jobs/train", waiting.name, f"wl/{waiting.name}"):
        assert found(text) == waiting.name
    for text in ("jobset/train", "jobsets/train", "jobset-train", "workload/jobset-train"):
        assert found(text) == "jobset-train"
    assert found("one") == "jobset-one"
    assert found("by-hand") == found("wl/by-hand") == "by-hand"
    for text in ("nope", "job/one", "wl/train", "/", "", "a/b/c"):
        assert found(text) == "", text


async def test_a_name_that_may_mean_several_is_asked_about() -> None:
    state = State()
    state.queue("q", {"cpu": {"default": {"min": "1"}}})
    state.namespace("team-a", "q")
    for kind in ("JobSet", "RayJob"):
        made = state.holds("team-a", f"made-{kind.lower()}", {"cpu": ("1", "default")}, cluster_queue="q")
        owner = {"apiVersion": "x.dev/v1", "kind": kind, "name": "two", "uid": kind, "controller": True}
        made["metadata"] |= {"ownerReferences": [owner], "labels": {"admitter.dev/job-uid": kind}}
    async with served(state) as page:
        answer = await ask(page, "/api/workload", TENANT, 404, namespace="team-a", name="two")
        assert answer["error"] == "two may be any of jobset/two, rayjob/two: name its kind too"


HOSTILE = ("<img src=x onerror=alert(1)>", "\u202egpj.exe", "a" * 253, "x; rm -rf ~", "'$(id)'\n")


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
async def test_names_are_data_whatever_is_in_them(name: str) -> None:
    state = State()
    state.queue("q", {"cpu": {"default": {"min": "1"}}})
    state.namespace("team-a", "q")
    state.holds("team-a", name, {"cpu": ("1", "default")}, cluster_queue="q")
    state.waits("team-a", "train", {"cpu": "1"})
    async with served(state) as page:
        answer = await told(page, name, TENANT)
        assert answer["name"] == name
        command = answer["commands"][0]["command"]
        assert "\n" not in command
        assert "\u202e" not in command
        words = shlex.split(command)
        assert (words[:2], words[-2:], len(words)) == (["admitter", "explain"], ["-n", "team-a"], 5)
        outlook = await ask(page, "/api/outlook", TENANT, namespace="team-a", name="train")
        assert [each["name"] for each in outlook["blocking"]] == [name]
