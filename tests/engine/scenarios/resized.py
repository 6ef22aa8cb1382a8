"""Workloads of which pods end for good, or are needed again, while they run."""

from dataclasses import replace

from admitter.engine.model import Assignment
from tests.engine.scenarios.cases import held
from tests.engine.scenarios.world import Running


def resize(running: Running, pods: int) -> str:
    """Let a workload hold what so many pods of each pod set use, modulo one more than was admitted."""
    whole = running.whole = running.whole or running.admission
    sets = tuple(_of(each, pods % (each.count + 1)) for each in whole.pod_sets)
    running.admission = replace(whole, pod_sets=sets)
    return f"has {sum(each.count for each in sets)} pods now: {held(running.admission)}"


def _of(assignment: Assignment, count: int) -> Assignment:
    usage = tuple((r, amount // max(1, assignment.count) * count) for r, amount in assignment.usage)
    return replace(assignment, count=count, usage=usage)
