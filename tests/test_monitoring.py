"""Alerts and dashboard ask for metrics that there are, by labels that they have; each alert has its page."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.metrics import documented

ROOT = Path(__file__).parents[1]
RULES = yaml.safe_load((ROOT / "deploy" / "monitoring" / "alerts.yaml").read_text())["spec"]["groups"][0][
    "rules"
]
DASHBOARD = json.loads((ROOT / "deploy" / "monitoring" / "dashboard.json").read_text())
OF_PROMETHEUS = {"instance", "pod", "le"}
ENDS = re.compile(r"_(bucket|sum|count)$")


def queries() -> Iterator[tuple[str, str]]:
    """All that is asked, and by which dashboard or rule."""
    for rule in RULES:
        yield rule["alert"], rule["expr"]
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


@pytest.mark.parametrize(("asker", "query"), [pytest.param(*each, id=each[0]) for each in queries()])
def test_a_query_asks_for_what_there_is(asker: str, query: str) -> None:
    known = documented()
    asked = [
        (ENDS.sub("", name), name, set(re.findall(r"(\w+)\s*(?:=~|!=|=)", matchers or "")))
        for name, matchers in re.findall(r"\b(admitter_\w+)(?:\{([^}]*)\})?", query)
    ]
    assert asked, f"{asker} asks for nothing"
    labels: set[str] = set(OF_PROMETHEUS)
    for metric, name, matched in asked:
        assert metric in known, f"{asker}: there is no metric {metric}"
        assert name == metric or known[metric].kind == "histogram", f"{asker}: {metric} is no histogram"
        assert matched <= known[metric].labels, f"{asker}: {metric} has no label of {matched}"
        labels |= known[metric].labels
    grouped = re.findall(r"\b(?:by|without|on)\s*\(([\w, ]*)\)", query)
    assert {label.strip() for group in grouped for label in group.split(",")} <= labels


def test_brackets_are_closed() -> None:
    for who, query in queries():
        for opened, closed in ("()", "{}", "[]"):
            assert query.count(opened) == query.count(closed), who


def test_every_alert_has_a_page_that_names_it() -> None:
    page = (ROOT / "docs" / "alerts.md").read_text()
    # A heading that has changed keeps its old anchor, to which installed alerts link.
    sections = re.findall(r'(?:^<a id="([\w-]+)"></a>\n\n)?^## (.*)$', page, flags=re.MULTILINE)
    anchors = {kept or title.lower().replace(" ", "-") for kept, title in sections}
    for rule in RULES:
        path, _, anchor = rule["annotations"]["runbook_url"].partition("#")
        assert path == "docs/alerts.md"
        assert anchor in anchors
        assert f"`{rule['alert']}`" in page
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    assert len(anchors) == len(RULES)


def test_panels_do_not_cover_each_other() -> None:
    places = [panel["gridPos"] for panel in DASHBOARD["panels"]]
    taken = {(p["x"] + x, p["y"] + y) for p in places for x in range(p["w"]) for y in range(p["h"])}
    assert len(taken) == sum(p["w"] * p["h"] for p in places)
