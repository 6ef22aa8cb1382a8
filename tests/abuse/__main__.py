"""Operations of tenants: `make test-abuse OPERATIONS=20000 SEEDS="1 2 3 4 5"`.

Each seed is played on a control plane of its own. Writes `benchmarks/results/abuse.md` and `.json`. Ends
with 1 if more was in use than there is, a controller ended by itself, or anything else was not as promised;
then the last operations on the objects involved are printed.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Final

from admitter.sandbox.control_plane import ControlPlane
from tests.abuse.harness import Outcome, play
from tests.abuse.report import dump, markdown, summary
from tests.faults.keeper import ROOT
from tests.faults.loop import run

RESULTS: Final = ROOT / "benchmarks" / "results"


def main() -> int:
    """Play all seeds, one after the other."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--operations", type=int, default=20_000, help="how many, of each seed")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5], help="of all chance")
    parser.add_argument("--rate", type=float, default=150.0, help="how many a second at the most")
    parser.add_argument("--kills", type=int, default=2, help="how often the leader is killed, of each seed")
    parser.add_argument("--folder", type=Path, help="where to keep logs; by default nowhere")
    parser.add_argument("--dry", action="store_true", help="no report is written")
    options = parser.parse_args()
    outcomes = []
    with tempfile.TemporaryDirectory() as text:
        for seed in options.seeds:
            folder = (options.folder or Path(text)) / f"seed-{seed}"
            folder.mkdir(parents=True)
            outcome = Outcome(seed, operations=options.operations)
            with ControlPlane.start(folder / "plane", owner=os.getpid()) as plane:
                run(play(plane, folder, outcome, options.rate, options.kills))
            outcomes.append(outcome)
            print(f"seed {seed}: {len(outcome.wrong)} wrong", *outcome.wrong, *outcome.trails, sep="\n\n")
    found = summary(outcomes)
    print(markdown(found))
    if not options.dry:
        (RESULTS / "abuse.json").write_text(dump(found))
        (RESULTS / "abuse.md").write_text(markdown(found))
    return 1 if any(outcome.wrong for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
