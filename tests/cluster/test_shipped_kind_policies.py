"""Policies of shipped kinds, on the definitions that their operators bring; the controller is played."""

import asyncio
import copy
import json
from collections.abc import Callable

import pytest
from rich.console import Console

from admitter.client.transport import HttpTransport
from admitter.install.apply import ApplyOutcome, install_kinds
from admitter.install.kinds import AUTO, chosen_for, installed_for, shipped
from admitter.names import BOUNDS_ANNOTATION, CONTROLLER_USER, WORKLOAD_LABEL
from admitter.sandbox.cluster import Cluster, KubectlError
from admitter.sandbox.control_plane import ControlPlane
from admitter.sandbox.operators.definitions import OPERATORS, chosen
from admitter.sandbox.operators.manifests import DEFINITION, rendered
from admitter.sandbox.operators.programs import ensure_operators
from tests.cluster.described import job_set, ray_cluster, train_job, training_runtime
from tests.cluster.objects import Json
from tests.cluster.policies import await_validation
from tests.cluster.waiting import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(600)]

REMEDY = r"admitter pause \w+/\w+ -n [-\w]+, change it once it is stopped, then admitter resume \w+/\w+ -n"
OTHER_PODS = f"can't describe other pods, or lose what Admitter has put into it: {REMEDY}"


@pytest.fixture(scope="module")
def described(own: ControlPlane) -> ControlPlane:
    """A cluster with the kinds of three operators and what is installed for them: their policies compile."""
    for name, built in ensure_operators(Console(stderr=True), chosen(["kuberay", "trainer"])).items():
        roots = (rendered(own.kubectl, built.manifests / root) for root in OPERATORS[name].roots)
        kinds = [each for objects in roots for each in objects if each["kind"] == DEFINITION]
        content = json.dumps({"apiVersion": "v1", "kind": "List", "items": kinds})
        own.run_kubectl("apply", "--server-side", "--force-conflicts", "-f-", content=content)
    installed = asyncio.run(_install(own))
    await_validation(own)
    assert {each.name for each in installed if each.kind == "JobKind"} == {
        *("job", "jobset", "raycluster", "rayjob", "trainjob")
    }
    return own


async def _install(cluster: Cluster) -> list[ApplyOutcome]:
    async with await HttpTransport.connect(cluster.kubeconfig, cluster.context) as transport:
        return await install_kinds(transport, await chosen_for(transport, AUTO))


def start(cluster: Cluster, manifest: Json) -> Callable[..., Json]:
    """Make an object and admit it; gives what changes it by a JSON patch."""
    content, scope = json.dumps(manifest), f"--namespace={manifest['metadata']['namespace']}"

    def is_stopped() -> bool:
        dry = ["create", "-f-", "--dry-run=server", "--output=json"]
        try:
            return bool(json.loads(cluster.run_kubectl(*dry, content=content))["spec"].get("suspend"))
        except KubectlError:  # its kind is new to the API server
            return False

    eventually(is_stopped, what="a policy in force")
    cluster.run_kubectl("create", "-f-", content=content)
    where = [f"{manifest['kind'].lower()}/{manifest['metadata']['name']}", scope]

    def change(changes: list[Json], *more: str) -> Json:
        patch = ["patch", *where, "--type=json", f"--patch={json.dumps(changes)}", "--output=json", *more]
        found: Json = json.loads(cluster.run_kubectl(*patch))
        return found

    running = [{"op": "replace", "path": "/spec/suspend", "value": False}]
    assert change(running, f"--as={CONTROLLER_USER}")["spec"]["suspend"] is False
    assert change([{"op": "replace", "path": "/spec/suspend", "value": True}])["spec"]["suspend"] is False
    return change


def replaced(path: str, value: object) -> list[Json]:
    return [{"op": "replace", "path": path, "value": value}]


def test_a_job_set_that_was_admitted_grows_in_none_of_its_jobs(described: ControlPlane) -> None:
    change = start(described, job_set("default", "train"))
    jobs = "/spec/replicatedJobs"
    grows = f"so spec.replicatedJobs can't grow: {REMEDY}"
    for path in (f"{jobs}/1/replicas", f"{jobs}/1/template/spec/parallelism"):
        with pytest.raises(KubectlError, match=grows):
            change([*replaced(path, 4), *replaced(f"{jobs}/1/template/spec/completions", 8)])
    more = copy.deepcopy(job_set("default", "train")["spec"]["replicatedJobs"][0]) | {"name": "more"}
    with pytest.raises(KubectlError, match=grows):
        change([{"op": "add", "path": f"{jobs}/-", "value": more}])
    cpu = f"{jobs}/0/template/spec/template/spec/containers/0/resources/requests/cpu"
    with pytest.raises(KubectlError, match=f"so spec.replicatedJobs {OTHER_PODS}"):
        change(replaced(cpu, "64"))
    assert change(replaced(f"{jobs}/1/replicas", 1))["spec"]["replicatedJobs"][1]["replicas"] == 1
    assert len(change([{"op": "remove", "path": f"{jobs}/0"}])["spec"]["replicatedJobs"]) == 1


def test_a_ray_cluster_that_was_admitted_grows_in_none_of_its_groups(described: ControlPlane) -> None:
    change = start(described, ray_cluster("default", "tune"))
    group = "/spec/workerGroupSpecs/0"
    grows = f"so spec.workerGroupSpecs can't grow: {REMEDY}"
    for path in (f"{group}/replicas", f"{group}/minReplicas"):
        with pytest.raises(KubectlError, match=grows):
            change(replaced(path, 3))
    with pytest.raises(KubectlError, match=grows):
        change([{"op": "add", "path": f"{group}/numOfHosts", "value": 2}])
    autoscaler = [{"op": "add", "path": "/spec/enableInTreeAutoscaling", "value": True}]
    with pytest.raises(KubectlError, match="can't describe other pods"):
        change(autoscaler)
    assert change(replaced(f"{group}/maxReplicas", 1))["spec"]["workerGroupSpecs"][0]["maxReplicas"] == 1


def test_a_ray_cluster_with_a_bound_may_be_asked_for_more_replicas_and_for_nothing_else(
    described: ControlPlane,
) -> None:
    change, group = start(described, ray_cluster("default", "bounded")), "/spec/workerGroupSpecs/0"
    grows, mark = f"so spec.workerGroupSpecs can't grow: {REMEDY}", "/metadata/annotations"
    unbounded = {"op": "add", "path": mark, "value": {BOUNDS_ANNOTATION: '{"small":{"bound":8}}'}}
    with pytest.raises(KubectlError, match=grows):
        change([unbounded])
    change([unbounded, *replaced(f"{group}/maxReplicas", 2)], f"--as={CONTROLLER_USER}")
    asked = change(replaced(f"{group}/replicas", 5))["spec"]["workerGroupSpecs"][0]
    assert (asked["replicas"], asked["maxReplicas"]) == (5, 2)
    for path in (f"{group}/maxReplicas", f"{group}/minReplicas"):
        with pytest.raises(KubectlError, match=grows):
            change(replaced(path, 1))
    with pytest.raises(KubectlError, match=grows):
        change([{"op": "add", "path": f"{group}/numOfHosts", "value": 2}])
    with pytest.raises(KubectlError, match=grows):
        change([{"op": "remove", "path": f"{mark}/{BOUNDS_ANNOTATION.replace('/', '~1')}"}])
    ending = {"op": "add", "path": f"{group}/scaleStrategy", "value": {"workersToDelete": ["a"]}}
    assert change([ending])["spec"]["workerGroupSpecs"][0]["scaleStrategy"] == ending["value"]
    assert change([{"op": "add", "path": f"{group}/suspend", "value": True}])["spec"]["suspend"] is False
    with pytest.raises(KubectlError, match=grows):
        change(replaced(f"{group}/suspend", False))


def test_a_train_job_that_was_admitted_gets_no_patch_of_its_runtime(described: ControlPlane) -> None:
    change = start(described, train_job("default", "fit"))
    template = {"spec": {"nodeSelector": {"instance-type": "spot"}}}
    jobs = [{"name": "node", "template": {"spec": {"template": template}}}]
    spec = {"template": {"spec": {"replicatedJobs": jobs}}}
    patch = {"manager": "example.com/own", "trainingRuntimeSpec": spec}
    with pytest.raises(KubectlError, match=f"so spec.runtimePatches can't change: {REMEDY}"):
        change([{"op": "add", "path": "/spec/runtimePatches", "value": [patch]}])


def test_a_train_job_has_no_marks_of_an_admission_in_its_patches(described: ControlPlane) -> None:
    """Its operator would put them into pods, and they would be counted as those of another Workload."""
    forged = train_job("default", "forged")
    del forged["metadata"]["labels"]
    template = {"metadata": {"labels": {WORKLOAD_LABEL: "of-another"}}}
    jobs = [{"name": "node", "template": {"spec": {"template": template}}}]
    spec = {"template": {"spec": {"replicatedJobs": jobs}}}
    for manager in ("admitter.dev/manager", "example.com/own"):
        forged["spec"]["runtimePatches"] = [{"manager": manager, "trainingRuntimeSpec": spec}]
        with pytest.raises(KubectlError, match="put into pod templates by Admitter's controller alone"):
            described.run_kubectl("create", "-f-", "--dry-run=server", content=json.dumps(forged))
    change = start(described, train_job("default", "marked"))
    by = f"--as={CONTROLLER_USER}"
    patches = forged["spec"]["runtimePatches"]
    change([{"op": "add", "path": "/spec/runtimePatches", "value": patches}], by)
    labelled = change([{"op": "add", "path": "/metadata/labels/team", "value": "a"}])
    assert labelled["metadata"]["labels"]["team"] == "a"


def test_a_ray_cluster_has_no_marks_of_an_admission_beside_its_templates(described: ControlPlane) -> None:
    """KubeRay adds the labels of a group to those of its template."""
    refused, marks = "put into pod templates by Admitter's controller alone", {WORKLOAD_LABEL: "of-another"}
    for place in ("headGroupSpec", "workerGroupSpecs"):
        forged = ray_cluster("default", "forged")
        del forged["metadata"]["labels"]
        group = forged["spec"][place]
        (group if place == "headGroupSpec" else group[0])["labels"] = marks
        with pytest.raises(KubectlError, match=refused):
            described.run_kubectl("create", "-f-", "--dry-run=server", content=json.dumps(forged))
    change = start(described, ray_cluster("default", "labelled"))
    group = "/spec/workerGroupSpecs/0"
    template = [{"op": "add", "path": f"{group}/template/metadata", "value": {"labels": marks}}]
    change(template, f"--as={CONTROLLER_USER}")
    with pytest.raises(KubectlError, match=refused):
        change([{"op": "add", "path": f"{group}/labels", "value": marks}])
    assert change([{"op": "add", "path": "/metadata/labels/team", "value": "a"}])["metadata"]["labels"][
        "team"
    ]


def test_a_runtime_has_no_marks_of_an_admission(described: ControlPlane) -> None:
    made = training_runtime("default", "forged")
    jobs = made["spec"]["template"]["spec"]["replicatedJobs"]
    jobs[1]["template"]["spec"]["template"]["metadata"] = {"labels": {WORKLOAD_LABEL: "of-another"}}
    create = ["create", "-f-", "--dry-run=server"]

    def refusal() -> str:
        try:
            described.run_kubectl(*create, content=json.dumps(made))
        except KubectlError as error:
            return str(error)
        return ""

    eventually(lambda: "put into pod templates by Admitter's controller alone" in refusal(), what="a refusal")
    del jobs[1]["template"]["spec"]["template"]["metadata"]
    assert refusal() == ""


def test_the_api_server_takes_the_policies_of_all_shipped_kinds(control_plane: Cluster) -> None:
    made = [each for each in installed_for(shipped()) if "Policy" in each["kind"]]
    for each in made:
        each["metadata"]["name"] += "-tried"  # other tests install some of them
    content = json.dumps({"apiVersion": "v1", "kind": "List", "items": made})
    answer = control_plane.run_kubectl("create", "--dry-run=server", "-f-", content=content)
    assert len(answer.splitlines()) == len(made)
