"""What the pages for contributors say of the code: files that exist, packages, import contracts."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
CODE = ("admitter", "tests", "tools", "benchmarks")
NAMED = re.compile(r"`((?:admitter|tests|docs|manifests|tools|crds|deploy)/[\w./-]+)`")


def section(heading: str) -> str:
    return ARCHITECTURE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_each_file_that_the_page_names_exists(page: str) -> None:
    named = NAMED.findall((ROOT / page).read_text())
    assert len(named) > 10
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_each_module_that_a_page_names_exists() -> None:
    modules = {str(path.relative_to(ROOT)) for top in CODE for path in (ROOT / top).rglob("*.py")}
    named = [
        (page.name, name)
        for page in sorted((ROOT / "docs").rglob("*.md"))
        for name in re.findall(r"`([a-z_/]*[a-z_]\.py)`", page.read_text())
    ]
    assert len(named) > 100
    there = {f"/{module}" for module in modules}
    assert [each for each in named if not any(module.endswith(f"/{each[1]}") for module in there)] == []


def test_hops_are_few_and_their_files_exist() -> None:
    page = (ROOT / "docs" / "design" / "hops.md").read_text()
    named = re.findall(r"`([a-z_]+/[\w/]+\.py)`", page)
    assert [name for name in named if not (ROOT / "admitter" / name).exists()] == []
    hops = [len(re.findall(r"^\| \d+ \|", table, re.MULTILINE)) for table in page.split("\n## ")[1:]]
    assert hops == [12, 8]


def test_ten_files_are_listed() -> None:
    assert len(re.findall(r"^\|[^|]*\| `", section("Ten files"), re.MULTILINE)) == 10
    assert len(re.findall(r"^\d\. \*\*", section("Eight steps of a Job"), re.MULTILINE)) == 8


def test_each_import_contract_has_a_row() -> None:
    rows = re.findall(
        r"^\| The|^\| What|^\| Sim|^\| Each|^\| Modules", section("Five import contracts"), re.MULTILINE
    )
    assert len(rows) == len(CONTRACTS) == 5


def test_packages_are_those_of_the_layers_and_in_their_order() -> None:
    (layers,) = (each["layers"] for each in CONTRACTS if each["type"] == "layers")
    written = re.findall(r"`admitter/(\w+)`", section("Packages"))
    rank = {
        name.strip().removeprefix("admitter."): number
        for number, layer in enumerate(layers)
        for name in layer.split("|")
    }
    packages = {path.parent.name for path in (ROOT / "admitter").glob("*/__init__.py")}
    assert set(written) == packages
    assert [rank[name] for name in written] == sorted(rank[name] for name in written)
