"""`admitter import`, as it is typed."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from admitter.cli.main import app

QUEUE = """
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: total}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: default, resources: [{name: cpu, nominalQuota: 4}]}]
"""
FLAVOR = "{apiVersion: kueue.x-k8s.io/v1beta1, kind: ResourceFlavor, metadata: {name: default}}"
RENAMED = FLAVOR.replace("default", "on_demand")
REFUSED = "{apiVersion: kueue.x-k8s.io/v1beta1, kind: AdmissionCheck, metadata: {name: check}}"


def typed(*arguments: str, content: str = "") -> Result:
    return CliRunner().invoke(app, ["import", *arguments], input=content)


def manifests(text: str) -> list[Any]:
    return [each for each in yaml.safe_load_all(text) if each]


def test_files_folders_and_standard_input_together(tmp_path: Path) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    (folder / "queue.yaml").write_text(QUEUE)
    (folder / "notes.txt").write_text("no manifest")
    other = tmp_path / "flavor.json"
    other.write_text(json.dumps(yaml.safe_load(FLAVOR)))
    answer = typed("kueue", str(folder), str(other), "-", content=RENAMED)
    names = [(m["kind"], m["metadata"]["name"]) for m in manifests(answer.stdout)]
    assert names == [
        ("ResourceFlavor", "default"),
        ("ResourceFlavor", "on-demand"),
        ("ClusterQueue", "total"),
    ]
    assert answer.exit_code == 1


@pytest.mark.parametrize(
    ("content", "status"),
    [(QUEUE, 0), (f"{QUEUE}---\n{RENAMED}", 1), (f"{QUEUE}---\n{RENAMED}---\n{REFUSED}", 2), ("", 0)],
    ids=["translated", "approximated", "refused", "nothing"],
)
def test_the_exit_status_is_that_of_the_worst(content: str, status: int) -> None:
    answer = typed("kueue", "-", content=content.replace("}---", "}\n---"))
    assert answer.exit_code == status


def test_the_report_is_a_table_by_object_and_is_not_in_the_manifests() -> None:
    answer = typed("kueue", "-", content=f"{QUEUE}---\n{RENAMED}\n---\n{REFUSED}")
    assert "check" not in answer.stdout
    lines = answer.stderr.splitlines()
    assert lines[0].startswith("Object ")
    (check,) = [line for line in lines if line.startswith("AdmissionCheck check")]
    assert "refused" in check
    assert "starts as soon as there is quota" in check
    (flavor,) = [line for line in lines if line.startswith("ResourceFlavor on_demand")]
    assert "renamed: on_demand becomes on-demand" in flavor
    assert lines[-1].startswith("2 manifests; fields: ")
    assert lines[-1].endswith("1 approximated, 1 refused")


def test_the_report_for_programs_names_every_field() -> None:
    answer = typed("kueue", "-", "--report", "json", content=f"{QUEUE}---\n{RENAMED}")
    report = json.loads(answer.stderr)
    assert (report["worst"], report["manifests"]) == ("approximated", 2)
    assert {
        "object": "ClusterQueue total",
        "field": "spec.resourceGroups[0].flavors[0].resources[0].nominalQuota",
        "outcome": "translated",
        "words": "min 4",
    } in report["findings"]


def test_without_a_report_only_the_manifests_and_the_status_are_left() -> None:
    answer = typed("kueue", "-", "--report", "none", content=RENAMED)
    assert (answer.stderr, answer.exit_code) == ("", 1)
    assert len(manifests(answer.stdout)) == 1


def test_manifests_go_to_a_file_or_into_a_folder_one_file_a_kind(tmp_path: Path) -> None:
    content = f"{QUEUE}---\n{FLAVOR}"
    file, folder = tmp_path / "all.yaml", tmp_path / "kinds"
    folder.mkdir()
    answer = typed("kueue", "-", "--to", str(file), content=content)
    assert (answer.stdout, answer.exit_code) == ("", 0)
    assert [m["kind"] for m in manifests(file.read_text())] == ["ResourceFlavor", "ClusterQueue"]
    assert typed("kueue", "-", "--to", str(folder), content=content).exit_code == 0
    assert sorted(path.name for path in folder.iterdir()) == [
        "01-resourceflavor.yaml",
        "02-clusterqueue.yaml",
    ]
    assert [m["kind"] for m in manifests((folder / "02-clusterqueue.yaml").read_text())] == ["ClusterQueue"]


def test_a_folder_with_files_of_another_import_that_would_stay_is_refused(tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text("")
    assert typed("kueue", "-", "--to", str(tmp_path), content=f"{QUEUE}---\n{FLAVOR}").exit_code == 0
    before = (tmp_path / "01-resourceflavor.yaml").read_text()
    again = typed("kueue", "-", "--to", str(tmp_path), content=QUEUE)
    assert again.exit_code == 2
    words = "has 01-resourceflavor.yaml, 02-clusterqueue.yaml from another import: remove them"
    assert words in " ".join(again.stderr.split())
    assert (tmp_path / "01-resourceflavor.yaml").read_text() == before
    assert typed("kueue", "-", "--to", str(tmp_path), content=f"{QUEUE}---\n{FLAVOR}").exit_code == 0


def test_the_table_names_no_field_where_the_object_as_a_whole_is_meant() -> None:
    text = """
    apiVersion: v1
    kind: Namespace
    metadata: {name: a, annotations: {yunikorn.apache.org/namespace.quota: '{"cpu": "4"}'}}
    """
    answer = typed("yunikorn", "-", content=text)
    (row,) = [line for line in answer.stderr.splitlines() if line.startswith("Namespace a")]
    cells = [cell.strip() for cell in row.split("  ") if cell.strip()]
    whole = "taken over as it is, but for its annotations"
    assert cells == ["Namespace a", "translated", "metadata.annotations", whole]


def test_what_was_imported_is_what_simulate_reads(tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    assert typed("kueue", "-", "--to", str(file), content=f"{QUEUE}---\n{FLAVOR}").exit_code == 0
    answer = CliRunner().invoke(app, ["simulate", str(file), "-o", "json"])
    result = json.loads(answer.stdout)
    assert (answer.exit_code, result["errors"]) == (0, [])
    assert [queue["name"] for queue in result["clusterQueues"]] == ["total"]


@pytest.mark.parametrize(
    ("arguments", "content", "says"),
    [
        (["kueue", "nowhere.yaml"], "", "nowhere.yaml: can't be read: No such file or directory"),
        (["kueue", "-"], "a: [", "is no YAML: line 2, column 1: while parsing a flow node"),
        (["kueue", "-"], "a: &a [*a]", "line 1: has an alias of itself"),
        (["kueue", "-", "--to", "/nowhere/x.yaml"], QUEUE, "/nowhere/x.yaml: can't be written"),
        (["kueue", "--live", "--kubeconfig", "/nowhere"], "", "there is no file /nowhere"),
        (["kueue"], "", "give files or folders"),
        (["kueue", "-", "--kubeconfig", "/nowhere"], QUEUE, "--live"),
        (["slurm", "-"], "", "Invalid value for 'SYSTEM': 'slurm' is not one of"),
        (["kueue", "-", "--report", "x"], QUEUE, "Invalid value for '--report': 'x' is not one of"),
        ([], "", "SYSTEM"),
    ],
    ids=[
        "no file",
        "no YAML",
        "no end",
        "no place",
        "no cluster",
        "no input",
        "cluster unasked",
        "no such system",
        "no such report",
        "nothing",
    ],
)
def test_what_can_not_be_done_is_said_and_exits_with_2(arguments: list[str], content: str, says: str) -> None:
    answer = typed(*arguments, content=content)
    assert answer.exit_code == 2
    assert says in answer.stderr
    assert answer.stdout == ""


def test_help_names_the_systems_and_the_meaning_of_the_exit_status() -> None:
    text = " ".join(typed("--help").stdout.split())
    for word in ("kueue", "nos", "scheduler-plugins", "--live", "--report", "Exits with 0"):
        assert word in text
