"""What the documentation shows is true: manifests are valid, links lead somewhere, commands print that."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from admitter.api.base import problems
from admitter.api.kinds import KINDS
from admitter.cli.configuration import Configuration
from admitter.cli.main import app
from admitter.names import API_VERSION
from tests.insight.asking import in_one_process
from tests.patience import PATIENCE_SECONDS

ROOT = Path(__file__).parents[1]
PAGES = [
    *(ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"),
    *sorted((ROOT / "docs").rglob("*.md")),
]
OWN = {kind.__name__: kind for kind in KINDS}
OFFLINE = ("admitter simulate ", "admitter import ", "admitter replay ", "admitter lint docs/")
LOOKING = ("admitter explain ", "admitter what-if ", "admitter get ", "admitter lint ")
ESTIMATING = ("admitter explain ", "admitter what-if ", "admitter get ")
FINDING = ("admitter import ", "admitter replay ")
"""Their statuses are findings."""

EXAMPLE = "manifests/examples/elastic-quota.yaml"


def printed_by(command: str) -> str:
    """What a command prints, typed in the checkout; in this process if it needs no shell: that is quicker."""
    if re.search(r"[|&<>;$`]", command):
        return shell(command)
    answer = CliRunner().invoke(app, shlex.split(command)[1:])
    assert answer.exit_code == 0 or command.startswith(FINDING), answer.stderr
    return answer.stdout


def shell(command: str) -> str:
    """What a command prints, typed in the checkout with `admitter` on the path."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    answer = subprocess.run(
        ["bash", "-c", command],  # noqa: S607  # as its reader would
        cwd=ROOT,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=not command.startswith(FINDING),
        timeout=PATIENCE_SECONDS,
    )
    return answer.stdout


def typed(page: Path, heading: str = "") -> Iterator[tuple[str, str]]:
    """The commands of a page, or of the section below a heading, and what they print as the page shows it."""
    text = page.read_text()
    if heading:
        text = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    for block in re.findall(r"```console\n(.*?)```", text, flags=re.DOTALL):
        for each in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = each.partition("\n")
            if command.endswith("<<EOF"):
                text, _, output = output.partition("EOF\n")
                command = f"{command}\n{text}EOF"
            yield command, output


def simulations(page: Path) -> Iterator[tuple[str, str]]:
    """Those of them that need no cluster."""
    for command, output in typed(page):
        if command.startswith(OFFLINE) or (command.startswith(LOOKING) and " --state " in command):
            yield command, output


SHOWN = [
    pytest.param(command, output, id=f"{page.name}-{number}")
    for page in PAGES
    for number, (command, output) in enumerate(simulations(page))
]


def trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def test_commands_are_found() -> None:
    assert len(SHOWN) >= 4


@pytest.mark.parametrize(("command", "output"), SHOWN)
def test_a_command_prints_what_is_shown(command: str, output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three dots stand for anything."""
    monkeypatch.chdir(ROOT)
    in_one_process(monkeypatch)
    pattern = re.escape(trimmed(output)).replace(re.escape("..."), ".*")
    # What a page shows does not depend on how busy the machine is.
    leisure = " --estimate-for 1h" if command.startswith(ESTIMATING) else ""
    printed = trimmed(printed_by(command + leisure))
    assert re.fullmatch(pattern, printed, flags=re.DOTALL), printed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page(page: Path) -> None:
    text = page.read_text()
    for block in re.findall(r"```yaml\n(.*?)```", text, flags=re.DOTALL):
        for manifest in yaml.safe_load_all(block):
            version = manifest.get("apiVersion", "")
            if version.startswith("admitter.dev/"):
                assert version == API_VERSION, manifest
                assert problems(OWN[manifest["kind"]], manifest) == [], manifest
            elif version.startswith("config.admitter.dev/"):
                Configuration.model_validate(manifest)
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (page.parent / link).exists(), f"{page.name} links to {link}"


def test_what_kueue_has_is_shown_side_by_side_with_what_the_importer_makes_of_it() -> None:
    given, expected = re.findall(
        r"```yaml\n(.*?)```", (ROOT / "docs/coming-from-kueue.md").read_text(), flags=re.DOTALL
    )
    answer = CliRunner().invoke(app, ["import", "kueue", "-"], input=given)
    assert answer.exit_code == 0, answer.stderr
    assert list(yaml.safe_load_all(answer.stdout)) == list(yaml.safe_load_all(expected))


@pytest.mark.parametrize(("page", "system"), [("nos", "nos"), ("scheduler-plugins", "scheduler-plugins")])
def test_quotas_that_are_shown_side_by_side_are_what_the_importer_makes(page: str, system: str) -> None:
    text = (ROOT / f"docs/coming-from-{page}.md").read_text()
    given, *rest = re.findall(r"```yaml\n(.*?)```", text, flags=re.DOTALL)
    answer = CliRunner().invoke(app, ["import", system, "-", "--report", "none"], input=given)
    assert answer.exit_code == 0
    (made,) = yaml.safe_load_all(answer.stdout)
    shown = [
        yaml.safe_load(block.replace("nos.nebuly.com/gpu-memory", "admitter.dev/gpu-memory"))
        for block in rest
    ]
    assert made in shown


def simulated(*options: str) -> Any:
    answer = CliRunner().invoke(app, ["simulate", str(ROOT / EXAMPLE), "-o", "json", *options])
    assert answer.exit_code == 0, answer.stderr
    return json.loads(answer.stdout)


def used(result: Any) -> list[int]:
    """GPU memory in use, of each quota."""
    usages = [queue["usage"]["elastic_quota"] for queue in result["clusterQueues"]]
    return [int(usage["admitter.dev/gpu-memory"]["used"]) for usage in usages]


@pytest.mark.parametrize(
    ("until", "expected"),
    [("4m", [40, 40, 0]), ("10m", [50, 30, 0]), ("20m", [50, 30, 0])],
    ids=["t1", "t2", "one more waits"],
)
def test_the_example_of_elastic_quotas(until: str, expected: list[int]) -> None:
    result = simulated("--until", until)
    assert used(result) == expected
    assert result["errors"] == []


def test_workloads_over_quota_in_the_example_and_pending_ones() -> None:
    capacity = {row["job"]: row["capacity"] for row in simulated("--until", "4m")["workloads"]}
    assert capacity == {"base": "in-quota", "sweep-1": "in-quota"} | dict.fromkeys(
        ("sweep-2", "sweep-3", "sweep-4"), "over-quota"
    )
    result = simulated()
    assert [row["job"] for row in result["workloads"] if row["state"] == "Pending"] == ["more-2", "sweep-4"]
    gone = [event for event in result["events"] if event["type"] == "Preempted"]
    assert [event["time"] for event in gone] == ["2026-01-05T10:10:00Z"]


def test_the_example_of_elastic_quotas_is_one_for_a_cluster_too() -> None:
    manifests = list(yaml.safe_load_all((ROOT / EXAMPLE).read_text()))
    minimum = {m["metadata"]["namespace"]: m["spec"]["min"] for m in manifests if m["kind"] == "ElasticQuota"}
    assert [next(iter(each.values())) for each in minimum.values()] == [40, 10, 30]
    for job in (manifest for manifest in manifests if manifest["kind"] == "Job"):
        assert job["metadata"]["labels"] == {"admitter.dev/queue-name": "elastic-quota"}
        assert job["spec"]["suspend"] is True
        pod = job["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        assert (pod["restartPolicy"], bool(container["image"])) == ("Never", True)
        assert container["resources"]["limits"] == container["resources"]["requests"], "devices need both"


def test_each_row_of_what_is_tried_names_a_test_that_exists() -> None:
    page = (ROOT / "docs" / "permissions.md").read_text()
    named = re.findall(r"`(test_(?:abuse|leader|pod|queued)_\w+\.py)::(test_\w+)`", page)
    assert len(named) > 40
    for file, function in named:
        assert f"def {function}(" in (ROOT / "tests" / "cluster" / file).read_text(), f"{file}::{function}"
