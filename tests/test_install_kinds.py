"""What is installed for JobKinds: which of them, with which rights, and which account is the operator."""

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from admitter.cli.main import app
from admitter.install.kinds import KindChoiceError, chosen, installed_for, with_operators
from admitter.names import JOB_KIND_LABEL, SERVICE_ACCOUNT
from tests.kinds.described import Json, experiment


def installed(kind: Json) -> dict[tuple[str, str], Json]:
    name = kind["metadata"]["name"]
    return {(each["kind"], each["metadata"]["name"]): each for each in installed_for({name: kind})}


def printed(*options: str) -> list[Json]:
    answer = CliRunner().invoke(app, ["install", "--print", "--only-kinds", *options])
    assert answer.exit_code == 0, answer.output
    return list(yaml.load_all(answer.stdout, yaml.CSafeLoader))


def test_kinds_are_chosen_by_name_or_file_and_the_job_comes_with_them(tmp_path: Path) -> None:
    assert set(chosen("jobset, raycluster")) == {"jobset", "raycluster", "job"}
    assert set(chosen("all")) >= {"appwrapper", "job", "sparkapplication", "trainjob"}
    assert chosen("none") == {}
    file = tmp_path / "own.yaml"
    file.write_text(yaml.safe_dump(experiment()))
    assert set(chosen(f"{file},tfjob")) == {"experiment", "tfjob", "job"}


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        (
            experiment(active="object.nosuch("),
            "JobKind experiment: spec.active: calls nosuch, which is no function",
        ),
        (experiment(suspend={}), "JobKind experiment: spec.suspend.path: is missing"),
        ({"apiVersion": "v1", "kind": "ConfigMap"}, "is no JobKind"),
    ],
)
def test_a_wrong_file_is_refused_with_the_field(tmp_path: Path, manifest: Json, words: str) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(yaml.safe_dump(manifest))
    answer = CliRunner().invoke(app, ["install", "--print", "--only-kinds", f"--kinds={file}"])
    assert answer.exit_code != 0
    assert words in str(answer.exception or answer.output)


def test_an_unknown_kind_is_named_with_those_that_there_are() -> None:
    with pytest.raises(
        KindChoiceError, match="there is no JobKind jobsets: these are appwrapper, job, jobset"
    ):
        chosen("jobsets")


def test_the_controller_gets_rights_on_what_is_described_and_on_nothing_else() -> None:
    made = installed(chosen("trainjob")["trainjob"])
    role, binding = (
        made["ClusterRole", "admitter-kind-trainjob"],
        made["ClusterRoleBinding", "admitter-kind-trainjob"],
    )
    assert role["rules"] == [
        {
            "apiGroups": ["trainer.kubeflow.org"],
            "resources": ["trainjobs"],
            "verbs": ["get", "list", "watch", "patch"],
        },
        {"apiGroups": ["trainer.kubeflow.org"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
    ]
    assert [each["name"] for each in binding["subjects"]] == [SERVICE_ACCOUNT]
    labels = {
        each["metadata"]["labels"].get(JOB_KIND_LABEL)
        for (kind, _), each in made.items()
        if kind != "JobKind"
    }
    assert labels == {"trainjob"}


def test_an_operator_is_one_by_the_jobkind_or_by_the_option() -> None:
    made = installed(with_operators(experiment(), ["lab:operator", "ann"]))
    role = made["ClusterRole", "admitter-kind-experiment-operator"]
    assert role["rules"][0]["resourceNames"] == ["Experiment.lab.example.com"]
    subjects = made["ClusterRoleBinding", "admitter-kind-experiment-operator"]["subjects"]
    assert [(each["kind"], each["name"]) for each in subjects] == [
        ("ServiceAccount", "operator"),
        ("User", "ann"),
    ]
    assert ("ClusterRoleBinding", "admitter-kind-experiment-operator") not in installed(experiment())
    (kind,) = [
        each
        for each in printed(
            "--kinds=raycluster", "--operator=raycluster=ray:one", "--operator=raycluster=ray:two"
        )
        if each["metadata"]["name"] == "raycluster"
    ]
    assert kind["spec"]["operators"] == ["system:serviceaccount:ray:one", "system:serviceaccount:ray:two"]


@pytest.mark.parametrize("wrong", ["raycluster", "raycluster=", "=ray:one", "jobset=ray:one"])
def test_an_operator_of_no_kind_is_refused(wrong: str) -> None:
    answer = CliRunner().invoke(app, ["install", "--print", "--kinds=raycluster", f"--operator={wrong}"])
    assert answer.exit_code != 0


def test_jobs_have_no_policies_of_their_jobkind() -> None:
    assert [kind for kind, _ in installed(chosen("all")["job"])] == ["JobKind"]


def test_what_a_count_reads_of_another_object_may_not_change_in_the_object() -> None:
    policy = installed(chosen("trainjob")["trainjob"])["ValidatingAdmissionPolicy", "admitter-kind-trainjob"]
    rules = json.dumps(policy["spec"]["validations"])
    assert "dyn(object).?spec.?trainer.?numNodes == dyn(oldObject).?spec.?trainer.?numNodes" in rules
    assert "runtime." not in rules


def test_no_policy_uses_what_the_oldest_server_lacks() -> None:
    newer = (
        "flatten(",
        "distinct(",
        "range(",
        "reverse(",
        "slice(",
        "sort(",
        "transformList(",
        "transformMap(",
    )
    text = json.dumps([each for each in installed_for(chosen("all")) if "Policy" in each["kind"]])
    assert [each for each in newer if each in text] == []
