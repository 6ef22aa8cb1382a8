"""A journal of very many Jobs, and its replay: `make bench-journal`.

The Jobs of `benchmarks.jobs` at a scale, on a real API server, by a controller that writes a journal; they
are said to begin, so that a victim stops and starts anew. Then each file of it is replayed. Prints
the figures and writes `benchmarks/results/journal.json`; exits with 1 if anything is decided otherwise.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import uvloop

from admitter.journal.files import files
from admitter.journal.replay import replay
from admitter.sandbox.control_plane import ControlPlane
from benchmarks.driver import FaithfulDriver
from benchmarks.jobs import measure
from benchmarks.server import commit, machine

RESULTS: Final = Path(__file__).parent / "results" / "journal.json"

Json = dict[str, Any]


def replayed(folder: Path, jobs: int) -> Json:
    """What all files of a folder say, and what comes of them now."""
    began = time.process_time()
    done = [replay(path) for path in files(folder)]
    took = time.process_time() - began
    size = sum(path.stat().st_size for path in files(folder))
    return {
        "files": len(done),
        "mb": round(size / 1_000_000, 1),
        "bytes_per_job": round(size / jobs),
        "calls": sum(each.calls for each in done),
        "cycles": sum(each.cycles for each in done),
        "admissions": sum(each.admissions for each in done),
        "evictions": sum(each.evictions for each in done),
        "reasons": sum(each.refusals for each in done),
        "replay_cpu_s": round(took, 1),
        "differences": sum(each.difference is not None for each in done),
    }


def main() -> None:
    """Run, replay, print and save."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=float, default=1.0, help="how many of the Jobs of the baseline")
    parser.add_argument("--dry", action="store_true", help="nothing is saved")
    options = parser.parse_args()
    result: Json = {
        "command": f"make bench-journal SCALE={options.scale:g}",
        "commit": commit(),
        "machine": machine(),
        "python": platform.python_version(),
    }
    with tempfile.TemporaryDirectory() as text:
        folder, journal = Path(text), Path(text) / "journal"
        with ControlPlane.start(folder / "sandbox", nodes=None, owner=os.getpid()) as cluster:
            run = measure(cluster, options.scale, folder, ("--journal", str(journal)), driver=FaithfulDriver)
            found, _ = uvloop.run(run)
        jobs = found["jobs"]
        result |= {name: found[name] for name in ("jobs", "wall_s", "cpu_ms_per_job", "peak_mb")}
        result["replay"] = replayed(journal, jobs)
    print(json.dumps(result, indent=2))
    if not options.dry:
        RESULTS.write_text(json.dumps(result, indent=2) + "\n")
    sys.exit(bool(result["replay"]["differences"]))


if __name__ == "__main__":
    main()
