"""Which operators run, and what of their manifests is applied."""

import base64
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from admitter.sandbox.errors import BuildError, SandboxError, StartError
from admitter.sandbox.operators import programs
from admitter.sandbox.operators.definitions import MODULES, OPERATORS, chosen
from admitter.sandbox.operators.manifests import (
    DEFINITION,
    definitions_and_rights,
    rendered,
    webhooks,
    without,
)
from admitter.sandbox.operators.programs import ensure_operators
from tests.sandbox.helpers import sandbox_command, started, write_program


def test_what_an_operator_needs_runs_before_it_and_once() -> None:
    assert [each.name for each in chosen(["trainer", "kuberay", "jobset"])] == [
        "jobset",
        "trainer",
        "kuberay",
    ]
    assert chosen([]) == []
    with pytest.raises(SandboxError, match=f"--with 'jobsets': there are {', '.join(sorted(OPERATORS))}"):
        chosen(["jobsets"])


def test_an_operator_leaves_a_definition_to_another_which_runs_before_it() -> None:
    assert [each.name for each in chosen(["training", "mpi"])] == ["mpi", "training"]
    assert [each.name for each in chosen(["training", "kuberay"])] == ["training", "kuberay"]
    names = ("mpijobs.kubeflow.org", "pytorchjobs.kubeflow.org")
    objects = [{"kind": DEFINITION, "metadata": {"name": name}} for name in names]
    account = {"kind": "ServiceAccount", "metadata": {"name": "mpijobs.kubeflow.org"}}
    assert without(OPERATORS["training"].yields, [*objects, account]) == [objects[1], account]


def test_a_mistaken_name_is_told_before_anything_starts() -> None:
    with started(*sandbox_command("up", "--with", "spark")) as process:
        _, errors = process.communicate()
    assert process.returncode == 1
    assert errors == (
        "Error: --with 'spark': there are appwrapper, jobset, kuberay, lws, mpi, trainer, training\n"
    )


def test_an_operator_that_looks_elsewhere_is_told_where_its_certificate_is(tmp_path: Path) -> None:
    config = OPERATORS["lws"].config(4711, tmp_path)
    assert config["webhook"] == {"host": "127.0.0.1", "port": 4711, "certDir": str(tmp_path)}
    assert config["internalCertManagement"] == {"enable": False}


def test_a_main_package_of_ours_replaces_that_of_the_project() -> None:
    assert OPERATORS["mpi"].built_from == "./mpi"
    assert OPERATORS["appwrapper"].built_from == "./appwrapper"
    assert OPERATORS["training"].built_from == "./training"
    assert OPERATORS["lws"].built_from == "sigs.k8s.io/lws/cmd"
    for operator in OPERATORS.values():
        assert (MODULES / operator.module / operator.main).is_dir()


def test_of_manifests_definitions_and_rights_are_applied_in_the_namespace_of_the_account() -> None:
    trainer = OPERATORS["trainer"]
    account = {"kind": "ServiceAccount", "metadata": {"name": trainer.account}}
    subjects = [{"kind": "ServiceAccount", "name": trainer.account}, {"kind": "Group", "name": "all"}]
    binding = {"kind": "ClusterRoleBinding", "metadata": {"name": "b"}, "subjects": subjects}
    definition = {"kind": "CustomResourceDefinition", "metadata": {"name": "d"}}
    found = definitions_and_rights(trainer, [{"kind": "Deployment"}, account, binding, definition])
    assert [each["kind"] for each in found] == [
        "Namespace",
        "ServiceAccount",
        "ClusterRoleBinding",
        "CustomResourceDefinition",
    ]
    assert found[0]["metadata"]["name"] == found[1]["metadata"]["namespace"] == trainer.namespace
    assert found[2]["subjects"][0]["namespace"] == trainer.namespace
    assert found[2]["subjects"][1] == {"kind": "Group", "name": "all"}


def test_webhooks_are_reached_on_this_machine(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("trusted")
    hook = {"name": "h", "clientConfig": {"service": {"name": "s", "path": "/mutate"}}}
    configuration = {"kind": "MutatingWebhookConfiguration", "webhooks": [hook]}
    (found,) = webhooks([configuration, {"kind": "Secret"}], 4711, tmp_path / "ca.crt")
    authority = base64.b64encode(b"trusted").decode()
    expected = {"url": "https://127.0.0.1:4711/mutate", "caBundle": authority}
    assert found["webhooks"] == [{"name": "h", "clientConfig": expected}]


def test_what_is_rendered_is_kept(tmp_path: Path) -> None:
    kubectl = write_program(tmp_path / "kubectl", f"echo again >> {tmp_path}/calls; echo kind: Secret")
    assert [rendered(kubectl, tmp_path) for _ in range(2)] == [[{"kind": "Secret"}]] * 2
    assert (tmp_path / "calls").read_text() == "again\n"


def test_what_can_not_be_rendered_is_told(tmp_path: Path) -> None:
    kubectl = write_program(tmp_path / "kubectl", "echo no such folder >&2; exit 1")
    with pytest.raises(StartError, match=f"kubectl kustomize {tmp_path}: no such folder"):
        rendered(kubectl, tmp_path)


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A go command that builds programs of nothing, and finds modules in its own folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "crd.yaml").write_text("kind: CustomResourceDefinition")
    build = 'while [ "$1" != -o ]; do shift; done; : > "$2"'
    found = write_program(tmp_path / "go", f"case $1 in list) echo {tmp_path};; build) {build};; esac")
    monkeypatch.setattr(programs, "find_go", lambda _console: found)
    return found


def test_an_operator_is_built_once_with_its_manifests(go: Path) -> None:
    for _ in range(2):
        built = ensure_operators(Console(file=StringIO()), [OPERATORS["jobset"]])["jobset"]
        assert built.program.exists()
        assert (built.manifests / "crd.yaml").read_text() == "kind: CustomResourceDefinition"
        go.unlink(missing_ok=True)


def test_manifests_that_can_not_be_found_are_told(go: Path) -> None:
    go.write_text(go.read_text().replace("list) ", "list) echo no module >&2; exit 1; "))
    with pytest.raises(BuildError, match="the manifests of kuberay can't be found: no module"):
        ensure_operators(Console(file=StringIO()), [OPERATORS["kuberay"]])
