"""What users may do to objects of a described kind, and what is kept from them; the controller is played."""

import asyncio
import copy
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from admitter.client.transport import HttpTransport
from admitter.install.apply import install_kinds
from admitter.names import CONTROLLER_USER
from admitter.sandbox.cluster import Cluster, KubectlError
from admitter.sandbox.control_plane import ControlPlane
from tests.cluster.direct import DirectCluster
from tests.cluster.objects import Json, job
from tests.cluster.people import Person
from tests.cluster.policies import await_validation
from tests.cluster.waiting import eventually
from tests.kinds.described import definition, experiment, trial

pytestmark = pytest.mark.cluster

OPERATOR = "system:serviceaccount:lab:operator"
MARKS: Json = {
    "labels": {"admitter.dev/workload": "experiment-trial", "admitter.dev/cluster-queue": "total"},
    "annotations": {"admitter.dev/workload-uid": "u"},
}
REMEDY = r"admitter pause \w+/\w+ -n [-\w]+, change it once it is stopped, then admitter resume \w+/\w+ -n"
OTHER_PODS = f"can't describe other pods, or lose what Admitter has put into it: {REMEDY}"
ROLE: Json = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "lab", "labels": {"rbac.authorization.k8s.io/aggregate-to-edit": "true"}},
    "rules": [{"apiGroups": ["lab.example.com"], "resources": ["*"], "verbs": ["*"]}],
}


@pytest.fixture(scope="module")
def lab(own: ControlPlane) -> ControlPlane:
    """A cluster with a kind of its own, which is described."""
    own.run_kubectl("create", "-f-", content=json.dumps(definition()))
    own.run_kubectl("create", "-f-", content=json.dumps(ROLE))
    own.await_definitions("experiments.lab.example.com")
    kind = experiment(children=[{"group": "batch", "kind": "Job"}], operators=[OPERATOR])
    asyncio.run(_install(own, kind))
    await_validation(own)
    own.run_kubectl("create", "namespace", "lab")
    role, account = "--clusterrole=cluster-admin", "--serviceaccount=lab:operator"
    own.run_kubectl("create", "serviceaccount", "operator", "--namespace=lab")
    own.run_kubectl("create", "rolebinding", "operator", role, account, "--namespace=lab")
    return own


async def _install(cluster: Cluster, kind: Json) -> None:
    async with await HttpTransport.connect(cluster.kubeconfig, cluster.context) as transport:
        await install_kinds(transport, {kind["metadata"]["name"]: kind})


@pytest.fixture
def space(lab: ControlPlane, tmp_path: Path) -> Iterator["Space"]:
    """A namespace of the test's own, with a user and the operator."""
    name = f"kinds-{uuid4().hex[:6]}"
    lab.run_kubectl("create", "namespace", name)
    scope = f"--namespace={name}"
    lab.run_kubectl("create", "serviceaccount", "user", scope)
    for account, role in ((f"{name}:user", "edit"), ("lab:operator", "edit")):
        binding = account.replace(":", "-")
        lab.run_kubectl(
            "create", "rolebinding", binding, f"--clusterrole={role}", f"--serviceaccount={account}", scope
        )
    made = Space(lab, name, tmp_path)
    eventually(made.policies_are_in_force, what="policies in force")
    yield made
    lab.run_kubectl("delete", "namespace", name, "--wait=false")


class Space:
    """A namespace, and the accounts that do something in it."""

    def __init__(self, cluster: ControlPlane, name: str, folder: Path) -> None:
        self.cluster, self.name = cluster, name
        self.user = self._as(name, "user", folder)
        self.operator = self._as("lab", "operator", folder)

    def _as(self, namespace: str, name: str, folder: Path) -> Cluster:
        kubeconfig = self.cluster.service_account_kubeconfig(namespace, name, folder / name)
        return DirectCluster(kubectl=self.cluster.kubectl, kubeconfig=kubeconfig)

    def policies_are_in_force(self) -> bool:
        dry = ["create", "-f-", "--dry-run=server", "--output=json"]
        try:
            made = json.loads(self.user.run_kubectl(*dry, content=json.dumps(self.trial("probe"))))
        except KubectlError:  # the kind is new to the API server
            return False
        return made["spec"].get("paused") is True

    def trial(self, name: str = "trial") -> Json:
        made = trial(name)
        made["metadata"]["namespace"] = self.name
        return made

    def make(self, manifest: Json, by: Cluster | None = None) -> Json:
        made = (by or self.user).run_kubectl("create", "-f-", "--output=json", content=json.dumps(manifest))
        found: Json = json.loads(made)
        return found

    def patch(self, what: str, change: Json, by: Cluster | None = None, *more: str) -> Json:
        where = f"--namespace={self.name}"
        patch = [
            "patch",
            what,
            where,
            "--type=merge",
            f"--patch={json.dumps(change)}",
            "--output=json",
            *more,
        ]
        found: Json = json.loads((by or self.user).run_kubectl(*patch))
        return found

    def admitted(self, name: str = "trial") -> Json:
        """An object that the controller has started."""
        made = self.make(self.trial(name))
        spec: Json = {"paused": False, "control": copy.deepcopy(made["spec"]["control"])}
        spec["probe"] = copy.deepcopy(made["spec"]["probe"])
        for template in (spec["control"], spec["probe"]["template"]):
            template["metadata"] = MARKS
        return self.patch(f"experiment/{name}", {"spec": spec}, self.cluster, f"--as={CONTROLLER_USER}")

    def scale(self, name: str, copies: int) -> int:
        """The user scales an object; gives how many copies it has then."""
        scope = f"--namespace={self.name}"
        self.user.run_kubectl("scale", f"experiment/{name}", f"--replicas={copies}", scope)
        found: int = self.cluster.read("experiment", name, scope)["spec"]["probe"]["copies"]
        return found

    def can_make(self, manifest: Json) -> bool:
        """Whether the user would be let make an object."""
        try:
            self.user.run_kubectl("create", "-f-", "--dry-run=server", content=json.dumps(manifest))
        except KubectlError:
            return False
        return True

    def child(
        self, owner: Json, name: str = "child", *, marked: bool = True, queue: str | None = None
    ) -> Json:
        """A running Job that belongs to an object, as its operator would make it."""
        made = job(self.name, name, queue=queue, suspend=False)
        owned = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True}
        made["metadata"]["ownerReferences"] = [
            {**owned, "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
        ]
        if marked:
            made["spec"]["template"]["metadata"] = MARKS
        return made


def test_an_object_that_names_a_queue_is_stopped_and_only_the_controller_starts_it(space: Space) -> None:
    assert space.make(space.trial())["spec"]["paused"] is True
    assert space.patch("experiment/trial", {"spec": {"paused": False}})["spec"]["paused"] is True
    free = space.trial("free")
    del free["metadata"]["labels"]
    assert "paused" not in space.make(free)["spec"]
    joins = {"metadata": {"labels": {"admitter.dev/queue-name": "main"}}, "spec": {"paused": False}}
    assert space.patch("experiment/free", joins)["spec"]["paused"] is True
    assert space.admitted("other")["spec"]["paused"] is False
    assert space.patch("experiment/other", {"spec": {"paused": True}})["spec"]["paused"] is False


def test_what_is_probably_not_meant_gets_a_warning(space: Space) -> None:
    def warned(manifest: Json) -> str:
        """What the API server warns of when an object is applied, without changing anything."""
        apply = [str(space.cluster.kubectl), f"--kubeconfig={space.user.kubeconfig}", "apply", "-f-"]
        content = json.dumps(manifest)
        done = subprocess.run(
            [*apply, "--dry-run=server"], input=content, text=True, capture_output=True, check=True
        )
        return done.stderr

    tiny = space.trial()
    tiny["spec"]["probe"]["template"]["spec"]["containers"][0]["resources"]["requests"]["memory"] = "128m"
    words = "Warning: .*a container requests less than one MiB of memory"
    eventually(lambda: re.search(words, warned(tiny)) is not None, what="a warning of memory")
    assert "Warning" not in warned(space.trial())
    space.user.run_kubectl("apply", "-f-", content=json.dumps(space.trial()))
    starts = space.trial()
    starts["spec"]["paused"] = False
    told = warned(starts)
    assert "spec.paused of a queued Experiment is set by Admitter alone, and stays true: it starts" in told
    assert f"To pause or resume it: admitter pause experiment/trial -n {space.name}, admitter resume" in told
    assert "Warning" not in warned(space.trial())


def test_what_was_admitted_does_not_grow_or_become_something_else(space: Space) -> None:
    started = space.admitted()
    with pytest.raises(KubectlError, match=f"so spec.probe.template can't grow: {REMEDY}"):
        space.patch("experiment/trial", {"spec": {"probe": {"copies": 3}}})
    assert space.patch("experiment/trial", {"spec": {"probe": {"copies": 1}}})["spec"]["probe"]["copies"] == 1
    other = copy.deepcopy(started["spec"]["control"])
    other["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "64"
    with pytest.raises(KubectlError, match=f"so spec.control {OTHER_PODS}"):
        space.patch("experiment/trial", {"spec": {"control": other}})
    for queue in ("other", None):
        with pytest.raises(KubectlError, match=f"an admitted Experiment stays in its queue: {REMEDY}"):
            space.patch("experiment/trial", {"metadata": {"labels": {"admitter.dev/queue-name": queue}}})


def test_no_user_marks_a_template_as_admitted(space: Space) -> None:
    forged = space.trial()
    forged["spec"]["probe"]["template"]["metadata"] = MARKS
    del forged["metadata"]["labels"]
    with pytest.raises(KubectlError, match="put into pod templates by Admitter's controller alone"):
        space.make(forged)


def test_a_user_needs_the_right_to_submit(space: Space) -> None:
    rule = {"apiGroups": ["lab.example.com"], "resources": ["experiments"], "verbs": ["create"]}
    other = Person(space.cluster, space.name, "other").may(rule)
    with pytest.raises(KubectlError, match="may not submit to queue main in namespace"):
        other.makes(space.trial(), "--dry-run=server")


def test_a_child_is_free_only_if_its_operator_has_made_it_for_what_was_admitted(space: Space) -> None:
    owner = space.admitted()
    assert space.make(space.child(owner), space.operator)["spec"]["suspend"] is False
    named = space.make(space.child(owner, "named", queue="main"), space.operator)
    assert named["spec"]["suspend"] is False
    waits = space.make(space.child(owner, "waits", queue="main", marked=False), space.operator)
    assert waits["spec"]["suspend"] is True
    assert space.patch("job/waits", {"spec": {"suspend": False}}, space.operator)["spec"]["suspend"] is True


@pytest.mark.parametrize("queue", [None, "main"])
def test_a_user_makes_no_child_and_changes_none(space: Space, queue: str | None) -> None:
    owner = space.admitted()
    refused = "what belongs to Experiment objects is made and changed by their operator alone"
    for marked in (True, False):
        with pytest.raises(KubectlError, match=f"{refused}|by Admitter's controller alone"):
            space.make(space.child(owner, "forged", marked=marked, queue=queue))
    plain = space.make(job(space.name, "plain", queue=queue))
    references = space.child(owner)["metadata"]["ownerReferences"]
    with pytest.raises(KubectlError, match=refused):
        space.patch("job/plain", {"metadata": {"ownerReferences": references}})
    assert plain["spec"]["suspend"] is True
    space.make(space.child(owner, queue=queue), space.operator)
    changes: list[Json] = [{"spec": {"parallelism": 8}}, {"metadata": {"ownerReferences": []}}]
    for change in changes:
        with pytest.raises(KubectlError, match=f"{refused}|parallelism of an admitted Job can't grow"):
            space.patch("job/child", change)
    if queue is None:
        with pytest.raises(KubectlError, match=refused):
            space.patch("job/child", {"spec": {"suspend": True}})
    else:
        assert space.patch("job/child", {"spec": {"suspend": True}})["spec"]["suspend"] is False
    assert space.patch("job/child", {"metadata": {"annotations": {"a": "b"}}})["metadata"]["annotations"]


def test_only_an_operator_makes_counted_pods(space: Space) -> None:
    owner = space.admitted()
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **MARKS,
            "name": "counted",
            "namespace": space.name,
            "ownerReferences": space.child(owner)["metadata"]["ownerReferences"],
        },
        "spec": {"containers": [{"name": "main", "image": "work"}]},
    }
    with pytest.raises(KubectlError, match="only Jobs that are admitted have pods with them"):
        space.make(pod)
    assert space.make(pod, space.operator)["metadata"]["labels"] == MARKS["labels"]
    alone: Json = {**pod, "metadata": {**pod["metadata"], "name": "alone", "annotations": {}}}  # type: ignore[dict-item]
    with pytest.raises(KubectlError, match=r"with the annotation admitter\.dev/workload-uid"):
        space.make(alone, space.operator)
    owner_of_none = copy.deepcopy(pod)
    del owner_of_none["metadata"]["ownerReferences"]  # type: ignore[attr-defined]
    with pytest.raises(KubectlError, match="only Jobs that are admitted have pods with them"):
        space.make(owner_of_none, space.operator)


def test_a_counted_pod_makes_no_others_without_a_right(space: Space) -> None:
    """As the driver of a SparkApplication makes executors, by an account that its users may take."""
    pod: Json = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "driver", "namespace": space.name, **MARKS},
        "spec": {"containers": [{"name": "main", "image": "work"}]},
    }
    owner = space.child(space.admitted())["metadata"]["ownerReferences"]
    driver = space.make({**pod, "metadata": {**pod["metadata"], "ownerReferences": owner}}, space.operator)
    (reference,) = space.child(driver)["metadata"]["ownerReferences"]
    named = {"name": "executor", "ownerReferences": [reference]}
    executor = {**pod, "metadata": {**pod["metadata"], **named}}
    with pytest.raises(KubectlError, match="only Jobs that are admitted have pods with them"):
        space.make(executor)
    resource = "--resource=jobkinds.admitter.dev"
    account, name = f"--serviceaccount={space.name}:user", f"{space.name}-executors"
    right = ["--verb=operate", resource, "--resource-name=Pod.v1"]
    space.cluster.run_kubectl("create", "clusterrole", name, *right)
    space.cluster.run_kubectl("create", "clusterrolebinding", name, f"--clusterrole={name}", account)
    try:
        eventually(lambda: space.can_make(executor), what="the right")
        forged = {**executor, "metadata": {**executor["metadata"], "ownerReferences": []}}
        with pytest.raises(KubectlError, match="only Jobs that are admitted have pods with them"):
            space.make(forged)
    finally:
        space.cluster.run_kubectl("delete", "clusterrolebinding,clusterrole", name)


def test_a_managed_namespace_runs_nothing_that_was_not_admitted(space: Space) -> None:
    unqueued = space.trial("before")
    del unqueued["metadata"]["labels"]
    unqueued["spec"]["paused"] = True
    space.make(unqueued)
    space.cluster.run_kubectl("label", "namespace", space.name, "admitter.dev/managed=true")
    refused = "is managed: Experiment objects there name their queue in the label admitter.dev/queue-name"
    unqueued["metadata"]["name"] = "later"

    def is_managed() -> bool:
        try:
            space.make(unqueued)
        except KubectlError as error:
            return refused in str(error)
        space.user.run_kubectl("delete", "experiment", "later", f"--namespace={space.name}")
        return False

    eventually(is_managed, what="a refusal")
    with pytest.raises(KubectlError, match=refused):
        space.patch("experiment/before", {"spec": {"paused": False}})
    owner = space.admitted()
    with pytest.raises(KubectlError, match=REMEDY):
        space.patch("experiment/trial", {"metadata": {"labels": {"admitter.dev/queue-name": None}}})
    with pytest.raises(KubectlError, match="Experiment objects there do not grow by their scale"):
        space.scale("trial", 3)
    assert space.scale("trial", 1) == 1
    for name, marked in (("child", True), ("beside", False)):  # all that has children there was admitted
        made = space.make(space.child(owner, name, marked=marked), space.operator)
        assert made["spec"]["suspend"] is False
    loose = space.child(owner, "loose", marked=False)
    del loose["metadata"]["ownerReferences"]
    with pytest.raises(KubectlError, match="is managed: a Job there names its queue"):
        space.make(loose, space.operator)


def test_what_a_jobkind_needs_no_more_goes_when_it_is_installed_again(lab: ControlPlane) -> None:
    resource = {"group": "lab.example.com", "version": "v1", "kind": "Other", "plural": "others"}

    def installed(**more: Json | list[Json] | list[str]) -> set[str]:
        kind = experiment(resource=resource, **more)
        kind["metadata"]["name"] = "other"
        asyncio.run(_install(lab, kind))
        kinds = "clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings"
        labelled = ["get", kinds, "--selector=admitter.dev/job-kind=other", "--output=name"]
        return {
            each.partition(".")[0] + "/" + each.partition("/")[2]
            for each in lab.run_kubectl(*labelled).split()
        }

    name = "admitter-kind-other"
    before = installed(children=[{"group": "batch", "kind": "Job"}], operators=[OPERATOR])
    assert before - installed() == {
        f"validatingadmissionpolicy/{name}-children",
        f"validatingadmissionpolicybinding/{name}-children",
        f"clusterrolebinding/{name}-operator",
    }


def test_an_object_without_a_queue_goes_to_the_default_one_of_its_namespace(space: Space) -> None:
    """It is stopped in the same step; what an operator makes is counted with its owner."""
    space.cluster.run_kubectl("label", "namespace", space.name, "admitter.dev/default-queue=main")
    unnamed = space.trial("unnamed")
    unnamed["spec"]["paused"] = False
    del unnamed["metadata"]["labels"]

    def queue_of(made: Json) -> tuple[str, bool]:
        return made["metadata"].get("labels", {}).get("admitter.dev/queue-name", ""), made["spec"]["paused"]

    def is_known() -> bool:
        dry = ["create", "-f-", "--dry-run=server", "--output=json"]
        made = json.loads(space.user.run_kubectl(*dry, content=json.dumps(unnamed)))
        return queue_of(made) == ("main", True)

    eventually(is_known, what="a label of the namespace that the API server knows")
    made = space.make(unnamed)
    assert queue_of(made) == ("main", True)
    assert made["metadata"]["annotations"]["admitter.dev/queue-by-default"] == "main"
    off = {"metadata": {"labels": {"admitter.dev/queue-name": None}}, "spec": {"paused": False}}
    assert queue_of(space.patch("experiment/unnamed", off)) == ("main", True)
    owner = space.admitted("owner")
    child = space.make(space.child(owner, "child", marked=True), space.operator)
    assert "admitter.dev/queue-name" not in child["metadata"].get("labels", {})
