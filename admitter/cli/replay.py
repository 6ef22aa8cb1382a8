"""`admitter replay`: whether this version decides what was decided."""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

import orjson
import typer
from rich.table import Column, Table

from admitter.cli.complaints import UsageError
from admitter.cli.looking import Output, console, write
from admitter.documents import ManifestError
from admitter.journal.calls import JournalError
from admitter.journal.files import files
from admitter.journal.replay import ReplayDifference, Replayed, replay
from admitter.visible import visible

DIFFERS: Final = 3
"""Exit status if something is decided otherwise now."""
SHOWN: Final = 5
"""So many parts of a difference are shown."""


def replay_command(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(help="The same as -f.", metavar="PATH", exists=True, show_default=False),
    ] = None,
    filename: Annotated[
        list[Path] | None,
        typer.Option(
            "--filename",
            "-f",
            help="A journal, or a folder of them, as written by admitter run --journal. May be repeated.",
            metavar="PATH",
            exists=True,
            show_default=False,
        ),
    ] = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="The form of the answer.")] = Output.TABLE,
) -> None:
    """Decide again what a journal tells of, and compare: exit status 3 if anything differs.

    A journal has all inputs and decisions of the engine, with UIDs in place of names. No cluster is
    needed. With the version that wrote it nothing may differ; with another one, what differs is what that
    version changes for you.

    Examples:
    - `admitter replay -f journal/`: all files of a folder
    - `admitter replay -f decisions-000007.jsonl -o json`
    """
    given = [*(filename or ()), *(paths or ())]
    if not given:
        raise UsageError("give a journal, or a folder of them, with -f")
    found = [each for path in given for each in (files(path) if path.is_dir() else [path])]
    if not found:
        raise ManifestError(f"{', '.join(map(str, given))}: there is no journal in it")
    done: list[Replayed] = []
    errors: list[str] = []
    for path in found:
        try:
            done.append(replay(path))
        except JournalError as error:
            errors.append(str(error))
    if output is not Output.TABLE:
        write([_as_json(each) for each in done], output)
    elif done:
        _show(done)
    if errors:
        raise ManifestError("\n".join(map(visible, errors)))
    if any(each.difference is not None for each in done):
        raise typer.Exit(DIFFERS)


def _show(done: list[Replayed]) -> None:
    names = (Column(heading, no_wrap=True) for heading in ("FILE", "VERSION"))
    counts = ("CALLS", "CYCLES", "ADMITTED", "EVICTED", "REASONS")
    numbers = (Column(heading, justify="right") for heading in counts)
    table = Table(*names, *numbers, "DECIDED", box=None, pad_edge=False, header_style="")
    for each in done:
        figures = (each.calls, each.cycles, each.admissions, each.evictions, each.refusals)
        difference = each.difference
        verdict = f"otherwise in line {difference.line}" if difference is not None else "the same"
        table.add_row(visible(each.path.name), visible(each.version), *map(str, figures), verdict)
    shown = console()
    shown.print(table)
    for each in done:
        if each.difference is not None:
            time = datetime.fromtimestamp(each.difference.time, UTC)
            shown.print(
                f"\n{visible(each.path)}:{each.difference.line}, the cycle at {time:%Y-%m-%dT%H:%M:%SZ}:"
            )
            for line in _told(each.difference):
                shown.print(f"  {visible(line)}")


def _told(difference: ReplayDifference) -> Iterator[str]:
    """Which decisions are not there any more, and which are new."""
    for what in difference.then:
        then, now = (_parts(plan[what]) for plan in (difference.then, difference.now))
        gone, new = [each for each in then if each not in now], [each for each in now if each not in then]
        for words, parts in (("then, and not now", gone), ("now, and not then", new)):
            for part in parts[:SHOWN]:
                yield f"{what}, {words}: {part}"
            if len(parts) > SHOWN:
                yield f"{what}, {words}: {len(parts) - SHOWN} more"
        if not gone and not new:
            yield f"{what}: the same in another order"


def _parts(decided: Any) -> list[str]:  # noqa: ANN401  # a list, or a map by UID
    pairs = decided.items() if isinstance(decided, dict) else decided or ()
    return [orjson.dumps(pair).decode() for pair in pairs]


def _as_json(done: Replayed) -> dict[str, Any]:
    return {
        "file": str(done.path),
        "version": done.version,
        "calls": done.calls,
        "cycles": done.cycles,
        "admissions": done.admissions,
        "evictions": done.evictions,
        "reasons": done.refusals,
        "difference": asdict(done.difference) if done.difference is not None else None,
    }
