"""Each check of random scenarios notices an engine that breaks its rule."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest

from admitter.engine import growth
from admitter.engine.cycle import Engine
from admitter.engine.growth import Growth, Resizing
from admitter.engine.preemption import context, within_queue
from admitter.engine.queue.events import UsageShrank
from admitter.engine.queue.pending import PendingQueue
from admitter.engine.queue.requeue import TABLE
from admitter.engine.quota.cells import Cell
from admitter.engine.quota.evictions import EvictionHistory
from admitter.engine.quota.lines import ANY_RANK
from admitter.engine.quota.tree import Tree
from admitter.engine.tree_cycle import TreeCycle
from tests.engine.scenarios.all_checks import checks
from tests.engine.scenarios.driver import BrokenRuleError, Play
from tests.engine.scenarios.generator import scenario

SCENARIOS: Final = 800
"""Among so many of them at least one has to meet what is broken."""


def _nothing_counts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Cell, "add", lambda _cell, _amount: False)


def _each_evicts_each(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(within_queue, "lesser", lambda *_: ANY_RANK)


def _places_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    decide: Callable[..., Any] = Engine.cycle

    def cycle(engine: Engine, now: float) -> object:
        plan = decide(engine, now)
        for uid in list(engine.ledger.pending_reservations):
            engine.ledger.drop_pending(uid)
        return plan

    patch.setattr(Engine, "cycle", cycle)


def _nothing_is_woken(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(TABLE, UsageShrank, ())


def _nothing_is_told(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PendingQueue, "unreported_refusals", lambda *_, **__: iter(()))


def _places_are_not_let_in(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TreeCycle, "_redeem", lambda *_: set())


def _each_may_go_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(context, "opens", lambda *_: 0.0)


def _nothing_is_limited(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Tree, "limiting", lambda *_: ())


def _what_flies_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(EvictionHistory, "decide", lambda *_: None)


def _nothing_shrinks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Growth, "_shrink", lambda _: [])


def _all_shrink(patch: pytest.MonkeyPatch) -> None:
    def shrink(made: Growth) -> list[Resizing]:
        extras = made._extras
        found = ((part, extras.get(*part)) for part in extras.granted(made._members))
        return [
            Resizing(part[0], replace(extra, kept=0), part[1])
            for part, extra in found
            if extra and extra.kept
        ]

    patch.setattr(Growth, "_shrink", shrink)


def _all_grow(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(growth, "_room", lambda _book, _shape, most: most)


@pytest.mark.parametrize(
    ("rule", "breaking"),
    [
        ("quota", _nothing_counts),
        ("lawful", _each_evicts_each),
        ("ending", _each_evicts_each),
        ("promises", _places_are_not_let_in),
        ("idle", _nothing_is_woken),
        ("rebuilt", _places_are_forgotten),
        ("rebuilt", _nothing_is_woken),
        ("reasons", _nothing_is_told),
        ("limits", _each_may_go_again),
        ("windows", _nothing_is_limited),
        pytest.param("windows", _what_flies_is_forgotten, marks=pytest.mark.long),  # few scenarios show it
        ("extra", _nothing_shrinks),
        ("extra", _all_shrink),
        ("extra", _all_grow),
    ],
)
def test_a_check_notices_an_engine_that_breaks_its_rule(
    rule: str, breaking: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    breaking(monkeypatch)
    for seed in range(SCENARIOS):
        check = next(check for check in checks() if check.rule == rule)
        try:
            Play(scenario(seed), [check]).run()
        except BrokenRuleError as broken:
            if broken.rule == rule:
                return
    pytest.fail(f"{rule} does not notice it")
