"""The report of a run of faults, as Markdown and as JSON."""

import json
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from benchmarks.server import commit, machine
from tests.faults.harness import Outcome
from tests.faults.plan import Plan

Json = dict[str, Any]


def digest(plan: Plan) -> str:
    """A plan in a few letters: equal plans have equal ones."""
    return sha256(repr(plan).encode()).hexdigest()[:12]


def summary(outcome: Outcome, replicas: int) -> Json:
    """All that there is to tell."""
    blind = [until - after for after, until in outcome.blind]
    return {
        "at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": commit(),
        "machine": machine(),
        "seed": outcome.plan.seed,
        "plan": digest(outcome.plan),
        "seconds": outcome.plan.seconds,
        "replicas": replicas,
        "jobs": outcome.plan.jobs,
        "jobs_in_bursts": outcome.plan.burst,
        "faults": sum(outcome.faults.values()),
        "faults_by_kind": dict(sorted(outcome.faults.items())),
        "faults_that_met_nothing": dict(sorted(outcome.missed.items())),
        "calls_that_failed": dict(sorted(outcome.calls.items())),
        "counted": dict(sorted(outcome.counts.items())),
        "controllers_started": outcome.starts,
        "blind_intervals": {"number": len(blind), "versions": sum(blind)},
        "drained_s": round(outcome.drained, 1),
        "take_overs_s": sorted(round(seconds, 1) for seconds in outcome.take_overs),
        "violations": outcome.findings,
    }


def markdown(found: Json) -> str:
    """The same for people."""
    counted, command = found["counted"], "make test-faults"
    options = f"SECONDS={found['seconds']:.0f} JOBS={found['jobs']} SEED={found['seed']}"
    made = (
        f"Made by `{command} {options}` at {found['at']}, commit {found['commit']}, on {found['machine']}; "
    )
    made += f"plan {found['plan']}, replicas: {found['replicas']}."
    jobs = f"{found['jobs']} Jobs and {found['jobs_in_bursts']} more at once"
    result = f"**{found['faults']} faults, {jobs}, violations: {len(found['violations'])}.**"
    lines = [
        "# Faults survived",
        "",
        made,
        "",
        result,
        "",
        "| what the auditor counted | |",
        "|---|---:|",
        *(f"| {name} | {number} |" for name, number in counted.items()),
        f"| controllers started | {found['controllers_started']} |",
        f"| seconds until all was at rest after the last fault | {found['drained_s']} |",
        f"| seconds without a leader after it was killed | {', '.join(map(str, found['take_overs_s']))} |",
        "",
        "| fault | times |",
        "|---|---:|",
        *(f"| {kind} | {times} |" for kind, times in found["faults_by_kind"].items()),
        *(f"| {kind}, but met nothing | {n} |" for kind, n in found["faults_that_met_nothing"].items()),
        "",
        "| calls of the controller that failed | |",
        "|---|---:|",
        *(f"| {fate} | {number} |" for fate, number in found["calls_that_failed"].items()),
        "",
        *(f"- {words}" for words in found["violations"]),
    ]
    return "\n".join(lines).rstrip() + "\n"


def dump(found: Json) -> str:
    """The same for machines."""
    return json.dumps(found, indent=2) + "\n"
