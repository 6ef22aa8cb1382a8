"""Names that stand in several places are the same everywhere."""

import re
from pathlib import Path

import yaml

from admitter import __version__, names
from admitter.api.kinds import KINDS
from admitter.documents import bundled
from admitter.install.apply import manifests, object_path

ROOT = Path(__file__).parents[1]
ALL = list(manifests(deployment=True))


def texts_of(*kinds: str) -> str:
    return "".join(str(manifest) for manifest in ALL if manifest["kind"] in kinds)


def test_policies_let_the_controllers_own_account_pass_and_no_other() -> None:
    policies = texts_of("ValidatingAdmissionPolicy", "MutatingAdmissionPolicy")
    accounts = set(re.findall(r"system:serviceaccount:[a-z:-]+", policies))
    of_jobs, of_pods = ("job", "cronjob"), ("replicaset", "statefulset", "daemon-set", "replication")
    accounts_of = (*of_jobs, *of_pods, "deployment", "namespace")
    of_kubernetes = {f"system:serviceaccount:kube-system:{name}-controller" for name in accounts_of}
    of_kubernetes.add("system:serviceaccount:kube-system:generic-garbage-collector")
    assert accounts == {names.CONTROLLER_USER, *of_kubernetes}


def test_policies_match_the_queue_label() -> None:
    assert names.QUEUE_LABEL in texts_of("MutatingAdmissionPolicy")
    assert names.QUEUE_ALIAS_LABEL in texts_of("MutatingAdmissionPolicy")
    assert names.SUSPEND_POLICY in texts_of("MutatingAdmissionPolicy")
    for name in (names.MAKERS_POLICY, names.PLACEMENT_POLICY):
        assert name in texts_of("MutatingAdmissionPolicy")
        assert name in texts_of("MutatingAdmissionPolicyBinding")
    assert "admitter-manage-all-jobs" in texts_of("MutatingAdmissionPolicy")
    assert f"'{names.QUEUE_LABEL}': '{names.ELASTIC_QUOTA_QUEUE}'" in " ".join(
        mutation.get("applyConfiguration", {}).get("expression", "")
        for manifest in ALL
        if manifest["kind"] == "MutatingAdmissionPolicy"
        for mutation in manifest["spec"]["mutations"]
    )


def test_policies_know_the_names_of_the_makers_of_a_job() -> None:
    policies = texts_of("MutatingAdmissionPolicy")
    for annotation in (names.USER_ANNOTATION, names.GROUPS_ANNOTATION, names.PLACEMENT_ANNOTATION):
        assert annotation in policies


def test_roles_and_policies_speak_of_the_same_verb() -> None:
    assert f"check('{names.SUBMIT_VERB}')" in texts_of("ValidatingAdmissionPolicy")
    rules = [rule for m in ALL if m["kind"] == "ClusterRole" for rule in m.get("rules", ())]
    submitting = {"apiGroups": [names.GROUP], "resources": ["localqueues"], "verbs": [names.SUBMIT_VERB]}
    assert submitting in rules


def test_policies_know_gpu_memory_by_all_of_its_names() -> None:
    known = str([names.GPU_MEMORY, *names.GPU_MEMORY_ALIASES])
    lists = [
        variable["expression"]
        for manifest in ALL
        if manifest["kind"] == "ValidatingAdmissionPolicy"
        for variable in manifest["spec"].get("variables", ())
        if variable["name"] == "gpuMemory"
    ]
    assert lists == [known, known]


def test_every_kind_may_be_read_and_its_status_written_by_the_controller() -> None:
    role = next(
        m for m in ALL if m["kind"] == "ClusterRole" and m["metadata"]["name"] == names.SERVICE_ACCOUNT
    )
    own = [rule for rule in role["rules"] if rule["apiGroups"] == [names.GROUP]]
    readable = next(rule["resources"] for rule in own if "watch" in rule["verbs"])
    assert readable == [kind.plural for kind in KINDS]
    written = [f"{kind.plural}/status" for kind in KINDS if "status" in kind.model_fields]
    assert written in [rule["resources"] for rule in own]


def test_the_table_of_permissions_is_the_manifests() -> None:
    page = (ROOT / "docs" / "permissions.md").read_text()
    section = page.split("## The controller")[1].split("\n## ")[0]
    rows = [line.split("|")[1:3] for line in section.splitlines() if line.startswith("| `")]
    told = {
        (resource, verb.strip())
        for objects, verbs in rows
        for resource in re.findall(r"`([^`]+)`", objects)
        for verb in verbs.split(",")
    }
    bound = {
        manifest["roleRef"]["name"]
        for manifest in ALL
        if manifest["kind"] in {"ClusterRoleBinding", "RoleBinding"}
        and names.SERVICE_ACCOUNT in [subject["name"] for subject in manifest["subjects"]]
    }
    given = {
        (resource, verb)
        for manifest in ALL
        if manifest["kind"] in {"ClusterRole", "Role"} and manifest["metadata"]["name"] in bound
        for rule in manifest["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert told == given


def test_the_account_is_the_one_that_is_bound_and_deployed() -> None:
    by_kind = {manifest["kind"]: manifest for manifest in ALL}
    account = {"name": names.SERVICE_ACCOUNT, "namespace": names.NAMESPACE}
    assert account.items() <= by_kind["ServiceAccount"]["metadata"].items()
    bindings = {m["metadata"]["name"]: m for m in ALL if m["kind"] == "ClusterRoleBinding"}
    assert bindings[names.SERVICE_ACCOUNT]["subjects"] == [{"kind": "ServiceAccount", **account}]
    pod = by_kind["Deployment"]["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == names.SERVICE_ACCOUNT
    assert pod["containers"][0]["image"] == f"admitter:{__version__}"


def test_the_newest_entry_of_the_changelog_is_this_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    first = next(line for line in changelog.splitlines() if line.startswith("## "))
    assert __version__ in first


def test_every_manifest_has_a_place_and_says_what_it_belongs_to() -> None:
    for manifest in ALL:
        assert object_path(manifest).endswith(manifest["metadata"]["name"])
        assert manifest["metadata"]["labels"]["app.kubernetes.io/part-of"] == "admitter"


def test_the_bundle_is_the_checkouts() -> None:
    assert bundled("crds") == ROOT / "crds"


def test_kustomize_has_all_that_is_installed() -> None:
    listed = yaml.safe_load((ROOT / "kustomization.yaml").read_text())["resources"]
    assert listed == sorted(
        str(path.relative_to(ROOT))
        for folder in ("crds", "manifests")
        for path in (ROOT / folder).glob("*.yaml")
    )


def test_validating_policies_use_no_function_that_the_oldest_server_lacks() -> None:
    """Those on lists came with 1.34, and a policy is compiled with what the release before had."""
    newer = re.compile(r"\b(flatten|distinct|range|reverse|slice|sort|sortBy)\(")
    assert newer.findall(texts_of("ValidatingAdmissionPolicy")) == []
