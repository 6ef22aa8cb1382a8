"""Extra pods in a simulation: they come and end at once (docs/design/growing.md)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from admitter.engine.commands import SetExtra
from admitter.engine.cycle import Engine
from admitter.engine.growth import Resizing
from admitter.policy.growing import at_admission
from admitter.simulate.items import Item


def begin(engine: Engine, item: Item, now: float) -> None:
    """A workload was admitted, at a time in seconds since the epoch: it may grow later."""
    if item.job is not None and item.admission is not None:
        extra = at_admission(item.admission, item.job, now)
        if extra is not None:
            engine.apply(SetExtra(item.view.uid, extra))


def carry_out(engine: Engine, items: Mapping[str, Item], resized: Iterable[Resizing]) -> Iterator[Item]:
    """Let extra pods come, or end; returns the workloads."""
    for each in resized:
        extra = each.extra
        if extra.kept < extra.granted:
            engine.apply(SetExtra(each.holder, replace(extra, granted=extra.kept), each.part))
        item = items.get(each.holder)
        if item is not None:
            yield item


def pods_beside(engine: Engine, item: Item) -> int:
    """How many extra pods a workload runs."""
    extra = engine.ledger.extras.get(item.view.uid) if item.phase.runs else None
    return extra.granted if extra is not None else 0
