"""The chart's files belong together, and to the bundle; no Helm is needed to tell."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from admitter import __version__
from admitter.install import chart
from tests.chart.helm import CHART

Json = dict[str, Any]

SCHEMA: Json = json.loads((CHART / "values.schema.json").read_text())
VALUES: Json = yaml.safe_load((CHART / "values.yaml").read_text())
NOT_BY_KEY = {"configuration", "resources", "nodeSelector", "affinity", "labels"}
"""Values that are maps by themselves: their keys are not the chart's."""


def flat(values: Json, prefix: str = "") -> dict[str, Any]:
    """Values by their path."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        inner = isinstance(value, dict) and key not in NOT_BY_KEY
        found |= flat(value, f"{prefix}{key}.") if inner else {f"{prefix}{key}": value}
    return found


def test_what_is_generated_is_what_it_is_made_of() -> None:
    assert chart.main(["--check"]) == 0


def test_a_manifest_that_changes_where_the_chart_has_a_value_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("crds", "manifests"):
        (tmp_path / name).mkdir()
    text = (chart.ROOT / "manifests" / "40-deployment.yaml").read_text()
    (tmp_path / "manifests" / "40-deployment.yaml").write_text(text.replace("replicas: 2", "replicas: 4"))
    monkeypatch.setattr(chart, "ROOT", tmp_path)
    with pytest.raises(chart.ChartError, match=r"40-deployment.yaml: .*\n *replicas: 2"):
        list(chart.contents())


def test_what_differs_is_named_and_written_anew_and_what_is_of_no_file_any_more_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Path(shutil.copytree(CHART, tmp_path / "admitter"))
    monkeypatch.setattr(chart, "CHART", made)
    changed, stale = made / "templates" / "10-permissions.yaml", made / "templates" / "99-gone.yaml"
    text = changed.read_text()
    stale.write_text(text)
    changed.write_text("")
    assert chart.main(["--check"]) == 1
    found = [line.split()[1] for line in capsys.readouterr().out.splitlines() if line.startswith("--- ")]
    assert [Path(name).name for name in found] == ["10-permissions.yaml", "99-gone.yaml"]
    assert chart.main([]) == 0
    assert (changed.read_text(), stale.exists()) == (text, False)
    assert (made / "templates" / "monitoring.yaml").exists(), "what is written by hand stays"


def test_what_would_be_read_as_a_template_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("crds", "manifests"):
        (tmp_path / name).mkdir()
    (tmp_path / "manifests" / "10-more.yaml").write_text("a: '{{ b }}'\n")
    monkeypatch.setattr(chart, "ROOT", tmp_path)
    with pytest.raises(chart.ChartError, match="would be read as a template"):
        list(chart.contents())


def test_the_versions_are_the_packages() -> None:
    said = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (said["version"], said["appVersion"]) == (__version__, __version__)


def test_each_value_is_in_the_schema_with_its_meaning() -> None:
    assert SCHEMA["properties"].keys() == VALUES.keys() | {"global"}
    for path in flat(VALUES):
        node = SCHEMA
        for key in path.split("."):
            node = node["properties"][key]
        assert node["description"].endswith(".")


def test_each_value_is_in_the_table_with_its_default() -> None:
    page = (CHART / "README.md").read_text()
    rows = dict(re.findall(r"^\| `([\w.]+)` \| `([^`]*)` \|", page, flags=re.MULTILINE))
    assert {path: yaml.safe_load(default) for path, default in rows.items()} == flat(VALUES)
