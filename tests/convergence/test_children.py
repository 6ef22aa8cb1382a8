"""Objects with operators that make other objects: what an admission put in is taken out of all of them."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from admitter.cache.world import OWN
from admitter.documents import bundled, documents
from admitter.names import QUEUE_LABEL, WORKLOAD_LABEL
from tests.apiserver.experiments import DEFINITIONS, JOB_KINDS
from tests.apiserver.loop import run
from tests.apiserver.server import merged
from tests.convergence.lab import Lab, template
from tests.convergence.scene import JOBS, TEAM

Json = dict[str, Any]

JOBSETS = f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{TEAM}/jobsets"
TRAINER = "/apis/trainer.kubeflow.org/v1alpha1"
TRAINJOBS = f"{TRAINER}/namespaces/{TEAM}/trainjobs"
ANY: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
SHIPPED = {raw["metadata"]["name"]: raw for _, raw in documents([str(bundled("manifests") / "kinds")])}


def definition(name: str) -> Json:
    """Of what a shipped JobKind describes, with any fields."""
    named = SHIPPED[name]["spec"]["resource"]
    schema = {"openAPIV3Schema": ANY}
    version = {"name": named["version"], "served": True, "storage": True, "schema": schema}
    names = {"kind": named["kind"], "plural": named["plural"]}
    return {
        "metadata": {"name": f"{named['plural']}.{named['group']}"},
        "spec": {"group": named["group"], "names": names, "versions": [version]},
    }


class Operated(Lab):
    """A lab with JobSets and TrainJobs, and operators that are as simple as can be.

    Attributes:
        late: after how many seconds the operator of a JobSet suspends its Jobs.
    """

    late = 0.0

    def __init__(self, **preemption: Json | str) -> None:
        super().__init__(**preemption)
        for name in ("jobset", "trainjob"):
            self.server.make(DEFINITIONS, definition(name))
            self.server.make(JOB_KINDS, SHIPPED[name])
        served = {"trainjobs": "TrainJob", "clustertrainingruntimes": "ClusterTrainingRuntime"}
        resources = [{"name": name, "kind": kind, "verbs": ["watch"]} for name, kind in served.items()]
        self.server.documents[TRAINER] = {"resources": resources}
        self.server.listen(self._operate)

    def _operate(self, plural: str, _before: Json | None, after: Json | None) -> None:
        if after is not None and plural == "trainjobs":
            self._operate_trainjob(after)
        if after is not None and plural == "jobsets":
            self._operate_jobset(after)
        if after is not None and plural == "jobs" and after["metadata"].get("ownerReferences"):
            self._tell(after)

    def _operate_trainjob(self, train: Json) -> None:
        """The JobSet of the runtime, with what the patches say."""
        runtime = self.server.find(f"{TRAINER}/clustertrainingruntimes/torch")
        jobs = runtime["spec"]["template"]["spec"]["replicatedJobs"]
        for patch in train["spec"].get("runtimePatches") or ():
            named = {j["name"]: j for j in patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]}
            jobs = [merged(job, named.get(job["name"], {})) for job in jobs]
        self._put(JOBSETS, train, "TrainJob", {"suspend": train["spec"]["suspend"], "replicatedJobs": jobs})

    def _operate_jobset(self, jobs: Json) -> None:
        """A Job for each replicated one; templates of a later start are merged into those of the first."""
        suspend = jobs["spec"]["suspend"]
        for each in jobs["spec"]["replicatedJobs"]:
            name = f"{jobs['metadata']['name']}-{each['name']}"
            known = self.server.objects["jobs"].get((TEAM, name))
            if known is None:
                spec = {"suspend": suspend, "parallelism": 1, "completions": 1, **each["template"]["spec"]}
                self._put(JOBS, jobs, "JobSet", spec, name)
            elif suspend or known["spec"]["suspend"]:
                new = {"template": each["template"]["spec"]["template"]} if not suspend else {}
                if new and (known.get("status") or {}).get("startTime"):
                    self.server.write(f"{JOBS}/{name}/status", {"status": {"startTime": None}})
                patch = {"spec": {"suspend": suspend, **new}}
                later = asyncio.get_running_loop().call_later
                later(self.late if suspend else 0.0, self.server.write, f"{JOBS}/{name}", patch)

    def _tell(self, job: Json) -> None:
        """The status of the objects above a Job."""
        name = job["metadata"]["name"].rpartition("-")[0]
        active = (job.get("status") or {}).get("active", 0)
        for path, field in ((JOBSETS, "replicatedJobsStatus"), (TRAINJOBS, "jobsStatus")):
            if (TEAM, name) in self.server.objects[path.rpartition("/")[2]]:
                self.server.write(f"{path}/{name}/status", {"status": {field: [{"active": active}]}})

    def _put(self, path: str, owner: Json, kind: str, spec: Json, name: str = "") -> None:
        name = name or owner["metadata"]["name"]
        if (TEAM, name) in self.server.objects[path.rpartition("/")[2]]:
            self.server.write(f"{path}/{name}", {"spec": spec})
            return
        group = "jobset.x-k8s.io/v1alpha2" if kind == "JobSet" else "trainer.kubeflow.org/v1alpha1"
        owned = {"apiVersion": group, "kind": kind, "name": owner["metadata"]["name"], "controller": True}
        owners = [owned | {"uid": owner["metadata"]["uid"]}]
        self.server.make(path, {"metadata": {"name": name, "ownerReferences": owners}, "spec": spec})

    def child(self, name: str) -> Json:
        """The Job below an object."""
        return self.server.find(f"{JOBS}/{name}")


def test_the_jobs_of_an_evicted_jobset_keep_nothing_of_its_flavors() -> None:
    async def story() -> None:
        lab = Operated(withinClusterQueue="LowerPriority")
        lab.jobs.lasts = lambda _: 500.0
        await lab.start()
        jobs = [{"name": "w", "template": {"spec": {"template": template(2, "low")}}}]
        labels = {QUEUE_LABEL: "a"}
        body = {
            "metadata": {"name": "set", "labels": labels},
            "spec": {"suspend": True, "replicatedJobs": jobs},
        }
        lab.server.make(JOBSETS, body)
        await _moves(lab, "set-w")
        await lab.kill()

    run(story())


def test_quota_is_not_free_before_the_jobs_of_a_jobset_have_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its status says that nothing is active, and no pod is there: the Job controller is slow."""
    monkeypatch.setattr("tests.apiserver.job_controller.ACT_SECONDS", 60.0)

    async def story() -> None:
        lab = Operated()
        lab.late = 20.0
        lab.server.write(f"{JOB_KINDS}/jobset", {"spec": {"restore": "Templates"}})
        await lab.start()
        jobs = [{"name": "w", "template": {"spec": {"template": template(2)}}}]
        metadata = {"name": "set", "labels": {QUEUE_LABEL: "a"}}
        body = {"metadata": metadata, "spec": {"suspend": True, "replicatedJobs": jobs}}
        lab.server.make(JOBSETS, body)
        await lab.server.until(lambda: lab.used("a") == 2000 and not lab.child("set-w")["spec"]["suspend"])
        lab.server.write(f"{OWN}/clusterqueues/a", {"spec": {"stopPolicy": "HoldAndDrain"}})
        await lab.server.until(lambda: lab.server.find(f"{JOBSETS}/set")["spec"]["suspend"])
        await lab.server.until(lambda: lab.child("set-w")["spec"]["suspend"])
        assert lab.used("a") == 2000
        await lab.settled(lambda: lab.used("a") == 0)
        assert lab.excesses == []
        await lab.kill()

    run(story())


def test_a_trainjob_moves_with_its_jobset_and_its_jobs() -> None:
    async def story() -> None:
        lab = Operated(withinClusterQueue="LowerPriority")
        lab.jobs.lasts = lambda _: 500.0
        jobs = [{"name": "w", "template": {"spec": {"template": template(2, "low")}}}]
        spec = {"template": {"spec": {"replicatedJobs": jobs}}}
        lab.server.make(f"{TRAINER}/clustertrainingruntimes", {"metadata": {"name": "torch"}, "spec": spec})
        await lab.start()
        metadata = {"name": "train", "labels": {QUEUE_LABEL: "a"}}
        lab.server.make(
            TRAINJOBS, {"metadata": metadata, "spec": {"suspend": True, "runtimeRef": {"name": "torch"}}}
        )
        await _moves(lab, "train-w")
        owners = [raw["metadata"]["ownerReferences"][0] for raw in lab.server.objects["workloads"].values()]
        assert [owner["kind"] for owner in owners] == ["TrainJob"], "its JobSet and Job are counted with it"
        await lab.kill()

    run(story())


GROWS = [{"name": "w", "template": {"spec": {"template": template(3)}}}]
JOINED = [{"name": n, "template": {"spec": {"template": template(cpu)}}} for n, cpu in (("w", 2), ("x", 1))]


@pytest.mark.parametrize("later", [GROWS, JOINED], ids=["requests more", "has one more"])
def test_a_runtime_that_changes_between_admission_and_start_gives_no_more_than_was_admitted(
    later: list[Json],
) -> None:
    async def story() -> None:
        lab = Operated()
        lab.jobs.lasts = lambda _: 500.0
        runtimes = f"{TRAINER}/clustertrainingruntimes"

        def operate(plural: str, before: Json | None, after: Json | None) -> None:
            """As the operator, but too busy to make anything before the first start."""
            if plural == "trainjobs" and after and (TEAM, "train") not in lab.server.objects["jobsets"]:
                if after["spec"]["suspend"]:
                    return
                spec = {"template": {"spec": {"replicatedJobs": later}}}
                lab.server.write(f"{runtimes}/torch", {"spec": spec})
            lab._operate(plural, before, after)

        lab.server.ignore(lab._operate)
        lab.server.listen(operate)
        jobs = [{"name": "w", "template": {"spec": {"template": template(2)}}}]
        spec = {"template": {"spec": {"replicatedJobs": jobs}}}
        lab.server.make(runtimes, {"metadata": {"name": "torch"}, "spec": spec})
        await lab.start()
        metadata = {"name": "train", "labels": {QUEUE_LABEL: "a"}}
        lab.server.make(
            TRAINJOBS, {"metadata": metadata, "spec": {"suspend": True, "runtimeRef": {"name": "torch"}}}
        )
        await lab.settled(lambda: lab.used("a") == 3000)
        assert lab.runs("train-w") == 1
        await lab.kill()

    run(story())


RUNTIME = f"{TRAINER}/clustertrainingruntimes"


async def with_a_trainjob_that_runs() -> Operated:
    """A controller that has started TrainJob train of runtime torch: one pod of two CPUs."""
    lab = Operated()
    lab.jobs.lasts = lambda _: 500.0
    jobs = [{"name": "w", "template": {"spec": {"template": template(2)}}}]
    spec = {"template": {"spec": {"replicatedJobs": jobs}}}
    lab.server.make(RUNTIME, {"metadata": {"name": "torch"}, "spec": spec})
    await lab.start()
    metadata = {"name": "train", "labels": {QUEUE_LABEL: "a"}}
    lab.server.make(
        TRAINJOBS, {"metadata": metadata, "spec": {"suspend": True, "runtimeRef": {"name": "torch"}}}
    )
    await lab.server.until(lambda: lab.used("a") == 2000)
    await lab.settled(lambda: lab.runs("train-w") == 1)
    return lab


@pytest.mark.parametrize("gone", [False, True], ids=["has others", "is deleted"])
def test_a_trainjob_that_runs_goes_on_when_its_runtime_changes(gone: bool) -> None:
    """Its operator makes nothing of the new one before the next start."""

    async def story() -> None:
        lab = await with_a_trainjob_that_runs()
        if gone:
            lab.server.remove(f"{RUNTIME}/torch")
        else:
            later = {"template": {"spec": {"replicatedJobs": JOINED}}}
            lab.server.write(f"{RUNTIME}/torch", {"spec": later})
        await lab.kill()
        await lab.start(seed=2)
        lab.experiment("beside", control=1, probe=2)
        await lab.settled(lambda: lab.is_done("beside"))
        workloads = lab.server.objects["workloads"].items()
        [conditions] = [raw["status"]["conditions"] for key, raw in workloads if "train" in key[1]]
        assert "Evicted" not in [each["type"] for each in conditions]
        assert lab.runs("train-w") == 1
        await lab.kill()

    run(story())


def test_an_evicted_trainjob_that_cant_be_counted_any_more_keeps_nothing_of_its_flavors() -> None:
    async def story() -> None:
        lab = await with_a_trainjob_that_runs()
        refused = {"mlPolicy": {"torch": {"elasticPolicy": {"maxNodes": 4}}}}
        await lab.kill()
        lab.server.write(f"{RUNTIME}/torch", {"spec": refused})
        await lab.start(seed=2)
        lab.server.write(f"{OWN}/clusterqueues/a", {"spec": {"stopPolicy": "HoldAndDrain"}})
        await lab.settled(lambda: lab.used("a") == 0)
        left = lab.child("train-w")["spec"]["template"]
        assert not left["spec"].get("nodeSelector")
        assert WORKLOAD_LABEL not in left["metadata"].get("labels", {})
        assert not lab.server.find(f"{TRAINJOBS}/train")["spec"].get("runtimePatches")
        await lab.kill()

    run(story())


def test_a_trainjob_waits_for_its_runtime() -> None:
    async def story() -> None:
        lab = Operated()
        lab.server.ignore(lab._operate)
        await lab.start()
        spec = {"suspend": True, "runtimeRef": {"name": "torch"}}
        lab.server.make(
            TRAINJOBS, {"metadata": {"name": "train", "labels": {QUEUE_LABEL: "a"}}, "spec": spec}
        )
        await lab.server.until(lambda: "InvalidRequests" in lab.events("train"))
        words = "there is no ClusterTrainingRuntime torch, which its pods are described by"
        assert lab.events("train")["InvalidRequests"].endswith(words)
        jobs = [{"name": "w", "template": {"spec": {"template": template(2)}}}]
        runtime = {"metadata": {"name": "torch"}, "spec": {"template": {"spec": {"replicatedJobs": jobs}}}}
        lab.server.make(f"{TRAINER}/clustertrainingruntimes", runtime)
        await lab.settled(lambda: lab.used("a") == 2000)
        patches = lab.server.find(f"{TRAINJOBS}/train")["spec"]["runtimePatches"]
        assert [each["manager"] for each in patches] == ["admitter.dev/manager"]
        await lab.kill()

    run(story())


def test_jobs_that_no_operator_has_made_hold_up_no_eviction() -> None:
    """Any user may write the UID of a Job, or of an object under another kind, as that of an owner."""

    async def story() -> None:
        lab = Operated()
        lab.jobs.lasts = lambda _: 500.0
        await lab.start()
        lab.submit("plain", "a", 1)
        lab.experiment("lab", control=1, probe=1)
        await lab.settled(lambda: lab.runs("plain") == 1 and lab.runs("lab") == 2)
        owners = (("plain", "batch/v1", "Job"), ("lab", "no.such/v1", "Thing"))
        for name, version, kind in owners:
            owner = {"apiVersion": version, "kind": kind, "name": name, "controller": True}
            owner["uid"] = lab.job(name)["metadata"]["uid"]
            metadata = {"name": f"of-{name}", "ownerReferences": [owner]}
            lab.server.make(JOBS, {"metadata": metadata, "spec": {"parallelism": 1, "template": template(1)}})
        lab.server.write(f"{OWN}/clusterqueues/a", {"spec": {"stopPolicy": "HoldAndDrain"}})
        await lab.settled(lambda: lab.used("a") == 0)
        assert not any("suspend" in lab.job(f"of-{name}")["spec"] for name, *_ in owners)
        await lab.kill()

    run(story())


def test_a_trainjob_finds_a_runtime_of_a_kind_that_is_served_later() -> None:
    """Definitions of one group are applied one after the other."""

    async def story() -> None:
        lab = Operated()
        lab.server.ignore(lab._operate)
        served = lab.server.documents[TRAINER]
        alone = [each for each in served["resources"] if each["kind"] == "TrainJob"]
        lab.server.documents[TRAINER] = {"resources": alone}
        await lab.start()
        spec = {"suspend": True, "runtimeRef": {"name": "torch"}}
        labels = {QUEUE_LABEL: "a"}
        lab.server.make(TRAINJOBS, {"metadata": {"name": "train", "labels": labels}, "spec": spec})
        await lab.server.until(lambda: "InvalidRequests" in lab.events("train"))
        jobs = [{"name": "w", "template": {"spec": {"template": template(2)}}}]
        runtime = {"metadata": {"name": "torch"}, "spec": {"template": {"spec": {"replicatedJobs": jobs}}}}
        lab.server.make(f"{TRAINER}/clustertrainingruntimes", runtime)
        lab.server.documents[TRAINER] = served
        await lab.settled(lambda: lab.used("a") == 2000)
        await lab.kill()

    run(story())


def test_a_change_of_a_runtime_has_those_read_anew_that_name_it_and_no_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        lab, asked = Operated(), list[str]()
        lab.server.ignore(lab._operate)
        runtimes = f"{TRAINER}/clustertrainingruntimes"
        for name in ("one", "other"):
            jobs = [{"name": "w", "template": {"spec": {"template": template(2)}}}]
            said = {"template": {"spec": {"replicatedJobs": jobs}}}
            lab.server.make(runtimes, {"metadata": {"name": name}, "spec": said})
            spec = {"suspend": True, "runtimeRef": {"name": name}}
            metadata = {"name": f"of-{name}", "labels": {QUEUE_LABEL: "a"}}
            lab.server.make(TRAINJOBS, {"metadata": metadata, "spec": spec})
        lab.server.write(f"{OWN}/clusterqueues/a", {"spec": {"stopPolicy": "Hold"}})
        await lab.start()
        await lab.server.until(lambda: len(lab.server.objects["workloads"]) == 2)
        get = lab.server.get

        async def noted(path: str, query: Mapping[str, str] | None = None) -> Json:
            asked.append(path)
            return await get(path, query)

        monkeypatch.setattr(lab.server, "get", noted)
        lab.server.write(f"{runtimes}/other/status", {"status": {"seen": "yes"}})
        jobs = [{"name": "w", "template": {"spec": {"template": template(1)}}}]
        lab.server.write(f"{runtimes}/one", {"spec": {"template": {"spec": {"replicatedJobs": jobs}}}})

        def asks() -> str:
            named = lab.server.objects["workloads"].values()
            [workload] = [
                each for each in named if each["metadata"]["ownerReferences"][0]["name"] == "of-one"
            ]
            return str(workload["spec"]["podSets"][0]["requests"]["cpu"])

        await lab.server.until(lambda: asks() == "1")
        assert [path for path in asked if "/trainjobs" in path] == [f"{TRAINJOBS}/of-one"]
        await lab.kill()

    run(story())


async def _moves(lab: Operated, name: str) -> None:
    """An object runs on red nodes, is evicted for Experiments that need those, and runs on blue ones."""
    await lab.server.until(lambda: (TEAM, name) in lab.server.objects["jobs"])
    await lab.settled(lambda: lab.runs(name) == 1)
    assert lab.child(name)["spec"]["template"]["spec"]["nodeSelector"] == {"color": "red"}
    lab.server.write(f"{OWN}/clusterqueues/a", {"spec": {"stopPolicy": "HoldAndDrain"}})
    await lab.settled(lambda: lab.used("a") == 0)
    assert lab.runs(name) == 0
    left = lab.child(name)["spec"]["template"]
    assert not left["spec"].get("nodeSelector")
    assert WORKLOAD_LABEL not in left["metadata"].get("labels", {})
    flavors = [{"name": "blue", "quota": {"min": "4"}}]
    lab.server.write(
        f"{OWN}/clusterqueues/a",
        {"spec": {"stopPolicy": None, "resources": [{"name": "cpu", "flavors": flavors}]}},
    )
    await lab.settled(lambda: lab.runs(name) == 1)
    assert lab.child(name)["spec"]["template"]["spec"]["nodeSelector"] == {"color": "blue"}
    assert lab.used("a") == 2000
    assert lab.excesses == []
