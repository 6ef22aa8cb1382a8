"""The report of operations of tenants, as Markdown and as JSON."""

import json
from collections import Counter
from datetime import UTC, datetime
from typing import Any, Final

from benchmarks.server import commit, machine
from tests.abuse.harness import Outcome
from tests.abuse.scene import tenants

Json = dict[str, Any]

COLUMNS: Final = (
    *("seed", "plan", "operations", "taken", "refused", "seconds"),
    *("pods bound", "of a described kind", "queued ones", "uses checked", "excesses", "restarts"),
    *("leaders killed", "sound Jobs", "longest wait of one, s"),
)


def summary(outcomes: list[Outcome]) -> Json:
    """All that there is to tell of some runs."""
    return {
        "at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": commit(),
        "machine": machine(),
        "tenants": len(tenants()),
        "runs": [_run(outcome) for outcome in outcomes],
    }


def _run(outcome: Outcome) -> Json:
    return {
        "seed": outcome.seed,
        "plan": outcome.plan,
        "operations": outcome.operations,
        "seconds": round(outcome.seconds, 1),
        "answers": {str(status): number for status, number in sorted(outcome.answers.items())},
        "refusals": dict(outcome.refusals.most_common(40)),
        "pods_bound": outcome.counts["pods bound"],
        "described_pods_bound": outcome.counts["pods of a described kind bound"],
        "queued_pods_bound": outcome.counts["queued pods bound"],
        "checked": outcome.counts["checked"],
        "most_used_percent": outcome.highest,
        "excesses": outcome.counts["findings"],
        "restarts": outcome.restarts,
        "leaders_killed": outcome.kills,
        "take_overs_s": [round(seconds, 1) for seconds in outcome.take_overs],
        "sound_jobs": outcome.sound,
        "longest_wait_of_a_sound_job_s": outcome.waited,
        "wrong": outcome.wrong,
        "not_used_to_the_full": outcome.untried,
    }


def markdown(found: Json) -> str:
    """The same for people."""
    runs = found["runs"]
    seeds = " ".join(str(run["seed"]) for run in runs)
    options = f'OPERATIONS={runs[0]["operations"]} SEEDS="{seeds}"'
    total, wrong = sum(run["operations"] for run in runs), sum(len(run["wrong"]) for run in runs)
    most: Counter[str] = Counter()
    for run in runs:
        most |= Counter(run["most_used_percent"])
    made = f"Made by `make test-abuse {options}` at {found['at']}, "
    made += f"commit {found['commit']}, on {found['machine']}"
    excesses, restarts = (sum(run[what] for run in runs) for what in ("excesses", "restarts"))
    result = f"**{total} operations, {excesses} times more in use than there is, "
    result += f"{restarts} controllers that ended by themselves, violations: {wrong}.**"
    lines = [
        "# Operations of tenants",
        "",
        f"{made}; users: {found['tenants']}.",
        "",
        result,
        "",
        f"| {' | '.join(COLUMNS)} |",
        f"|{'---:|' * len(COLUMNS)}",
        *(_row(run) for run in runs),
        "",
        "| limit | the most that was in use of it, % |",
        "|---|---:|",
        *(f"| {name} | {percent} |" for name, percent in sorted(most.items())),
        "",
        *(f"- seed {run['seed']}: {words}" for run in runs for words in run["wrong"]),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _row(run: Json) -> str:
    taken = sum(number for status, number in run["answers"].items() if status.startswith("2"))
    cells = [
        *(run["seed"], run["plan"], run["operations"], taken, run["operations"] - taken, run["seconds"]),
        *(run["pods_bound"], run["described_pods_bound"], run["queued_pods_bound"]),
        *(run["checked"], run["excesses"], run["restarts"], run["leaders_killed"]),
        *(run["sound_jobs"], run["longest_wait_of_a_sound_job_s"]),
    ]
    return f"| {' | '.join(map(str, cells))} |"


def dump(found: Json) -> str:
    """The same for machines."""
    return json.dumps(found, indent=2) + "\n"
