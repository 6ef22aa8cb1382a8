"""How long answers take on a snapshot of many Workloads: `make bench-insight`.

Queues in cohorts of six; a tenth of the Workloads run, the others wait. Once nothing is known of runtimes, so
that nothing ends in what is played; once as many as run have finished before, so that all of the future is
played, until the last has started. Commands are run as their user does, in a process that begins with reading
the file; parts of them also without what it takes to start Python. Futures are played on all processors.

And trees with futures that are dear to play (`benchmarks.fair_tree`), where most of the answer is to be there
before any future is played, and the rest in the time that an estimate has.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

import yaml

from admitter.convert.settings import Settings
from admitter.insight.explain.explainer import Explainer
from admitter.insight.explain.outlook import first
from admitter.insight.explain.text import start
from admitter.insight.forecast.deadline import ESTIMATE_SECONDS, Allowance
from admitter.insight.forecast.estimates import Estimate, Estimator
from admitter.insight.forecast.playing import Playing, processes, side_by_side
from admitter.insight.forecast.timed import until
from admitter.insight.listing import Row, rows
from admitter.insight.snapshot_file import SnapshotFile, dump, facts, load
from admitter.insight.what_if.compare import compare
from admitter.policy.snapshot import Facts, Snapshot
from admitter.simulate.manifests import Change
from benchmarks.fair_tree import Shape, fair_tree
from benchmarks.server import machine

T = TypeVar("T")
Json = dict[str, Any]
NOW: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
BEGAN: Final = NOW - timedelta(minutes=10)
"""When all did that run or have run: of those that have finished only how long they took is read."""
STAMP: Final = "%Y-%m-%dT%H:%M:%SZ"
RESULT: Final = Path(__file__).parent / "results" / "insight.json"
PLACES: Final = {"of the first in line": 0, "of the last in line": -1}
QUEUES: Final = 30
ROUNDS: Final = 3


def snapshot(workloads: int, *, known: bool) -> SnapshotFile:
    """A cluster with so many Workloads, of three sizes; known: others have finished, so runtimes are."""
    objects: dict[str, list[Json]] = {
        plural: []
        for plural in (
            *("jobs", "workloads", "pods", "cohorts", "clusterqueues", "localqueues", "resourceflavors"),
            *("placementpolicies", "elasticquotas", "compositeelasticquotas", "namespaces", "nodes"),
            *("resourcequotas", "limitranges", "priorityclasses", "runtimeclasses"),
        )
    }
    running = workloads // 10
    objects["resourceflavors"] = [_object("default", 1)]
    for number in range(QUEUES):
        objects["clusterqueues"].append(_object(f"queue-{number:02}", number, spec=_queue(number, running)))
        objects["namespaces"].append(_object(f"team-{number:02}", number))
        spec = {"clusterQueue": f"queue-{number:02}"}
        objects["localqueues"].append(_object("main", number, f"team-{number:02}", spec=spec))
    objects["workloads"] = [_workload(number, runs=number < running) for number in range(workloads)]
    if known:
        objects["workloads"] += [_finished(number) for number in range(running)]
    return SnapshotFile(NOW.timestamp(), Settings(), objects)


def _queue(number: int, running: int) -> Json:
    """As much quota as is in use."""
    least = str(max(1, running * 2 // QUEUES))
    flavors = [{"name": "default", "quota": {"min": least}}]
    return {
        "cohort": f"cohort-{number // 6}",
        "namespaceSelector": {},
        "resources": [{"name": "cpu", "flavors": flavors}],
        "preemption": {"reclaimWithinCohort": "Any"},
    }


def _workload(number: int, *, runs: bool) -> Json:
    queue, count = number % QUEUES, 1 + number // QUEUES % 3
    spec = {
        "queueName": "main",
        "priority": 0,
        "podSets": [{"name": "main", "count": count, "requests": {"cpu": "1"}}],
    }
    status: Json = {}
    if runs:
        reserved = {"type": "QuotaReserved", "status": "True", "lastTransitionTime": BEGAN.strftime(STAMP)}
        pod_set = {
            "name": "main",
            "count": count,
            "flavors": {"cpu": "default"},
            "usage": {"cpu": str(count)},
        }
        admission = {"clusterQueue": f"queue-{queue:02}", "podSets": [pod_set]}
        status = {"state": "Admitted", "conditions": [reserved], "admission": admission}
    return _object(f"work-{number:06}", number, f"team-{queue:02}", spec=spec, status=status)


def _finished(number: int) -> Json:
    """One that took between 10 and 30 minutes."""
    made = _workload(number, runs=True)
    ended = BEGAN + timedelta(seconds=600 + number * 37 % 1200)
    stamp = ended.strftime(STAMP)
    over = {"type": "Finished", "status": "True", "reason": "JobSucceeded", "lastTransitionTime": stamp}
    made["metadata"] |= {"name": f"over-{number:06}", "uid": f"over-{number:06}"}
    made["status"] |= {"state": "Finished", "conditions": [*made["status"]["conditions"], over]}
    return made


def _object(name: str, number: int, namespace: str = "", **body: Json) -> Json:
    metadata = {
        "name": name,
        "uid": f"{namespace}/{name}",
        "resourceVersion": str(number + 1),
        "creationTimestamp": f"2026-01-01T10:{number // 60 % 60:02}:{number % 60:02}Z",
        **({"namespace": namespace} if namespace else {}),
    }
    return {"metadata": metadata, "spec": {}, **body}


def changed(number: int, running: int) -> Json:
    """A queue with half as much quota again."""
    return {
        "apiVersion": "admitter.dev/v1alpha1",
        "kind": "ClusterQueue",
        "metadata": {"name": f"queue-{number:02}"},
        "spec": _queue(number, running * 3 // 2),
    }


def least(work: Callable[[], object]) -> float:
    """Seconds that something takes; the least of some rounds, as the machine is shared."""
    taken = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return round(min(taken), 3)


def measured(workloads: int, *, runtimes: bool) -> Json:
    """The figures for so many Workloads, of which the runtimes are known or unknown."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        state, one, all_ = folder / "state.json", folder / "one.yaml", folder / "all.yaml"
        state.write_bytes(dump(snapshot(workloads, known=runtimes)))
        queues = [changed(number, workloads // 10) for number in range(QUEUES)]
        one.write_text(yaml.safe_dump(queues[0]))
        all_.write_text(yaml.safe_dump_all(queues))
        known: Facts = facts(load(state))
        changes = [Change(known.taken, serial, queue) for serial, queue in enumerate(queues)]
        last = (f"team-{(workloads - 1) % QUEUES:02}", f"work-{workloads - 1:06}")
        return {
            "workloads": workloads,
            "runtimes_are_known": runtimes,
            "snapshot_bytes": state.stat().st_size,
            "futures_in_time": _started(known, Snapshot(known), *last)[0].told,
            "seconds": {
                "read a snapshot": least(lambda: facts(load(state))),
                "make a picture": least(lambda: Snapshot(known)),
                "explain": least(lambda: Explainer(Snapshot(known)).explain(*last)),
                "estimate the start of one": least(lambda: _estimate(known, *last)),
                "what if a queue changes": least(
                    lambda: compare(known, changes[:1], side_by_side, processes())
                ),
                "what if all queues change": least(
                    lambda: compare(known, changes, side_by_side, processes())
                ),
                "what if all queues change, the longest of eight processes": min(
                    _longest(known, changes) for _ in range(ROUNDS)
                ),
                "the command what-if of a queue": least(
                    lambda: _command("what-if", "-f", str(one), "--state", str(state))
                ),
                "the command what-if of all queues": least(
                    lambda: _command("what-if", "-f", str(all_), "--state", str(state))
                ),
                "the command explain": least(
                    lambda: _command("explain", last[1], "-n", last[0], "--state", str(state))
                ),
            },
        }


def _longest(known: Facts, changes: list[Change]) -> float:
    """What the longest of eight processes takes that play side by side; here one after the other."""
    taken = []

    def alone(futures: Sequence[Callable[[], T]], /) -> list[T]:
        found = []
        for play in futures:
            began = time.perf_counter()
            found.append(play())
            taken.append(time.perf_counter() - began)
        return found

    compare(known, changes, alone, 8)
    return round(max(taken), 3)


def measured_tree(shape: Shape) -> Json:
    """The figures for a tree with futures that are dear, for the first and the last in its longest line."""
    with tempfile.TemporaryDirectory() as name:
        state = Path(name) / "state.json"
        state.write_bytes(dump(fair_tree(shape)))
        known: Facts = facts(load(state))
        unfinished = list(rows(Snapshot(known), None))
        waiting = [row for row in unfinished if row.position is not None]
        longest = max(waiting, key=lambda row: (row.position or 0, row.queue)).queue
        line = [row for row in waiting if row.queue == longest]
        return {
            "queues": shape.queues,
            "cohorts": shape.cohorts,
            "waiting": len(waiting),
            "running": len(unfinished) - len(waiting),
            "fair_sharing": shape.fair,
            "estimate_for": ESTIMATE_SECONDS,
            "answers": {words: _asked(known, state, line[place]) for words, place in PLACES.items()},
        }


def _asked(known: Facts, state: Path, row: Row) -> Json:
    """What it takes to explain one Workload of a tree, and to estimate its start."""
    namespace, name = row.workload.namespace, row.job
    picture = Snapshot(known)
    explainer = Explainer(picture)
    estimate, estimated = _started(known, picture, namespace, name)
    return {
        "position": row.position,
        "seconds": {
            "the reason, from what was read": least(
                lambda: first(Explainer(Snapshot(known)), namespace, name)
            ),
            "the blocking workloads": least(lambda: explainer.explain(namespace, name)),
            "the estimate": estimated,
            "the command explain, until it says the reason": least(
                lambda: _first_line("explain", name, "-n", namespace, "--state", str(state))
            ),
            "the command explain": least(
                lambda: _command("explain", name, "-n", namespace, "--state", str(state))
            ),
        },
        "futures_in_time": estimate.told,
        "in words": start(estimate),
    }


def _started(known: Facts, picture: Snapshot, namespace: str, name: str) -> tuple[Estimate, float]:
    """What a command finds of a start in its time, and how many seconds that takes."""
    view = picture.find(namespace, name)
    assert view is not None
    began = time.perf_counter()
    playing = until(Allowance(ESTIMATE_SECONDS).begin())
    estimate = Estimator(known, picture, playing=playing).of([view])[view.uid]
    return estimate, round(time.perf_counter() - began, 3)


def _first_line(*arguments: str) -> None:
    """Wait for the first two lines of what a command says."""
    with subprocess.Popen([sys.executable, "-m", "admitter", *arguments], stdout=subprocess.PIPE) as command:
        assert command.stdout is not None
        for _ in range(2):
            assert command.stdout.readline()
        command.kill()


def _estimate(known: Facts, namespace: str, name: str) -> None:
    picture = Snapshot(known)
    view = picture.find(namespace, name)
    assert view is not None
    Estimator(known, picture, playing=Playing(side_by_side)).of([view])


def _command(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "admitter", *arguments], check=True, capture_output=True)


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", type=int, nargs="*", default=[1_000, 10_000])
    result = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "runs": [
            measured(number, runtimes=runtimes)
            for number in parser.parse_args().workloads
            for runtimes in (False, True)
        ],
        "trees": [measured_tree(Shape(fair=fair)) for fair in (True, False)],
    }
    text = json.dumps(result, indent=2) + "\n"
    RESULT.write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
