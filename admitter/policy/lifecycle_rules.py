"""What `spec.lifecycle` says for a queue: its own fields, and where it lacks one, those of Cohorts above."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from admitter.api.lifecycle import Lifecycle, joined
from admitter.policy import readiness
from admitter.policy import run_time as run_times


@dataclass(frozen=True, slots=True)
class LifecycleRules:
    """What becomes of the Workloads that a queue admits."""

    ready: readiness.ReadyRules = readiness.NO_RULES
    run_time: run_times.RunTimeRules = run_times.NO_RULES


NO_RULES: Final = LifecycleRules()


def lifecycle_rules(places: Sequence[tuple[str, Lifecycle]]) -> LifecycleRules:
    """The rules of a queue: by its own lifecycle, then by those of the Cohorts above, each with its title."""
    return LifecycleRules(readiness.rules_of(joined(places)), run_times.rules_of(places))
