"""`admitter lint`: what is probably not meant in a configuration."""

from dataclasses import asdict
from typing import Annotated, Final

import typer
from rich.table import Column, Table
from rich.text import Text

from admitter.cli.looking import ConfigFile, Output, StateFile, ask, console, look, settings_of, write
from admitter.cli.options import Context, Kubeconfig
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
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            help="Files or folders of manifests; - reads standard input.", metavar="PATH", show_default=False
        ),
    ] = None,
    live: Annotated[bool, typer.Option("--live", help="Look at the cluster, and read no files.")] = False,
    fail_on: Annotated[
        Severity, typer.Option(help="Exit with 1 if there is anything as bad as this.")
    ] = Severity.ERROR,
    output: Annotated[Output, typer.Option("--output", "-o", help="The form of the answer.")] = Output.TABLE,
    state: StateFile = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    config: ConfigFile = None,
) -> None:
    """Find probable mistakes in queues, Cohorts, flavors and quota.

    Of files, or of a cluster with --live: quota above what nodes have, flavors without nodes or queues,
    queues that no namespace can use, cycles, lending that can't be borrowed or reclaimed, a min that is read
    as a cap. docs/lint.md says of each rule why it matters.

    Exits with 1 if there is anything as bad as --fail-on says.

    Examples:
    - `admitter lint quota/`
    - `admitter lint --live --fail-on warning`: of the cluster
    """
    if bool(paths) == (live or state is not None):
        raise typer.BadParameter("give PATHs, or --live, or --state", param_hint="PATH")
    if paths:
        findings = _of_files(paths, settings_of(config))
    else:
        findings = lint(Snapshot(facts(look(state, kubeconfig, context, config, KINDS))))
    if live and ask(kubeconfig, context, mutating_version) is None:
        findings.append(Finding("PoliciesLeftOut", Severity.NOTE, "cluster", NOT_SERVED))
    if output is Output.TABLE:
        _print(findings)
    else:
        write([asdict(finding) for finding in findings], output)
    severities = list(Severity)
    limit = severities.index(fail_on)
    if any(severities.index(finding.severity) <= limit for finding in findings):
        raise typer.Exit(1)


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
    if not findings:
        typer.echo("nothing found")
        return
    short = (Column(heading, no_wrap=True) for heading in ("SEVERITY", "RULE", "OBJECT"))
    table = Table(*short, Column("WHAT", overflow="fold"), box=None, header_style="bold")
    for finding in findings:
        severity = Text(finding.severity, style=_COLORS[finding.severity])
        table.add_row(severity, finding.rule, visible(finding.object), visible(finding.message))
    console().print(table)
