"""`admitter lint`: what is probably not meant in a configuration."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated, Final

import typer
from rich.table import Column, Table
from rich.text import Text

from admitter.cli.complaints import UsageError
from admitter.cli.looking import ConfigFile, Output, StateFile, ask, console, look_at_all, settings_of, write
from admitter.cli.options import Context, Filenames, Kubeconfig, Paths
from admitter.client.policies import NOT_SERVED, mutating_version
from admitter.convert.settings import Settings
from admitter.insight.lint import KINDS, Finding, Severity, lint
from admitter.insight.snapshot_file import facts
from admitter.policy.snapshot import Facts, Snapshot
from admitter.simulate.manifests import read
from admitter.simulate.simulator import Simulator
from admitter.visible import visible

_COLORS: Final = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}


def lint_command(  # noqa: PLR0913, PLR0917  # each is an option of the command
    paths: Paths = None,
    filename: Filenames = None,
    live: Annotated[bool, typer.Option("--live", help="Look at the cluster, and read no files.")] = False,
    fail_on: Annotated[
        Severity, typer.Option(help="Exit with 1 if there is anything as bad as this.")
    ] = Severity.ERROR,
    min_severity: Annotated[
        Severity, typer.Option(help="Show only what is as bad as this; --fail-on looks at all.")
    ] = Severity.NOTE,
    output: Annotated[Output, typer.Option("--output", "-o", help="The form of the answer.")] = Output.TABLE,
    state: StateFile = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    config: ConfigFile = None,
) -> None:
    """Find probable mistakes in queues, Cohorts, flavors and quota.

    Of files, or of a cluster with --live: quota above what nodes have, flavors without nodes or queues,
    queues that no namespace can use, cycles, lending that can't be borrowed or reclaimed, a min that is read
    as a cap; and with --live, that no controller runs. docs/lint.md says of each rule why it matters.

    Exits with 1 if there is anything as bad as --fail-on says.

    Examples:
    - `admitter lint -f quota/`
    - `admitter lint --live --fail-on warning --min-severity warning`: of the cluster, without notes
    """
    files = [*(filename or ()), *(paths or ())]
    if bool(files) == (live or state is not None):
        raise UsageError("give files or folders with -f, or --live, or --state")
    if files:
        findings = _of_files(files, settings_of(config))
    else:
        taken, controllers = look_at_all(state, kubeconfig, context, config, KINDS)
        findings = lint(Snapshot(facts(taken)), controllers)
    if live and ask(kubeconfig, context, mutating_version) is None:
        findings.append(Finding("PoliciesLeftOut", Severity.NOTE, "cluster", NOT_SERVED))
    shown = list(_as_bad_as(min_severity, findings))
    if output is Output.TABLE:
        _print(shown)
    else:
        write([asdict(finding) for finding in shown], output)
    if any(_as_bad_as(fail_on, findings)):
        raise typer.Exit(1)


def _as_bad_as(severity: Severity, findings: list[Finding]) -> Iterator[Finding]:
    severities = list(Severity)
    most = severities.index(severity)
    return (each for each in findings if severities.index(each.severity) <= most)


def _of_files(paths: list[str], settings: Settings) -> list[Finding]:
    """Findings of manifests, those included that can't be read as what they are."""
    timeline = read(paths)
    snapshot = Snapshot(Facts(timeline.start, settings))
    simulator = Simulator(timeline, snapshot)
    for _ in simulator.run(until=timeline.start):
        pass
    unusable = [Finding("InvalidSpec", Severity.ERROR, e.object, e.message) for e in simulator.errors]
    return unusable + lint(snapshot)


def _print(findings: list[Finding]) -> None:
    """Print them by object, that with the worst first."""
    if not findings:
        typer.echo("nothing found")
        return
    by_object: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_object[finding.object].append(finding)
    rule = max(len(finding.rule) for finding in findings)
    for title, found in by_object.items():
        console().print(Text(visible(title), style="bold"))
        widths = (Column(width=max(map(len, Severity))), Column(width=rule), Column(overflow="fold"))
        table = Table(*widths, box=None, show_header=False)
        for each in found:
            severity = Text(each.severity, style=_COLORS[each.severity])
            table.add_row(severity, each.rule, visible(each.message))
        console().print(table)
