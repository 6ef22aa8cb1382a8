"""What the tests of metrics share: the table of docs/metrics.md, and the rules that names keep."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

PAGE = Path(__file__).parents[1] / "docs" / "metrics.md"
UNITS = ("seconds", "bytes")
OTHER_UNITS = ("milliseconds", "microseconds", "minutes", "kilobytes", "megabytes", "percent", "millicores")


class Documented(NamedTuple):
    """A row of the table."""

    kind: str
    labels: frozenset[str]


def documented() -> dict[str, Documented]:
    """All metrics that the documentation has, by name."""
    rows = re.findall(
        r"^\| `(admitter_\w+)` \| (\w+) \| ([\w, ]*) \| \S", PAGE.read_text(), flags=re.MULTILINE
    )
    return {
        name: Documented(kind, frozenset(labels.replace(" ", "").split(",")) - {""})
        for name, kind, labels in rows
    }


def families(page: str) -> dict[str, Metric]:
    """Admitter's metrics on a page, by the name by which they are asked for.

    When series began is left out: `admitter run` switches that off for its process.
    """
    found = text_string_to_metric_families(page)
    own = [family for family in found if family.name.startswith("admitter_")]
    return {shown(family): family for family in own if not family.name.endswith("_created")}


def shown(family: Metric) -> str:
    """The name as it stands on a page: the parser leaves out the end of a counter's."""
    return f"{family.name}_total" if family.type == "counter" else family.name


def labels(family: Metric) -> frozenset[str]:
    """The labels of its series, but for those of buckets."""
    return frozenset(label for sample in family.samples for label in sample.labels) - {"le"}


def against_conventions(found: Iterable[Metric]) -> Iterator[str]:
    """What breaks Prometheus' rules on names, units and texts."""
    for family in found:
        name = shown(family)
        if not re.fullmatch(r"admitter(_[a-z0-9]+)+", name):
            yield f"{name}: not in snake case"
        if not family.documentation.endswith("."):
            yield f"{name}: no sentence says what it is"
        if (family.type == "counter") != name.endswith("_total"):
            yield f"{name}: a {family.type} must {'' if family.type == 'counter' else 'not '}end on _total"
        if family.type == "histogram" and not name.endswith(UNITS):
            yield f"{name}: has no unit"
        yield from (f"{name}: {unit} is no base unit" for unit in OTHER_UNITS if unit in name)
        if re.search(r"_(gauge|counter|histogram)(_|$)", name):
            yield f"{name}: says its type"
