"""Writes the Helm chart's copies of the bundle: `python -m admitter.install.chart`, or `--check` to compare.

Of `deploy/chart` only what has to be the chart's own is written by hand. docs/design/chart.md says why.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from admitter.install.chart_values import VALUES
from admitter.made_files import write_or_check

ROOT: Final = Path(__file__).parents[2]
CHART: Final = ROOT / "deploy" / "chart"
HEADER: Final = "{{/* Written by `make crds` from %s. Do not edit. */}}\n"
COPIED: Final = {
    "alerts.yaml": "deploy/monitoring/alerts.yaml",
    "dashboard.json": "deploy/monitoring/dashboard.json",
}
"""What the chart reads as it is, in its folder `files`, and where it comes from."""

_WEB: Final = "deploy/web.yaml"
_CONTROLLER: Final = ".Values.deployment.enabled"
_WHOLE: Final = {"manifests/40-deployment.yaml": _CONTROLLER, _WEB: ".Values.web.enabled"}
"""Files of which all objects are left out where the condition does not hold, but for those of `_SHARED`."""
_SHARED: Final = {"ConfigMap": f"(or {_CONTROLLER} .Values.web.enabled)"}
"""Kinds in these files that others than the controller need too."""
_ONLY_IF: Final = {
    "Namespace": '(ne .Release.Namespace "admitter-system")',
    "MutatingAdmissionPolicy": '(include "admitter.mutatingPolicies" .)',
    "MutatingAdmissionPolicyBinding": '(include "admitter.mutatingPolicies" .)',
    "PodDisruptionBudget": "(gt (int .Values.replicas) 1)",
}
"""Kinds of which objects are left out where the condition does not hold."""

_KEEP: Final = "metadata:\n  annotations:\n    helm.sh/resource-policy: keep\n"
_NOT_VALUES: Final = ("apiVersion", "kind", "bind")
"""Keys of the configuration that the chart writes itself: the Deployment's port and probes go by `bind`."""


class ChartError(Exception):
    """A manifest has changed in a place where the chart has a value."""


def contents() -> Iterator[tuple[Path, str]]:
    """The generated files, by their place in the chart, and the text of each.

    Raises:
        ChartError: what a value stands for is not in the manifest any more.
    """
    for path in sorted((ROOT / "crds").glob("*.yaml")):
        yield Path("templates", "crds", path.name), _definition(path)
    for path in sorted((ROOT / "manifests").glob("*.yaml")):
        yield Path("templates", path.name), _template(f"manifests/{path.name}")
    yield Path("templates", "50-web.yaml"), _template(_WEB)
    for name, source in COPIED.items():
        yield Path("files", name), (ROOT / source).read_text()
    yield Path("values.schema.json"), _values_schema()


def _definition(path: Path) -> str:
    """A definition that stays when the chart is uninstalled: with it all queues and Workloads would go."""
    text = _plain(path)
    return HEADER % f"crds/{path.name}" + _replaced(text, "metadata:\n", _KEEP, path, count=1)


def _template(source: str) -> str:
    path = ROOT / source
    text = _plain(path)
    for old, new in VALUES.get(source, ()):
        text = _replaced(text, old, new, path)
    whole = _WHOLE.get(source, "")
    documents = "---\n".join(
        _conditional(document, whole) for document in re.split(r"^---\n", text, flags=re.M)
    )
    return HEADER % source + documents


def _plain(path: Path) -> str:
    text = path.read_text()
    if "{{" in text:
        raise ChartError(f"{path}: {{{{ would be read as a template")
    return text


def _replaced(text: str, old: str, new: str, path: Path, count: int = -1) -> str:
    if text.count(old) != 1 and (count != 1 or old not in text):
        raise ChartError(f"{path}: the chart has a value for this, which must be there once:\n{old}")
    return text.replace(old, new, count)


def _conditional(document: str, whole: str) -> str:
    """A document, left out where the condition of its file does not hold, or that of its kind."""
    found = re.search(r"^kind: (\w+)$", document, flags=re.M)
    kind = found[1] if found else ""
    of_file = whole and _SHARED.get(kind, whole)
    conditions = [each for each in (of_file, _ONLY_IF.get(kind)) if each]
    if not conditions:
        return document
    condition = conditions[0] if len(conditions) == 1 else f"(and {' '.join(conditions)})"
    return f"{{{{- if {condition} }}}}\n{document}{{{{- end }}}}\n"


def _values_schema() -> str:
    """The schema of the values as it is, and in it that of the configuration as it must be."""
    schema: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
    of_file = json.loads((ROOT / "docs" / "configuration.schema.json").read_text())
    properties = {key: each for key, each in of_file["properties"].items() if key not in _NOT_VALUES}
    schema["$defs"] = of_file["$defs"]
    own = {key: schema["properties"]["configuration"][key] for key in ("description", "type")}
    schema["properties"]["configuration"] = {**own, "additionalProperties": False, "properties": properties}
    return json.dumps(schema, indent=2) + "\n"


def main(arguments: list[str]) -> int:
    """Write the files, or with `--check` show how they differ; 1 if one does."""
    wanted = {CHART / path: text for path, text in contents()}
    return write_or_check(arguments, wanted, [*_old(CHART / "templates"), *_old(CHART / "files")])


def _old(folder: Path) -> Iterator[Path]:
    """What was written before, and may be of a file that is gone."""
    beginning = "" if folder.name == "files" else HEADER.partition("%s")[0]
    for path in folder.rglob("*"):
        if path.is_file() and path.read_text().startswith(beginning):
            yield path


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
