"""`admitter import`: manifests of another queueing system in, Admitter's out, and a report of every field."""

import re
import sys
from collections.abc import Iterable
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import Annotated, Final, TextIO

import orjson
import typer
import yaml
from rich.console import Console
from rich.table import Table
from rich.text import Text

from admitter.cli.complaints import UsageError, complain
from admitter.cli.looking import ask
from admitter.cli.options import Context, Filenames, Kubeconfig, Paths
from admitter.client.errors import ClusterError
from admitter.documents import ManifestError
from admitter.importers.reading import from_cluster, from_paths
from admitter.importers.systems import SYSTEMS, SystemName
from admitter.importers.translation import Fidelity, Json, Translation, TranslationFinding
from admitter.visible import visible

_COLORS: Final = {
    Fidelity.TRANSLATED: "green",
    Fidelity.APPROXIMATED: "yellow",
    Fidelity.REFUSED: "red",
}
_NUMBERED: Final = re.compile(r"[0-9]{2,}-[a-z]+\.yaml")
"""What files in a folder are called: by their place in the order, and their kind."""


class Report(StrEnum):
    """Forms of the report."""

    TABLE = "table"
    JSON = "json"
    NONE = "none"


def import_(  # noqa: PLR0913  # each is an option of the command
    system: Annotated[
        SystemName,
        typer.Argument(help=f"The system of the manifests: {', '.join(SystemName)}.", metavar="SYSTEM"),
    ],
    paths: Paths = None,
    filename: Filenames = None,
    *,
    live: Annotated[
        bool, typer.Option("--live", help="Read what is in a cluster, instead of or after files.")
    ] = False,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    to: Annotated[
        Path | None,
        typer.Option(
            help="Where the manifests go: a file, or a folder that is there, which gets a file a kind. By "
            "default standard output.",
            metavar="FILE|DIR",
            show_default=False,
        ),
    ] = None,
    report: Annotated[
        Report, typer.Option(help="How the report looks that goes to standard error.")
    ] = Report.TABLE,
) -> None:
    """Translate the queues, quotas and Jobs of another system.

    Reads manifests of that system, and writes Admitter's in the order in which to apply them. The report
    names every field that was read: it is translated, approximated (and how it differs), or refused (and
    why). Nothing is changed in any cluster.

    Exits with 0 if all is translated, 1 if the worst is approximated, 2 if anything is refused or can't be
    read.

    Examples:
    - `admitter import kueue -f queues/ --to admitter.yaml`
    - `admitter import nos --live --report json`: what is in a cluster, and a report for a program
    - `kubectl get queues.scheduling.volcano.sh -o yaml | admitter import volcano -f -`
    """
    files = [*(filename or ()), *(paths or ())]
    if not files and not live:
        raise UsageError("give files or folders with -f, - for standard input, or --live")
    if (kubeconfig or context) and not live:
        raise UsageError("a cluster is only read with --live")
    into = Translation()
    try:
        documents = from_paths(files, into)
        if live:
            collections = SYSTEMS[system].all_collections()
            documents += ask(kubeconfig, context, lambda transport: from_cluster(transport, collections))
        SYSTEMS[system].translate(documents, into)
        _write(into.in_order(), to)
    except (ClusterError, ManifestError) as error:
        complain(error)
        raise typer.Exit(2) from error
    _tell(into, report)
    raise typer.Exit(into.worst.severity)


def _write(manifests: list[Json], output: Path | None) -> None:
    if output is None:
        _dump(manifests, sys.stdout)
        sys.stdout.flush()  # before the report, where both go to one place
        return
    files = {output: manifests}
    if output.is_dir():
        kinds = groupby(manifests, key=lambda manifest: str(manifest["kind"]))
        files = {
            output / f"{number:02}-{kind.lower()}.yaml": list(each)
            for number, (kind, each) in enumerate(kinds, start=1)
        }
        _refuse_leftovers(output, set(files))
    for path, each in files.items():
        try:
            with path.open("w") as file:
                _dump(each, file)
        except OSError as error:
            raise ManifestError(f"{path}: can't be written: {error.strerror}") from error


def _refuse_leftovers(folder: Path, files: set[Path]) -> None:
    """What another import has left in a folder would be applied with what is written now.

    Raises:
        ManifestError: there are such files, which are not overwritten.
    """
    written = (path for path in folder.iterdir() if _NUMBERED.fullmatch(path.name))
    if left := sorted(path.name for path in written if path not in files):
        words = "from another import: remove them, or give another folder"
        raise ManifestError(f"{folder}: has {', '.join(left)} {words}")


class _Dumper(yaml.SafeDumper):
    """Writes each value where it stands, instead of referring to an equal one."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002  # the library calls it so
        return True


def _dump(manifests: list[Json], file: TextIO) -> None:
    yaml.dump_all(manifests, file, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


def _tell(into: Translation, report: Report) -> None:
    if report is Report.JSON:
        findings = [
            {"object": f.object, "field": f.field, "outcome": f.outcome, "words": f.words}
            for f in into.findings
        ]
        result = {"worst": into.worst, "manifests": len(into.manifests), "findings": findings}
        sys.stderr.buffer.write(orjson.dumps(result, option=orjson.OPT_INDENT_2) + b"\n")
    elif report is Report.TABLE:
        width = None if sys.stderr.isatty() else 160
        console = Console(stderr=True, width=width, highlight=False, markup=False, emoji=False)
        if into.findings:
            console.print(_table(into.findings))
        console.print(_summary(into))


def _table(findings: Iterable[TranslationFinding]) -> Table:
    """One block an object: each field that is not the same, and in one row those that are."""
    table = Table(box=None, pad_edge=False)
    table.add_column("Object", overflow="fold")
    table.add_column("Outcome")
    table.add_column("Field", overflow="fold")
    table.add_column("How it differs, or why not", overflow="fold")
    blocks: dict[str, list[TranslationFinding]] = {}
    for finding in findings:
        blocks.setdefault(finding.object, []).append(finding)
    for name, block in blocks.items():
        rows: list[tuple[Fidelity, str, str]] = [
            (f.outcome, f.field, f.words)
            for f in sorted(block, key=lambda f: -f.outcome.severity)
            if f.outcome is not Fidelity.TRANSLATED
        ]
        same = [f for f in block if f.outcome is Fidelity.TRANSLATED]
        whole = "; ".join(f.words for f in same if not f.field)
        heads = dict.fromkeys(_head(f.field) for f in same if f.field)
        if same:
            rows.append((Fidelity.TRANSLATED, ", ".join(heads), whole))
        for number, (outcome, field, words) in enumerate(rows):
            shown = "" if number else visible(name)
            table.add_row(shown, Text(outcome, style=_COLORS[outcome]), visible(field), visible(words))
        table.add_row()
    return table


def _head(path: str) -> str:
    """The field at the top of which a path is a part, and the one below."""
    return re.sub(r"^([^.\[]+(?:\.[^.\[]+)?).*", r"\1", path)


def _summary(into: Translation) -> str:
    counts = [f"{sum(f.outcome is each for f in into.findings)} {each}" for each in Fidelity]
    manifests = f"{len(into.manifests)} manifest{'' if len(into.manifests) == 1 else 's'}"
    return f"{manifests}; fields: {', '.join(counts)}"
