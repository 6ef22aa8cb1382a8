"""Whether JobKinds work, as their condition `Active` tells; and what is installed for them."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from admitter.sandbox.cluster import Cluster, KubectlError
from tests.cluster.commands import admitter
from tests.cluster.definitions import delete_definitions
from tests.cluster.objects import Json
from tests.cluster.waiting import eventually
from tests.kinds.described import definition, experiment

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("controller")]


class Kinds:
    """A kind of the test's own, and JobKinds for it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.name = cluster, f"k{uuid4().hex[:6]}"
        self.group, self.made = f"{self.name}.example.com", list[str]()

    def definition(self) -> Json:
        made = definition()
        made["metadata"]["name"] = f"experiments.{self.group}"
        made["spec"]["group"] = self.group
        made["spec"]["names"] = {"kind": f"Experiment{self.name}", "plural": "experiments"}
        return made

    def job_kind(self, name: str, **changed: object) -> Json:
        made = experiment(**changed)
        made["metadata"]["name"] = f"{self.name}-{name}"
        made["spec"]["resource"] |= {"group": self.group, "kind": f"Experiment{self.name}"}
        return made

    def create(self, *manifests: Json) -> None:
        self.made += [each["metadata"]["name"] for each in manifests if each["kind"] == "JobKind"]
        for each in manifests:
            self.cluster.run_kubectl("create", "-f-", content=json.dumps(each))

    def active(self, name: str) -> Json:
        found = self.cluster.read("jobkind", f"{self.name}-{name}")
        conditions = found.get("status", {}).get("conditions", [])
        return next((each for each in conditions if each["type"] == "Active"), {})

    def tells(self, name: str, status: str, reason: str, words: str) -> None:
        def told() -> bool:
            found = self.active(name)
            return (found.get("status"), found.get("reason")) == (status, reason) and words in found[
                "message"
            ]

        eventually(told, what=f"{name}: {reason}: {words}; it says {self.active(name)}")


@pytest.fixture
def kinds(installed: Cluster) -> Iterator[Kinds]:
    """A kind that no other test has."""
    made = Kinds(installed)
    yield made
    if made.made:
        installed.run_kubectl("delete", "jobkinds", "--wait=false", *made.made)
    delete_definitions(installed, f"experiments.{made.group}")


def test_a_job_kind_says_what_it_lacks(kinds: Kinds) -> None:
    kinds.create(kinds.job_kind("sound"))
    name = f"definition experiments.{kinds.group} is not there"
    kinds.tells("sound", "False", "DefinitionNotFound", name)
    kinds.create(kinds.definition())
    kinds.tells("sound", "False", "NotRead", "admitter install --only-kinds gives the controller the right")
    row = kinds.cluster.run_kubectl("get", "jobkind", f"{kinds.name}-sound").splitlines()[1].split()
    assert row[1:5] == [kinds.group, f"Experiment{kinds.name}", "False", "NotRead"]
    delete_definitions(kinds.cluster, f"experiments.{kinds.group}")
    kinds.tells("sound", "False", "DefinitionNotFound", name)
    kinds.create(kinds.definition())


def test_a_wrong_job_kind_says_which_field_is_wrong_and_harms_no_other(kinds: Kinds) -> None:
    kinds.create(kinds.definition(), kinds.job_kind("first"))
    kinds.tells("first", "False", "NotRead", "")
    kinds.create(kinds.job_kind("second"))
    words = (
        f"spec.resource: {kinds.group}/v1 Experiment{kinds.name} is described by JobKind {kinds.name}-first"
    )
    kinds.tells("second", "False", "Conflict", words)
    other = copy.deepcopy(kinds.job_kind("other", active="object.status.pods >"))
    other["spec"]["resource"]["kind"] = "Other"
    kinds.create(other)
    kinds.tells("other", "False", "InvalidSpec", "spec.active: does not compile")
    pod_sets = [{"name": "main", "template": "spec.controls"}]
    change = json.dumps({"spec": {"podSets": pod_sets}})
    kinds.cluster.run_kubectl("patch", "jobkind", f"{kinds.name}-first", "--type=merge", f"--patch={change}")
    lacks = "spec.podSets[0].template: the definition of the kind has no spec.controls"
    kinds.tells("first", "False", "InvalidSpec", lacks)
    assert kinds.active("second")["reason"] == "Conflict"


def test_a_kind_is_installed_from_a_file_with_its_policies_and_stays_with_its_operators(
    kinds: Kinds, tmp_path: Path
) -> None:
    kinds.create(kinds.definition())
    file, name = tmp_path / "kind.yaml", f"{kinds.name}-mine"
    file.write_text(json.dumps(kinds.job_kind("mine")))
    to = [f"--kubeconfig={kinds.cluster.kubeconfig}", "--only-kinds"]
    first = admitter("install", *to, f"--kinds={file}", f"--operator={name}=lab:operator")
    assert first.returncode == 0, first.stderr
    kinds.made.append(name)
    kinds.tells("mine", "True", "Ready", "ready")
    again = admitter("install", *to, "--kinds=auto")
    assert again.returncode == 0, again.stderr
    assert {line.split()[2] for line in again.stdout.splitlines() if name in line} == {"unchanged"}
    operators = kinds.cluster.read("jobkind", name)["spec"]["operators"]
    assert operators == ["system:serviceaccount:lab:operator"]
    question = ["auth", "can-i", "operate", f"jobkinds.admitter.dev/Experiment{kinds.name}.{kinds.group}"]
    asked = kinds.cluster.run_kubectl(*question, "--as=system:serviceaccount:lab:operator")
    assert asked.strip() == "yes"
    binding = ["clusterrolebinding", f"{name}-reads"]
    reader = "system:serviceaccount:lab:reader"
    kinds.cluster.run_kubectl("create", *binding, "--clusterrole=admitter-reader", f"--user={reader}")
    listing = ["auth", "can-i", "list", f"experiments.{kinds.group}", "--all-namespaces", f"--as={reader}"]

    def lists() -> bool:
        try:
            return kinds.cluster.run_kubectl(*listing).strip() == "yes"
        except KubectlError:  # what it says of a no
            return False

    eventually(lists, what="the right of readers")
    kinds.cluster.run_kubectl("delete", *binding)
    policy = f"admitter-kind-{name}"
    kinds.cluster.run_kubectl("delete", "mutatingadmissionpolicy", policy)
    lacking = f"its policies are missing: run admitter install --only-kinds --kinds {name}"
    kinds.tells("mine", "True", "NoPolicy", lacking)
    labelled = f"--selector=admitter.dev/job-kind={name}"
    for sort in ("mutatingadmissionpolicy", "validatingadmissionpolicy", "clusterrole"):
        for each in (f"{sort}binding", sort):
            kinds.cluster.run_kubectl("delete", each, labelled)


def test_what_a_job_kind_describes_stays_and_a_mistake_in_it_says_the_right_name(kinds: Kinds) -> None:
    wrong = kinds.job_kind("wrong")
    wrong["spec"]["resource"]["plural"] = "experimentz"
    kinds.create(kinds.definition(), wrong)
    right = f"Experiment{kinds.name} objects are experiments.{kinds.group}: make a JobKind with plural"
    kinds.tells("wrong", "False", "DefinitionNotFound", right)
    change = ["patch", "jobkind", f"{kinds.name}-wrong", "--type=merge"]
    for field, value in (("plural", "experiments"), ("group", "other.example.com"), ("kind", "Other")):
        with pytest.raises(KubectlError, match=r"can't change: delete this JobKind, make another"):
            kinds.cluster.run_kubectl(
                *change, f'--patch={{"spec": {{"resource": {{"{field}": "{value}"}}}}}}'
            )
    kinds.cluster.run_kubectl(*change, '--patch={"spec": {"resource": {"version": "v2"}}}')


def test_a_kind_of_the_same_name_in_another_group_and_one_without_namespaces(kinds: Kinds) -> None:
    kinds.create(kinds.definition(), kinds.job_kind("first"))
    kinds.tells("first", "False", "NotRead", "")
    other = kinds.job_kind("other")
    other["spec"]["resource"]["group"] = f"other.{kinds.group}"
    kinds.create(other)
    kinds.tells("other", "False", "Conflict", f"by JobKind {kinds.name}-first already")
    whole, version = kinds.definition(), kinds.job_kind("whole")
    whole["metadata"]["name"] = f"wholes.{kinds.group}"
    whole["spec"] |= {"scope": "Cluster", "names": {"kind": f"Whole{kinds.name}", "plural": "wholes"}}
    version["spec"]["resource"] |= {"kind": f"Whole{kinds.name}", "plural": "wholes"}
    kinds.create(whole, version)
    try:
        kinds.tells("whole", "False", "InvalidSpec", f"definition wholes.{kinds.group} are in no namespace")
    finally:
        delete_definitions(kinds.cluster, f"wholes.{kinds.group}")
