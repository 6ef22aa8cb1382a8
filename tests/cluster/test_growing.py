"""A Job runs more pods while quota is idle, and gives it back first, on the real Job controller."""

from typing import Any

import pytest

from tests.cluster.auditor import Auditor, InOrder
from tests.cluster.objects import Json, job
from tests.cluster.team import Team
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

MOST = "admitter.dev/max-parallelism"
ORIGINAL = "admitter.dev/original-parallelism"


def able(team: Team, name: str, most: str, **more: Any) -> Json:
    """A Job that can use more pods, and has work for a thousand."""
    made = job(team.namespace, name, seconds=None, completions=1000, **more)
    made["metadata"]["annotations"] = {MOST: most}
    return made


def granted(status: Json) -> int:
    """How many pods of a Workload may live."""
    admitted = sum(int(each["count"]) for each in (status.get("admission") or {}).get("podSets", ()))
    return max(admitted, int((status.get("resize") or {}).get("granted", 0)))


class Grants(InOrder):
    """Compares the pods of each Workload with its grant, change by change, in the order of the store."""

    def passed(self) -> tuple[list[str], int]:
        """Every moment at which more pods lived than were granted; and the most that were granted at once."""
        alive: dict[str, set[str]] = {}
        grants: dict[str, int] = {}
        found, most = list[str](), 0
        for version, plural, kind, seen in self.changes():
            metadata = seen["metadata"]
            if plural == "workloads":
                name = metadata["name"]
                grants[name] = granted(seen.get("status", {}))
                most = max(most, grants[name])
            else:
                name = metadata["labels"]["admitter.dev/workload"]
                over = kind == "DELETED" or seen["status"].get("phase") in {"Succeeded", "Failed"}
                pods = alive.setdefault(name, set())
                (pods.discard if over else pods.add)(metadata["uid"])
            if len(alive.get(name, ())) > grants.get(name, 0):
                found.append(f"{len(alive[name])} pods of {name}, {grants.get(name)} granted, at {version}")
        return found, most


def said(team: Team, name: str) -> tuple[int, int]:
    """The pods that a Workload is granted and is to have."""
    resize = team.workload(name)["status"].get("resize", {})
    return resize.get("granted", 0), resize.get("wanted", 0)


def parallelism(team: Team, name: str) -> tuple[int, str]:
    read = team.read("job", name)
    return read["spec"]["parallelism"], read["metadata"].get("annotations", {}).get(ORIGINAL, "")


def test_it_grows_into_idle_quota_and_shrinks_for_the_next_job_also_after_a_restart(team: Team) -> None:
    team.offers({"cpu": {"on-demand": "6"}}, preemption={"withinClusterQueue": "LowerPriority"})
    high = team.priority_class("high", 100)
    limits, kills = {(team.flavor("on-demand"), "cpu"): 6.0}, team.controller.kills
    of = (team.cluster, team.namespace)
    with Auditor(*of, limits) as auditor, Grants(*of) as grants:
        team.apply(able(team, "sweep", "5", pods=3))
        team.runs("sweep", pods=3)
        team.runs("sweep", pods=5)
        assert parallelism(team, "sweep") == (5, "3")
        assert said(team, "sweep") == (5, 5)
        wide = team.kubectl("get", "workloads.admitter.dev", "--output=wide")
        assert "runs with 5 pods, 2 of them extra: these go first" in wide
        team.hears(lambda: "Resized" in team.events("sweep"), kills, "an event of the change")
        urgent = {"priorityClassName": high}
        team.apply(job(team.namespace, "next", pods=3, seconds=None, pod=urgent))
        eventually(lambda: team.reason("next") == "Preempting" or team.state("next") == "Admitted")
        team.controller.kill()
        team.runs("next", pods=3)
        team.runs("sweep", pods=3)
        assert team.condition("sweep", "Evicted") == {}
        assert parallelism(team, "sweep") == (3, "3")
        team.kubectl("delete", "job", "next")
        eventually(lambda: said(team, "sweep")[0] == 5, what="the Job to grow again")
        team.controller.kill()
        team.runs("sweep", pods=5)
    assert auditor.excesses == []
    assert auditor.most_pods <= 6
    assert auditor.admissions[f"{team.namespace}/{team.workload('sweep')['metadata']['name']}"] == 1
    assert grants.passed() == ([], 5)


def test_an_eviction_puts_back_what_its_user_wrote_and_extra_pods_go_with_it(team: Team) -> None:
    team.offers({"cpu": {"on-demand": "4"}}, preemption={"withinClusterQueue": "LowerPriority"})
    high = team.priority_class("high", 100)
    with Auditor(team.cluster, team.namespace, {(team.flavor("on-demand"), "cpu"): 4.0}) as auditor:
        team.apply(able(team, "sweep", "4", pods=2))
        team.runs("sweep", pods=4)
        urgent = {"priorityClassName": high}
        team.apply(job(team.namespace, "urgent", pods=3, seconds=None, pod=urgent))
        team.runs("urgent", pods=3)
        assert parallelism(team, "sweep") == (2, "")
        assert "resize" not in team.workload("sweep")["status"]
    assert auditor.excesses == []
    assert auditor.most_pods <= 4


def test_a_text_that_is_no_number_keeps_it_waiting(team: Team) -> None:
    team.offers({"cpu": {"on-demand": "4"}})
    team.apply(able(team, "sweep", "many"))
    words = "its annotation admitter.dev/max-parallelism is 'many', which is no number of pods"
    eventually(lambda: words in team.events("sweep").get("InvalidRequests", ""), what="to be told")
    assert team.pods("sweep") == []
