"""The overview's numbers, and to which users it tells them."""

from typing import Any

import pytest

from admitter.client.access import Right, User
from admitter.web.history import History
from admitter.web.views.overview import chart
from tests.insight.states import NOW, State
from tests.web.histories import change, cluster, evicted, shown
from tests.web.overviews import GPU, busy, lending, lived, troubled
from tests.web.pages import TENANT, Served, department, fleet, served
from tests.web.test_server import ask

Json = dict[str, Any]


async def asked(page: Served, **query: Any) -> Json:
    found: Json = await ask(page, "/api/overview", **query)
    return found


async def test_use_quota_and_capacity_of_each_flavor() -> None:
    async with served(busy()) as page:
        found = await asked(page)
    by_name = {each["flavor"]: each for each in found["flavors"]}
    assert list(by_name) == ["a100", "t4", "spot"], "flavors with devices first"
    (gpus,) = by_name["a100"]["resources"]
    assert (gpus["quota"], gpus["capacity"], gpus["resource"]) == (80, 88, GPU)
    assert (
        gpus["used"]
        == sum(each["values"][-1] for each in by_name["a100"]["chart"]["series"])
        + (by_name["a100"]["chart"]["rest"][-1])
    )
    assert by_name["t4"]["resources"][0]["capacity"] is None, "no node is of that flavor"


async def test_the_chart_has_the_largest_queues_and_the_rest_together() -> None:
    async with served(None) as page:
        lived(page.stage)
        page.stage.show(busy())
        hour = (await asked(page, hours="1"))["flavors"][0]["chart"]
        day = (await asked(page, hours="24"))["flavors"][0]["chart"]
    assert len(hour["series"]) == 7
    assert hour["restCount"] == 3
    assert hour["times"] == sorted(hour["times"])
    assert hour["times"][0] >= NOW - 3600
    assert day["times"][0] < NOW - 3600
    assert len(day["times"]) <= 96
    sizes = [sum(each["values"]) for each in hour["series"]]
    assert sizes == sorted(sizes, reverse=True)
    assert set(hour["quota"]) == {80}


def test_the_largest_queues_are_those_that_used_most_over_time() -> None:
    """`long` used 20 core-hours in five hours, with few samples; others 8 each in the hour since."""
    others = [f"other-{number}" for number in range(7)]
    history, state = History(), cluster("long", *others)
    for second in [*range(-6 * 3600, -3600, 180), *range(-3600, 1, 60)]:
        state.objects["workloads"].clear()
        for name, cores in {"long": "4"}.items() if second < -3600 else dict.fromkeys(others, "8").items():
            usage = {"cpu": (cores, "default")}
            state.holds(f"team-{name}", "job", usage, cluster_queue=name, since=second - 60)
        shown(history, state, second)
    found = chart(history, "default", "cpu", NOW - 6 * 3600)
    assert [each["queue"] for each in found["series"]] == ["long", *others[:6]]
    assert found["restCount"] == 1


async def test_a_resource_is_chosen_where_a_flavor_has_it() -> None:
    async with served(busy()) as page:
        found = await asked(page, resource="cpu")
        assert {each["flavor"]: each["chart"]["resource"] for each in found["flavors"]} == {
            "a100": GPU,
            "t4": GPU,
            "spot": "cpu",
        }
        assert found["resources"] == [GPU, "cpu"]
        other = await asked(page, resource="no-such")
        assert [each["chart"]["resource"] for each in other["flavors"]] == [GPU, GPU, "cpu"]


async def test_flavors_of_which_nothing_is_in_use_come_last() -> None:
    state = State("a-unused", "b-cpu", "c-gpu")
    state.queue("q", {GPU: {"a-unused": {"min": "8"}, "c-gpu": {"min": "8"}}})
    state.objects["clusterqueues"][0]["spec"]["resources"].append(
        {"name": "cpu", "flavors": [{"name": "b-cpu", "quota": {"min": "8"}}]}
    )
    state.namespace("team", "q")
    state.holds("team", "x", {"cpu": ("1", "b-cpu"), GPU: ("1", "c-gpu")}, cluster_queue="q")
    async with served(state) as page:
        found = await asked(page)
    assert [each["flavor"] for each in found["flavors"]] == ["c-gpu", "b-cpu", "a-unused"]


async def test_what_waits_and_for_how_long() -> None:
    state = cluster("a")
    for age in range(1, 21):
        state.waits("team-a", f"job-{age}", {"cpu": "9"}, created=-60 * age)
    state.waits("team-a", "lost", {"cpu": "1"}, queue="no-such", created=-9000)
    async with served(state) as page:
        waiting = (await asked(page))["waiting"]
    assert (waiting["total"], waiting["inLine"]) == (21, 20)
    assert (waiting["p50"], waiting["p95"]) == (600, 1140)
    assert waiting["out"] == [{"reason": "QueueNotFound", "count": 1}]
    assert [each["name"] for each in waiting["oldest"]] == [f"job-{age}" for age in range(20, 15, -1)]
    assert waiting["oldest"][0]["since"] == NOW - 1200


async def test_what_was_admitted_and_ended_in_the_last_hour() -> None:
    state = cluster("a")
    for number, finished in enumerate((-10.0, -20.0, None)):
        state.holds(
            "team-a",
            f"job-{number}",
            {"cpu": ("1", "default")},
            cluster_queue="a",
            since=-100,
            created=-100 - 60 * (number + 1),
            finished=finished,
        )
    state.objects["workloads"][1]["status"]["conditions"][-1]["reason"] = "JobFailed"
    state.holds("team-a", "old", {"cpu": ("1", "default")}, cluster_queue="a", since=-9000, finished=-8000)
    async with served(state) as page:
        running = (await asked(page))["running"]
    assert running == {
        "total": 1,
        "admitted": 3,
        "p50": 120,
        "p95": 180,
        "succeeded": 1,
        "failed": 1,
        "outOfTime": 0,
    }


async def test_trouble_is_told() -> None:
    async with served(troubled(busy())) as page:
        found = await asked(page)
    (broken,) = found["trouble"]["first"]
    assert (found["trouble"]["total"], broken["name"], broken["waiting"]) == (1, "batch", 1)
    assert "there is no such ResourceFlavor" in broken["why"]
    nodes = found["nodes"]
    assert (nodes["total"], nodes["notReady"], nodes["cordoned"]) == (12, 1, 0)
    assert nodes["first"] == [
        {"name": "gpu-3", "since": NOW - 1200, "why": "Kubelet stopped posting node status."}
    ]
    evictions = found["evictions"]
    assert evictions["total"] == 2
    assert evictions["reasons"] == [
        {"reason": "CapacityShrunk", "count": 1},
        {"reason": "Preempted", "count": 1},
    ]
    assert [(each["name"], each["queue"], each["forName"]) for each in evictions["last"]] == [
        ("train", "vision", "urgent"),
        ("train", "speech", ""),
    ]


async def test_evictions_are_listed_by_reason() -> None:
    async with served(troubled(busy())) as page:
        found = (await asked(page, why="Preempted"))["evictions"]
    assert (found["total"], found["listed"], len(found["reasons"])) == (2, 1, 2)
    assert [each["reason"] for each in found["last"]] == ["Preempted"]


@pytest.mark.parametrize(
    ("second", "late"), [(-119.0, 0), (-121.0, 1)], ids=["two minutes are usual", "more are not"]
)
async def test_a_pod_that_does_not_end_is_a_promise_at_risk(second: float, late: int) -> None:
    state = cluster("a")
    made = state.holds("team-a", "victim", {"cpu": ("1", "default")}, cluster_queue="a", since=-900)
    status = evicted(second, by={"namespace": "team-b", "name": "urgent", "message": "why"})
    change(made, status | {"conditions": [made["status"]["conditions"][0], status["conditions"][1]]})
    async with served(state) as page:
        promises = (await asked(page))["promises"]
    assert promises["total"] == late
    for each in promises["first"]:
        assert (each["risk"], each["since"], each["queue"]) == ("late", NOW + second, "a")
        assert (each["name"], each["forName"]) == ("victim", "urgent")


async def test_a_grace_period_that_is_over_is_a_promise_at_risk() -> None:
    state = cluster("a")
    for name, until in (("overdue", "2025-12-31T23:58:00Z"), ("in-time", "2026-01-01T00:10:00Z")):
        made = state.holds("team-a", name, {"cpu": ("1", "default")}, cluster_queue="a", since=-900)
        status = evicted(-500, by={"namespace": "team-a", "name": "urgent", "evictAt": until})
        pending = status["conditions"][1] | {"type": "EvictionPending"}
        change(made, {**status, "state": "Admitted", "conditions": [*made["status"]["conditions"], pending]})
    async with served(state) as page:
        promises = (await asked(page))["promises"]
    assert [(each["risk"], each["name"], each["since"]) for each in promises["first"]] == [
        ("overdue", "overdue", NOW - 120)
    ]


@pytest.mark.parametrize(("waited", "asks", "lent"), [(599, "cpu", 0), (601, "cpu", 1), (601, "memory", 0)])
async def test_own_quota_that_others_use_is_a_promise_at_risk(waited: float, asks: str, lent: int) -> None:
    async with served(lending(waited=waited, asks=asks)) as page:
        promises = (await asked(page))["promises"]
    assert promises["total"] == lent
    for each in promises["first"]:
        assert (each["risk"], each["queue"], each["name"]) == ("lent", "a", "owner")
        assert (each["lent"], each["resource"], each["flavor"]) == (6, "cpu", "default")
        assert each["since"] == NOW - waited


async def test_without_queues_there_is_nothing_but_that() -> None:
    async with served(State()) as page:
        found = await asked(page)
    assert (found["queues"], found["flavors"], found["waiting"]["total"]) == (0, [], 0)


async def test_a_tenant_gets_nothing_of_it() -> None:
    async with served(troubled(busy())) as page:
        for query in ({}, {"hours": "1"}, {"why": "Preempted"}, {"resource": "cpu"}, {"hours": "x"}):
            refused = await ask(page, "/api/overview", TENANT, 403, **query)
            assert refused == {
                "error": "system:serviceaccount:team-a:user may not list ClusterQueues: choose a namespace"
            }
        assert "hours are one of" in (await ask(page, "/api/overview", status=400, hours="7"))["error"]


async def sees(_: User, plural: str, namespace: str = "") -> bool:
    """Users that see the tree, and Workloads of one namespace, and no nodes."""
    return plural == "clusterqueues" or (plural == "workloads" and namespace == "speech")


async def may_not(_user: User, _right: Right) -> bool:
    return False


async def test_users_that_see_the_tree_see_no_names_of_workloads_and_nodes_they_may_not_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = troubled(busy())
    state.waits("vision", "secret-plan", {GPU: "1"}, created=-90_000)
    async with served(state) as page:
        whole = await asked(page)
        assert "secret-plan" in str(whole["waiting"]["oldest"])
        monkeypatch.setattr(page.rights, "may_list", sees)
        monkeypatch.setattr(page.rights, "may", may_not)
        found = await asked(page)
    text = str(
        [found["waiting"]["oldest"], found["evictions"]["last"], found["promises"]["first"], found["nodes"]]
    )
    for name in ("secret-plan", "sweep", "gpu-3", "urgent2", "'name': 'train', 'queue': 'vision'"):
        assert name not in text
    assert found["nodes"]["notReady"] == whole["nodes"]["notReady"]
    own, other = sorted(found["evictions"]["last"], key=lambda each: bool(each["visible"]), reverse=True)
    assert (own["visible"], own["namespace"], own["name"]) == (True, "speech", "train")
    assert (other["visible"], other["namespace"], other["name"], other["rule"]) == (False, "", "", "")
    assert (other["isFor"], other["forNamespace"], other["forName"]) == (True, "speech", "urgent")
    assert found["waiting"]["total"] == whole["waiting"]["total"]


async def test_many_queues_are_summed_up() -> None:
    async with served(fleet(300, 600)) as page:
        found = await asked(page)
        assert found["queues"] == 300
        (flavor,) = found["flavors"]
        assert flavor["chart"]["restCount"] == 293
        assert flavor["resources"][0]["used"] == 2400
        assert len(str(found)) < 60_000


async def test_a_small_department_has_an_overview() -> None:
    async with served(department()) as page:
        found = await asked(page)
        assert (found["waiting"]["total"], found["running"]["total"]) == (4, 1)
        assert found["waiting"]["counts"] == [4]
