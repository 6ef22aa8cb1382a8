"""A run of faults: `make test-faults SECONDS=1800 JOBS=20000 SEED=1`.

Prints the plan, plays it on a control plane of its own, and writes `benchmarks/results/faults.md` and
`.json`. Ends with 1 if the auditor found anything.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.faults.harness import play
from tests.faults.keeper import ROOT, kept_control_plane
from tests.faults.loop import run
from tests.faults.plan import plan
from tests.faults.report import digest, dump, markdown, summary

RESULTS: Final = ROOT / "benchmarks" / "results"
FAULTS_A_SECOND: Final = 0.312


def main() -> int:
    """Play one plan."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=1800, help="how long people and faults come")
    parser.add_argument("--jobs", type=int, default=20_000, help="how many Jobs come in that time")
    parser.add_argument("--faults", type=int, help="how many faults; by default as many as fit")
    parser.add_argument("--seed", type=int, default=1, help="of everything that is left to chance")
    parser.add_argument("--replicas", type=int, default=2, help="how many controllers")
    parser.add_argument("--folder", type=Path, help="where to keep logs; by default nowhere")
    parser.add_argument("--dry", action="store_true", help="no report is written")
    options = parser.parse_args()
    faults = options.faults if options.faults is not None else round(options.seconds * FAULTS_A_SECOND)
    planned = plan(options.seed, options.seconds, options.jobs, faults, options.replicas)
    print(f"plan {digest(planned)} of seed {options.seed}: {options.jobs} Jobs, {len(planned.faults)} faults")
    for fault in planned.faults:
        print(f"{fault.at:8.1f} s  {fault.kind}" + (f", {fault.seconds} s" if fault.seconds else ""))
    with tempfile.TemporaryDirectory() as text:
        folder = options.folder or Path(text)
        with kept_control_plane(folder / "kept", os.getpid()) as plane:
            outcome = run(play(plane, folder, planned, options.replicas))
    found = summary(outcome, options.replicas)
    print(markdown(found))
    print("\n\n".join(outcome.trails))
    if not options.dry:
        (RESULTS / "faults.json").write_text(dump(found))
        (RESULTS / "faults.md").write_text(markdown(found))
    return 1 if outcome.findings else 0


if __name__ == "__main__":
    sys.exit(main())
