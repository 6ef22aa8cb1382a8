"""Plays scenarios.

`python -m tests.engine.scenarios SEED` tells the story of one. With `--count` many are played, and those
of which a rule does not hold are named; `--shorter` tells what is left of such a one without all that
does not matter. `--owners` plays owners of quota against others that never stop asking.
"""

import argparse
import sys
from collections import Counter

from tests.engine.scenarios.generator import scenario
from tests.engine.scenarios.playing import play, shorter
from tests.engine.scenarios.starving import starves


def main() -> int:
    """Play what the arguments say; 1 if a rule does not hold."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("seed", type=int, help="of the first scenario")
    parser.add_argument(
        "--count", type=int, default=1, help="how many scenarios, of one seed after the other"
    )
    parser.add_argument("--without", action="append", default=[], help="a rule that is not checked")
    parser.add_argument("--shorter", action="store_true", help="leave out what does not matter")
    parser.add_argument(
        "--owners", action="store_true", help="play owners against others that ask without end"
    )
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.count)
    return _owners(seeds) if options.owners else _scenarios(seeds, options.without, shortened=options.shorter)


def _scenarios(seeds: range, without: list[str], *, shortened: bool) -> int:
    failed: Counter[str] = Counter()
    met: Counter[str] = Counter()
    for seed in seeds:
        case = scenario(seed)
        outcome = play(case, without)
        met.update(outcome.met)
        failed.update([outcome.rule] if outcome.rule else [])
        if outcome.rule and shortened:
            outcome = play(shorter(case, without), without)
        if len(seeds) == 1 or (outcome.rule and shortened):
            print("\n".join(outcome.story))
        if outcome.rule:
            print(f"{seed} {outcome.message}", flush=True)
    print(f"checked: {dict(met)}; broken: {dict(failed)}")
    return bool(failed)


def _owners(seeds: range) -> int:
    waited = starved = 0
    for seed in seeds:
        met, message, story = starves(seed)
        waited, starved = waited + met, starved + bool(message)
        if len(seeds) == 1:
            print("\n".join(story))
        if message:
            print(f"{seed} {message}", flush=True)
    print(f"owners that had to wait: {waited}; for ever: {starved}")
    return bool(starved)


if __name__ == "__main__":
    sys.exit(main())
