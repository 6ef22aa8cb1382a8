"""What sees all that an engine is told and decides, such as a journal."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from admitter.engine.commands import Command
from admitter.engine.quota.tree import Node
from admitter.engine.state import EngineState
from admitter.engine.tree_cycle import Plan


@dataclass
class AskedRoots:
    """Says by their roots which trees are looked at, and keeps what it was asked."""

    decides: Callable[[Node], bool] | None  # None: all trees are looked at
    answers: dict[Node, bool] = field(default_factory=dict)  # what was said about each root

    def __call__(self, root: Node) -> bool:
        self.answers[root] = self.decides is None or self.decides(root)
        return self.answers[root]


class Observer(Protocol):
    """Is called after each step of an engine, and changes nothing."""

    def applied(self, command: Command) -> None:
        """A command that makes a difference was taken in; if it failed, perhaps in part."""

    def decided(self, now: float, asked: AskedRoots, plan: Plan, state: EngineState) -> None:
        """A cycle is over: when it was in seconds since the epoch, its trees, and what it decided."""

    def resumed(self, asked: AskedRoots, state: EngineState) -> None:
        """Other trees may be looked at than before."""

    def abandoned(self, asked: AskedRoots) -> None:
        """The pending reservations of some trees were given up."""
