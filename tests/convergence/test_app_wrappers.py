"""AppWrappers: an admission goes beside their templates, which never change, and leaves nothing."""

import copy
from typing import Any

import pytest

from admitter.cache.world import OWN
from admitter.client.errors import api_error
from admitter.names import INJECTED_ANNOTATION, QUEUE_LABEL, WORKLOAD_LABEL
from tests.apiserver.experiments import DEFINITIONS, JOB_KINDS
from tests.apiserver.loop import run
from tests.convergence.lab import Lab, template
from tests.convergence.scene import JOBS, TEAM
from tests.convergence.test_children import SHIPPED, definition

Json = dict[str, Any]

WRAPPERS = f"/apis/workload.codeflare.dev/v1beta2/namespaces/{TEAM}/appwrappers"
PATH = "template.spec.template"


def component(name: str, cpu: int, **pod: Any) -> Json:
    """A Job in an AppWrapper."""
    made = template(cpu)
    made["spec"] |= pod
    spec = {"parallelism": 1, "completions": 1, "template": made}
    return {"template": {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}}


def _fixed_templates(plural: str, before: Json | None, after: Json | None) -> None:
    """As the webhook of AppWrapper v1.2.2: `podSetInfos` may change at any time, and no template ever."""
    if plural == "appwrappers" and before is not None and after is not None:
        old, new = ([each["template"] for each in raw["spec"]["components"]] for raw in (before, after))
        if old != new:
            raise api_error(422, {"reason": "Invalid", "message": "attempt to change immutable field"})


class Wrapped(Lab):
    """A lab with AppWrappers, and an operator that is as simple as can be.

    Attributes:
        paths: what it finds in each component: the paths of its pod templates.
    """

    def __init__(self, paths: list[str] | None = None) -> None:
        super().__init__()
        self.paths = [PATH] if paths is None else paths
        self.jobs.lasts = lambda _: 500.0
        self.server.make(DEFINITIONS, definition("appwrapper"))
        for name in ("job", "appwrapper"):
            self.server.make(JOB_KINDS, SHIPPED[name])
        self.server.policies.append(_fixed_templates)
        self.server.listen(self.operate)

    def operate(self, plural: str, _before: Json | None, after: Json | None) -> None:
        if plural != "appwrappers" or after is None:
            return
        name, components = after["metadata"]["name"], after["spec"]["components"]
        if "status" not in after:
            told = [{"podSets": [{"path": path} for path in self.paths]} for _ in components]
            self._say(name, componentStatus=told)
        for each in components:
            job = each["template"]["metadata"]["name"]
            there = (TEAM, job) in self.server.objects["jobs"]
            if after["spec"]["suspend"] and there:
                self.server.remove(f"{JOBS}/{job}")
            elif not after["spec"]["suspend"] and not there:
                self._make(after, each)
        self._say(name, conditions=[self._deployed(not after["spec"]["suspend"])])

    def _make(self, wrapper: Json, part: Json) -> None:
        """The Job of a component, with what is said beside it."""
        spec = copy.deepcopy(part["template"]["spec"])
        made, info = spec["template"], part["podSetInfos"][self.paths.index(PATH)]
        pod = made["spec"]
        for key, value in (info.get("nodeSelector") or {}).items():
            assert pod.setdefault("nodeSelector", {}).setdefault(key, value) == value, "a conflict is fatal"
        pod["tolerations"] = [*pod.get("tolerations", ()), *info.get("tolerations", ())]
        made["metadata"] = {"labels": info["labels"], "annotations": info["annotations"]}
        name, uid = (wrapper["metadata"][key] for key in ("name", "uid"))
        version = "workload.codeflare.dev/v1beta2"
        owner = {"apiVersion": version, "kind": "AppWrapper", "name": name, "uid": uid, "controller": True}
        metadata = {"name": part["template"]["metadata"]["name"], "ownerReferences": [owner]}
        self.server.make(JOBS, {"metadata": metadata, "spec": spec})

    def _say(self, name: str, **status: Any) -> None:
        self.server.write(f"{WRAPPERS}/{name}/status", {"status": status})

    def _deployed(self, deployed: bool) -> Json:
        return {"type": "ResourcesDeployed", "status": str(deployed)}

    def wrap(self, name: str, *components: Json) -> None:
        """A user makes an AppWrapper, which a policy stops."""
        metadata = {"name": name, "labels": {QUEUE_LABEL: "a"}}
        spec = {"suspend": True, "components": list(components)}
        self.server.make(WRAPPERS, {"metadata": metadata, "spec": spec})

    def runs(self, job: str) -> int:
        return super().runs(job) if (TEAM, job) in self.server.objects["jobs"] else 0

    def job(self, name: str) -> Json:
        is_wrapper = (TEAM, name) in self.server.objects["appwrappers"]
        return self.wrapper(name) if is_wrapper else super().job(name)

    def wrapper(self, name: str) -> Json:
        return self.server.find(f"{WRAPPERS}/{name}")

    def pod_spec(self, job: str) -> Json:
        found: Json = self.server.find(f"{JOBS}/{job}")["spec"]["template"]["spec"]
        return found

    def drain(self) -> None:
        self.server.write(f"{OWN}/clusterqueues/a", {"spec": {"stopPolicy": "HoldAndDrain"}})

    def offer(self, color: str) -> None:
        flavors = [{"name": color, "quota": {"min": "6"}}]
        resources = [{"name": "cpu", "flavors": flavors}]
        self.server.write(f"{OWN}/clusterqueues/a", {"spec": {"stopPolicy": None, "resources": resources}})


OWN_TOLERATION: Json = {"key": "mine", "operator": "Exists"}


def test_an_appwrapper_runs_on_two_flavors_and_later_elsewhere_with_nothing_of_the_first() -> None:
    async def story() -> None:
        lab = Wrapped()
        taints = [{"key": "color", "value": "red", "effect": "NoSchedule"}]
        tolerations = [{"key": "color", "operator": "Exists"}]
        lab.server.write(
            f"{OWN}/resourceflavors/red", {"spec": {"nodeTaints": taints, "tolerations": tolerations}}
        )
        await lab.start()
        own = {"nodeSelector": {"disk": "fast"}, "tolerations": [OWN_TOLERATION]}
        lab.wrap("both", component("first", 2, **own), component("second", 3))
        before = lab.wrapper("both")["spec"]
        await lab.settled(lambda: lab.used("a") == 5000 and lab.runs("first") == lab.runs("second") == 1)
        assert lab.pod_spec("first")["nodeSelector"] == {"disk": "fast", "color": "red"}
        assert lab.pod_spec("first")["tolerations"] == [OWN_TOLERATION, *tolerations]
        assert lab.pod_spec("second")["nodeSelector"] == {"color": "blue"}
        first, second = (each["podSetInfos"][0] for each in lab.wrapper("both")["spec"]["components"])
        assert first["nodeSelector"] == {"color": "red"}
        assert first["tolerations"] == tolerations
        assert "tolerations" not in second
        lab.drain()
        await lab.settled(lambda: lab.used("a") == 0)
        assert lab.wrapper("both")["spec"] == before
        assert INJECTED_ANNOTATION not in lab.wrapper("both")["metadata"]["annotations"]
        lab.offer("blue")
        await lab.settled(lambda: lab.runs("first") == lab.runs("second") == 1)
        assert lab.pod_spec("first")["nodeSelector"] == {"disk": "fast", "color": "blue"}
        assert lab.pod_spec("first")["tolerations"] == [OWN_TOLERATION]
        assert lab.excesses == []
        await lab.kill()

    run(story())


def test_an_appwrapper_starts_when_its_operator_has_told_its_pod_sets() -> None:
    async def story() -> None:
        lab = Wrapped()
        lab.server.ignore(lab.operate)
        await lab.start()
        lab.wrap("late", component("job", 2))
        await lab.server.until(lambda: lab.used("a") == 2000)
        await lab.settled()
        assert lab.wrapper("late")["spec"]["suspend"] is True
        assert lab.condition("late", "Evicted") == ""
        lab.server.listen(lab.operate)
        lab._say("late", componentStatus=[{"podSets": [{"path": PATH}]}])
        await lab.settled(lambda: lab.runs("job") == 1)
        await lab.kill()

    run(story())


@pytest.mark.parametrize("paths", [["template.spec.other", PATH], [PATH, "template.spec.other"]], ids=str)
def test_what_a_template_gets_stands_where_the_operator_has_told(paths: list[str]) -> None:
    async def story() -> None:
        lab = Wrapped(paths)
        await lab.start()
        lab.wrap("two", component("job", 2))
        await lab.settled(lambda: lab.runs("job") == 1)
        infos = lab.wrapper("two")["spec"]["components"][0]["podSetInfos"]
        assert [bool(info) for info in infos] == [path == PATH for path in paths]
        await lab.kill()

    run(story())


def test_an_appwrapper_of_which_the_operator_finds_no_pods_waits_with_what_to_do() -> None:
    async def story() -> None:
        lab = Wrapped(paths=[])
        await lab.start()
        lab.wrap("unknown", component("job", 2))
        await lab.server.until(lambda: "NotStarted" in lab.events("unknown"))
        words = "name template.spec.template as a path in spec.components[0].podSets"
        assert words in lab.events("unknown")["NotStarted"]
        await lab.settled(lambda: lab.used("a") == 0)
        assert lab.wrapper("unknown")["spec"]["suspend"] is True
        await lab.kill()

    run(story())


def test_infos_of_a_user_are_refused_and_stay() -> None:
    async def story() -> None:
        lab = Wrapped()
        await lab.start()
        infos = [{"nodeSelector": {"color": "red"}}]
        lab.wrap("own", component("job", 2) | {"podSetInfos": infos})
        await lab.server.until(lambda: "InvalidRequests" in lab.events("own"))
        assert "podSetInfos of a component are written by Admitter" in lab.events("own")["InvalidRequests"]
        assert lab.used("a") == 0
        assert lab.wrapper("own")["spec"]["components"][0]["podSetInfos"] == infos
        await lab.kill()

    run(story())


def test_an_appwrapper_that_cant_be_counted_any_more_keeps_nothing_of_its_flavors() -> None:
    """On a server without the webhook and the policies a user breaks a component."""

    async def story() -> None:
        lab = Wrapped()
        lab.server.policies.remove(_fixed_templates)
        await lab.start()
        lab.wrap("broken", component("job", 2))
        await lab.settled(lambda: lab.runs("job") == 1)
        [kept] = copy.deepcopy(lab.wrapper("broken")["spec"]["components"])
        assert WORKLOAD_LABEL in kept["podSetInfos"][0]["labels"]
        kept["template"]["spec"]["template"]["spec"].pop("containers")
        lab.server.write(f"{WRAPPERS}/broken", {"spec": {"components": [kept]}})
        lab.drain()
        await lab.settled(lambda: lab.used("a") == 0)
        assert "podSetInfos" not in lab.wrapper("broken")["spec"]["components"][0]
        await lab.kill()

    run(story())
