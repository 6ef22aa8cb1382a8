"""What each tenant will do: a pure function of a seed."""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from random import Random
from typing import Final

from tests.abuse import experiments, pods, single, themes
from tests.abuse.operations import Operation, Step, delete
from tests.abuse.scene import Ground, Tenant
from tests.abuse.shapes import QUEUE
from tests.abuse.single import BY_HAND, NAMES, Mind, drawn
from tests.abuse.themes import title

THEME_CHANCE: Final = 0.12
"""How often a tenant begins an attack of several steps instead of one operation."""
BETWEEN_CHANCE: Final = 0.15
"""How often another operation comes between two steps."""
WEIGHTS: Final = (*single.WEIGHTS, *experiments.WEIGHTS, *pods.WEIGHTS)
THEMES: Final = (*themes.THEMES, *experiments.THEMES, *pods.THEMES)
TIDY_EVERY: Final = 60
"""After so many operations a tenant deletes what it has made: some of it would hold quota for ever."""


@dataclass(frozen=True)
class Course:
    """What one tenant does, in order.

    Attributes:
        tenant: which.
        steps: what.
    """

    tenant: Tenant
    steps: tuple[Step, ...]

    @property
    def operations(self) -> int:
        """How many operations there are in it."""
        return sum(isinstance(step, Operation) for step in self.steps)


def plan(seed: int, operations: int, tenants: list[Tenant]) -> list[Course]:
    """The operations of all tenants.

    Args:
        seed: of all chance.
        operations: how many all of them make together.
        tenants: all of them.
    """
    courses = []
    for number, tenant in enumerate(tenants):
        share = operations // len(tenants) + (number < operations % len(tenants))
        courses.append(Course(tenant, tuple(_steps(Random(f"{seed}/{number}"), tenant, share, tenants))))
    return courses


def digest(courses: list[Course]) -> str:
    """A plan in a few letters: equal plans have equal ones."""
    return sha256(repr(courses).encode()).hexdigest()[:12]


def _names(tenant: Tenant) -> tuple[str, ...]:
    return tuple(f"{tenant.name.replace('tenant-', 't')}-{letter}" for letter in "abcdefghijkl"[:NAMES])


def _steps(random: Random, tenant: Tenant, share: int, tenants: list[Tenant]) -> Iterator[Step]:
    others = [name for t in tenants if t.ground is tenant.ground and t is not tenant for name in _names(t)]
    mind = Mind(random, tenant.ground, _names(tenant), tuple(others))
    done = 0
    for step in _endless(mind):
        if isinstance(step, Operation):
            if done == share:
                return
            done += 1
        yield step


def _endless(mind: Mind) -> Iterator[Step]:
    while True:
        for _ in range(TIDY_EVERY):
            if mind.random.random() < THEME_CHANCE:
                yield from _theme(mind)
            else:
                yield drawn(mind, WEIGHTS)
        yield from _tidy(mind.ground)
        mind.alive.clear()


def _theme(mind: Mind) -> Iterator[Step]:
    theme = mind.random.choice(THEMES)
    for step in theme(mind):
        yield step.of(title(theme)) if isinstance(step, Operation) else step
        if mind.random.random() < BETWEEN_CHANCE:
            yield drawn(mind, WEIGHTS)


def _tidy(ground: Ground) -> Iterator[Step]:
    for kind in ("cronjobs", "jobs", "experiments"):
        yield delete(ground.namespace, kind, propagationPolicy="Background")
    yield delete(ground.namespace, "pods", labelSelector=QUEUE, gracePeriodSeconds="0")
    for number in range(BY_HAND):
        yield delete(ground.namespace, "workloads", f"wl-{number}")
