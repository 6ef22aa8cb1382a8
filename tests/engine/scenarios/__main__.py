"""Plays scenarios.

`python -m tests.engine.scenarios SEED` tells the story of one. With `--count` many are played, and those
of which a rule does not hold are named; `--shorter` tells what is left of such a one without all that
does not matter.
"""

import argparse
import sys
from collections import Counter

from tests.engine.scenarios.generator import scenario
from tests.engine.scenarios.playing import play, shorter


def main() -> int:
    """Play what the arguments say; 1 if a rule does not hold."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("seed", type=int, help="of the first scenario")
    parser.add_argument(
        "--count", type=int, default=1, help="how many scenarios, of one seed after the other"
    )
    parser.add_argument("--without", action="append", default=[], help="a rule that is not judged")
    parser.add_argument("--shorter", action="store_true", help="leave out what does not matter")
    options = parser.parse_args()
    failed: Counter[str] = Counter()
    met: Counter[str] = Counter()
    for seed in range(options.seed, options.seed + options.count):
        case = scenario(seed)
        outcome = play(case, options.without)
        met.update(outcome.met)
        failed.update([outcome.rule] if outcome.rule else [])
        if outcome.rule and options.shorter:
            outcome = play(shorter(case, options.without), options.without)
        if options.count == 1 or (outcome.rule and options.shorter):
            print("\n".join(outcome.story))
        if outcome.rule:
            print(f"{seed} {outcome.message}", flush=True)
    print(f"judged: {dict(met)}; broken: {dict(failed)}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
