"""Objects of a described kind, with all controllers running: a kind of one's own comes, runs and goes."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from admitter.cache.world import OWN
from admitter.client.errors import api_error
from admitter.convert.settings import DEFAULTS
from admitter.insight.taking import take
from admitter.names import QUEUE_LABEL, WORKLOAD_LABEL
from tests.apiserver.experiments import DEFINITIONS, GROUP, JOB_KINDS, definition, job_kind
from tests.apiserver.job_controller import is_live
from tests.apiserver.loop import run
from tests.apiserver.server import clock
from tests.convergence.lab import EXPERIMENTS, Lab, template
from tests.convergence.scene import JOBS, TEAM

Json = dict[str, Any]


def test_an_experiment_runs_on_two_flavors_and_the_next_one_waits_for_it() -> None:
    async def story() -> None:
        lab = Lab()
        lab.experiment("first", control=2, probe=2, copies=2)
        await lab.start()
        await lab.settled(lambda: lab.runs("first") == 3)
        lab.experiment("second", control=1, probe=1)
        assert lab.colors("first") == ["red", "blue", "blue"]
        workload = lab.workload("first")
        assert workload is not None
        assert workload["metadata"]["name"].startswith("experiment-first-")
        assert workload["metadata"]["ownerReferences"][0]["kind"] == "Experiment"
        assert [each["name"] for each in workload["spec"]["podSets"]] == ["control", "probe"]
        await lab.settled(lambda: lab.condition("second", "QuotaReserved") == "False")
        assert lab.runs("second") == 0
        await lab.settled(lambda: lab.is_done("first") and lab.is_done("second"))
        finished = [
            c for c in (lab.workload("first") or {})["status"]["conditions"] if c["type"] == "Finished"
        ]
        assert finished[0]["message"] == "all probes have come back"
        assert lab.used("a") == 0
        assert lab.excesses == []
        await lab.kill()

    run(story())


def test_an_evicted_experiment_keeps_nothing_of_its_flavors_and_runs_on_others() -> None:
    async def story() -> None:
        lab = Lab(withinClusterQueue="LowerPriority")
        lab.operator.lasts = 100.0
        lab.experiment("victim", control=2, probe=1, priority="low")
        await lab.start()
        await lab.settled(lambda: lab.runs("victim") == 2)
        assert lab.colors("victim") == ["red", "blue"]
        lab.experiment("preemptor", control=2, probe=2, copies=2, priority="high")
        await lab.server.until(lambda: lab.job("victim")["spec"]["state"] == "Stopped")
        assert lab.used("a") == 3000, "the victim's pods take their time to end"
        await lab.settled(lambda: lab.runs("preemptor") == 3)
        assert lab.runs("victim") == 0
        assert lab.left("victim") == []
        lab.submit("small", "a", 1, "high")
        await lab.settled(lambda: lab.is_done("preemptor") and lab.runs("victim") == 2)
        assert lab.job("victim")["spec"]["control"]["spec"]["nodeSelector"] in (
            {"color": "red"},
            {"color": "blue"},
        )
        await lab.settled(lambda: lab.is_done("victim"))
        assert lab.excesses == []
        await lab.kill()

    run(story())


def test_an_experiment_is_deleted_while_it_waits_runs_and_is_evicted() -> None:
    async def story() -> None:
        lab = Lab(withinClusterQueue="LowerPriority")
        lab.operator.lasts = 100.0
        await lab.start()
        lab.experiment("runs", control=2, probe=4, priority="low")
        await lab.settled(lambda: lab.runs("runs") == 2)
        lab.experiment("waits", control=1, probe=1, priority="low")
        await lab.settled(lambda: lab.condition("waits", "QuotaReserved") == "False")
        lab.server.remove(f"{EXPERIMENTS}/waits")
        lab.server.remove(f"{EXPERIMENTS}/runs")
        await lab.settled(lambda: lab.used("a") == 0 and not lab.server.objects["pods"])
        lab.experiment("evicted", control=2, probe=4, priority="low")
        await lab.settled(lambda: lab.runs("evicted") == 2)
        lab.experiment("last", control=2, probe=4, priority="high")
        await lab.server.until(lambda: lab.job("evicted")["spec"]["state"] == "Stopped")
        lab.server.remove(f"{EXPERIMENTS}/evicted")
        await lab.settled(lambda: lab.is_done("last"))
        assert lab.excesses == []
        await lab.kill()

    run(story())


def test_a_controller_that_starts_in_the_middle_goes_on() -> None:
    async def story() -> None:
        lab = Lab(withinClusterQueue="LowerPriority")
        lab.operator.lasts = 100.0
        await lab.start()
        lab.experiment("victim", control=2, probe=4, priority="low")
        await lab.settled(lambda: lab.runs("victim") == 2)
        lab.experiment("preemptor", control=2, probe=4, priority="high")
        await lab.server.until(lambda: lab.condition("victim", "Evicted") == "True")
        await lab.kill()
        await lab.start(seed=2)
        await lab.settled(lambda: lab.runs("preemptor") == 2)
        await lab.kill()
        await lab.start(seed=3)
        await lab.settled(lambda: lab.is_done("preemptor") and lab.is_done("victim"))
        assert lab.excesses == []
        await lab.kill()

    run(story())


def test_what_runs_is_counted_while_no_jobkind_describes_it() -> None:
    async def story() -> None:
        lab = Lab()
        lab.operator.lasts = 200.0
        await lab.start()
        lab.experiment("runs", control=2, probe=4)
        await lab.settled(lambda: lab.runs("runs") == 2)
        lab.experiment("waits", control=1, probe=1)
        await lab.settled(lambda: lab.condition("waits", "QuotaReserved") == "False")
        lab.server.remove(f"{JOB_KINDS}/experiment")
        await lab.server.until(lambda: _reason(lab, "waits") == "KindInactive")
        assert lab.used("a") == 6000
        lab.server.make(JOB_KINDS, job_kind())
        await lab.settled(lambda: lab.is_done("runs") and lab.is_done("waits"))
        assert lab.excesses == []
        await lab.kill()

    run(story())


async def _one_runs_and_one_waits(lab: Lab) -> None:
    await lab.start()
    lab.experiment("runs", control=2, probe=4)
    await lab.settled(lambda: lab.runs("runs") == 2)
    lab.experiment("waits", control=1, probe=1)
    await lab.settled(lambda: lab.condition("waits", "QuotaReserved") == "False")


async def _both_end_once_it_is_right(lab: Lab) -> None:
    """What ran while its JobKind was wrong has kept its quota, and both end with the right one."""
    assert (lab.used("a"), lab.runs("runs")) == (6000, 2)
    _describe(lab, job_kind()["spec"]["resource"])
    await lab.settled(lambda: lab.is_done("runs") and lab.is_done("waits"))
    assert lab.condition("runs", "Evicted") == ""
    assert lab.excesses == []
    await lab.kill()


@pytest.mark.parametrize(
    ("resource", "words"),
    [
        ({"plural": "experimentz"}, "Experiment objects are experiments.lab.example.com: make a JobKind"),
        ({"kind": "EXPERIMENT", "plural": "experimentz"}, "objects are experiments.lab.example.com"),
        ({"group": "lap.example.com"}, "definition experiments.lap.example.com is not there"),
    ],
)
def test_a_mistake_in_a_jobkind_leaves_the_workloads_of_what_runs(resource: Json, words: str) -> None:
    async def story() -> None:
        lab = Lab()
        lab.operator.lasts = 200.0
        served = [
            {"name": "experiments", "kind": "Experiment"},
            {"name": "experiments/status", "kind": "Any"},
        ]
        lab.server.documents[f"/apis/{GROUP}"] = {"versions": [{"version": "v1"}]}
        lab.server.documents[f"/apis/{GROUP}/v1"] = {"resources": served}
        await _one_runs_and_one_waits(lab)
        _describe(lab, job_kind()["spec"]["resource"] | resource)
        await lab.server.until(lambda: words in _active(lab))
        await lab.server.until(lambda: _reason(lab, "waits") == "KindInactive")
        await _both_end_once_it_is_right(lab)

    run(story())


def test_a_plural_that_stays_wrong_is_looked_at_less_and_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        lab, looks = Lab(), 0
        served = [{"name": "experiments", "kind": "Experiment"}]
        lab.server.documents[f"/apis/{GROUP}"] = {"versions": [{"version": "v1"}]}
        lab.server.documents[f"/apis/{GROUP}/v1"] = {"resources": served}
        get = lab.server.get

        async def counted(path: str, query: Mapping[str, str] | None = None) -> Json:
            nonlocal looks
            looks += path == f"/apis/{GROUP}"
            return await get(path, query)

        monkeypatch.setattr(lab.server, "get", counted)
        _describe(lab, job_kind()["spec"]["resource"] | {"plural": "experimentz"})
        await lab.start()
        await lab.server.until(lambda: "experiments.lab.example.com" in _active(lab))
        await asyncio.sleep(1800)
        assert 5 < looks < 15
        _describe(lab, job_kind()["spec"]["resource"])
        lab.experiment("later", control=1, probe=1)
        begun = clock()
        await lab.server.until(lambda: lab.runs("later") == 2)
        assert (clock() - begun).total_seconds() < 5
        await lab.kill()

    run(story())


def test_a_jobkind_for_another_group_leaves_the_workloads_of_what_runs() -> None:
    async def story() -> None:
        lab = Lab()
        lab.operator.lasts = 200.0
        other, group = definition(), "other.example.com"
        other["metadata"]["name"] = f"trials.{group}"
        other["spec"] |= {"group": group, "names": {"kind": "Experiment", "plural": "trials"}}
        lab.server.make(DEFINITIONS, other)
        await _one_runs_and_one_waits(lab)
        _describe(lab, job_kind()["spec"]["resource"] | {"group": group, "plural": "trials"})
        await lab.server.until(lambda: _reason(lab, "waits") == "KindInactive")
        await _both_end_once_it_is_right(lab)

    run(story())


def test_workloads_go_with_the_definition_of_their_kind() -> None:
    async def story() -> None:
        lab = Lab()
        await lab.start()
        lab.experiment("runs", control=2, probe=4)
        await lab.settled(lambda: lab.runs("runs") == 2)
        lab.server.remove(f"{DEFINITIONS}/experiments.{GROUP}")
        await lab.server.until(lambda: not lab.server.objects["workloads"])
        assert not lab.server.objects["experiments"] or lab.excesses == []
        lab.submit("job", "a", 4)
        await lab.server.until(lambda: lab.server.objects["workloads"] != {})
        await lab.server.until(lambda: _uses(lab) == 4000, seconds=600)
        assert lab.excesses == []
        await lab.kill()

    run(story())


def test_an_object_that_cant_be_counted_is_named_and_the_jobkind_of_another_goes_on() -> None:
    async def story() -> None:
        lab = Lab()
        broken = job_kind(active="object.status.")
        broken["metadata"]["name"] = "broken"
        broken["spec"]["resource"] |= {"kind": "Other", "plural": "others"}
        lab.server.make(JOB_KINDS, broken)
        await lab.start()
        lab.experiment("wrong", control=1, probe=1, copies=-1)
        lab.experiment("right", control=1, probe=1)
        await lab.settled(lambda: lab.is_done("right"))
        assert "spec.podSets[1].count" in lab.events("wrong")["InvalidRequests"]
        assert lab.workload("wrong") is None
        await lab.kill()

    run(story())


def test_a_job_that_an_experiment_has_made_is_not_queued_by_itself() -> None:
    async def story() -> None:
        lab = Lab()
        lab.experiment("parent", control=1, probe=1)
        await lab.start()
        await lab.settled(lambda: lab.runs("parent") == 2)
        owner = {"apiVersion": f"{GROUP}/v1", "kind": "Experiment", "name": "parent", "controller": True}
        owner |= {"uid": lab.job("parent")["metadata"]["uid"]}
        spec = {"suspend": True, "parallelism": 1, "template": template(1)}
        labels = {QUEUE_LABEL: "a"}
        metadata = {"name": "child", "labels": labels, "ownerReferences": [owner]}
        lab.server.make(JOBS, {"metadata": metadata, "spec": spec})
        forged = {"name": "forged", "labels": labels, "ownerReferences": [owner | {"uid": "other"}]}
        lab.server.make(JOBS, {"metadata": forged, "spec": spec})
        await lab.settled(lambda: lab.is_done("parent"))
        names = {raw["metadata"]["name"].split("-")[1] for raw in lab.server.objects["workloads"].values()}
        assert names == {"parent", "forged"}
        await lab.kill()

    run(story())


def test_an_experiment_that_grows_while_it_runs_is_stopped_and_asks_for_more() -> None:
    async def story() -> None:
        lab = Lab()
        lab.operator.lasts = 100.0
        await lab.start()
        lab.experiment("grows", control=2, probe=1)
        await lab.settled(lambda: lab.runs("grows") == 2)
        probes = [{**lab.job("grows")["spec"]["probes"][0], "copies": 3}]
        lab.server.write(f"{EXPERIMENTS}/grows", {"spec": {"probes": probes}})
        await lab.server.until(lambda: lab.condition("grows", "Evicted") == "True")
        await lab.settled(lambda: lab.runs("grows") == 4)
        assert lab.used("a") == 5000
        assert lab.excesses == []
        await lab.kill()

    run(story())


def test_an_elastic_quota_takes_experiments_and_leaves_what_they_have_made() -> None:
    async def story() -> None:
        lab = Lab()
        spec = {"min": {"cpu": "6"}, "manageAllJobs": True}
        lab.server.make(f"{OWN}/namespaces/{TEAM}/elasticquotas", {"metadata": {"name": "all"}, "spec": spec})
        await lab.start()
        await lab.server.until(lambda: _manages(lab))
        lab.experiment("parent", control=1, probe=1, queue="")
        await lab.server.until(lambda: lab.runs("parent") == 2)
        assert lab.job("parent")["metadata"]["labels"] == {QUEUE_LABEL: "elastic-quota"}
        owner = {"apiVersion": f"{GROUP}/v1", "kind": "Experiment", "name": "parent", "controller": True}
        owner |= {"uid": lab.job("parent")["metadata"]["uid"]}
        for name, owners in (("child", [owner]), ("forged", [owner | {"uid": "other"}])):
            metadata = {"name": name, "ownerReferences": owners}
            body = {"metadata": metadata, "spec": {"parallelism": 1, "template": template(1)}}
            lab.server.make(JOBS, body)
        await lab.server.until(lambda: "labels" in lab.job("forged")["metadata"])
        await lab.server.until(lambda: lab.is_done("parent"))
        assert "labels" not in lab.job("child")["metadata"]
        await lab.kill()

    run(story())


def test_jobs_are_admitted_while_the_definition_of_job_kinds_is_yet_to_be_applied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        lab, served = Lab(), False
        get = lab.server.get

        async def of_an_older_version(path: str, query: Mapping[str, str] | None = None) -> Json:
            if path == JOB_KINDS and not served:
                raise api_error(404, {"reason": "NotFound", "message": "not served"})
            return await get(path, query)

        monkeypatch.setattr(lab.server, "get", of_an_older_version)
        await lab.start()
        lab.submit("job", "a", 1)
        await lab.settled(lambda: lab.runs("job") == 1)
        taken = await take(lab.server, DEFAULTS, lambda: clock().timestamp())
        assert (len(taken.objects["jobs"]), taken.objects["jobkinds"]) == (1, [])
        served = True
        lab.experiment("later", control=1, probe=1)
        await lab.settled(lambda: lab.runs("later") == 2)
        await lab.kill()

    run(story())


def _describe(lab: Lab, resource: Json) -> None:
    """Put a JobKind of another resource in the place of the JobKind."""
    lab.server.remove(f"{JOB_KINDS}/experiment")
    lab.server.make(JOB_KINDS, job_kind(resource=resource))


def _active(lab: Lab) -> str:
    """What the JobKind says of whether it works."""
    status = lab.server.objects["jobkinds"]["", "experiment"].get("status") or {}
    return "".join(each["message"] for each in status.get("conditions", ()))


def _manages(lab: Lab) -> bool:
    status = lab.server.objects["elasticquotas"][TEAM, "all"].get("status") or {}
    return TEAM in status.get("managedSince", {})


def _reason(lab: Lab, name: str) -> str:
    return str(((lab.workload(name) or {}).get("status") or {}).get("reason"))


def _uses(lab: Lab) -> int:
    """Thousandths of a CPU of pods of Jobs that run."""
    pods = lab.server.objects["pods"].values()
    return 1000 * sum(
        int(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])
        for pod in pods
        if is_live(pod)
        and pod["metadata"]["ownerReferences"][0]["kind"] == "Job"
        and WORKLOAD_LABEL in pod["metadata"]["labels"]
    )
