"""Draws when each workload of a simulation waited and ran; `plot` draws what is beside it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Final

from admitter.policy.lifecycle import Phase
from admitter.simulate.items import Item
from admitter.visible import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WAITS, EVICTED = "#d5d5d5", "#c0392b"
MOST_NAMES: Final = 40
MOST_VECTORS: Final = 2000
"""Of more workloads the bars are drawn as pixels: a file with each of them is slow to open."""
FEWEST_ROWS: Final = 8
"""Bars of fewer workloads would be as high as the picture."""
LONGEST_NAME: Final = 28

Bar = tuple[float, float]


def draw_workloads(  # noqa: PLR0913, PLR0917  # what is drawn, where, and how
    axis: "Axes",
    items: Sequence[Item],
    start: float,
    end: float,
    unit: float,
    colors: Mapping[str, str],
    rest: str,
) -> None:
    """A row for each workload, by its creation: gray as long as it waits, then in the color of its queue.

    Times are in seconds since the epoch, and drawn as multiples of `unit` since `start`.
    """
    shown = (item for item in items if item.phase is not Phase.FINISHED or _end(item) > start)
    ordered = sorted(shown, key=lambda item: (max(item.created, start), item.view.key))
    bars: defaultdict[tuple[str, str], list[tuple[int, Bar]]] = defaultdict(list)
    evicted: list[tuple[float, int]] = []
    for row, item in enumerate(ordered):
        for begins, ends in item.waits(end):
            bars[WAITS, "waits"].append((row, _bar(begins, ends, start, unit)))
        for run in item.runs:
            label = visible(run.queue) if run.queue in colors else "other queues"
            begins, ends = run.start, end if run.end is None else run.end
            bars[colors.get(run.queue, rest), label].append((row, _bar(begins, ends, start, unit)))
            if run.evicted:
                evicted.append(((ends - start) / unit, row))
    for (color, label), rows in bars.items():
        _draw_bars(axis, rows, color, label, as_pixels=len(ordered) > MOST_VECTORS)
    if evicted:
        times, places = zip(*evicted, strict=True)
        size = 200 if len(ordered) <= MOST_NAMES else 12
        axis.scatter(
            times, places, s=size, marker="|", color=EVICTED, linewidth=1.5, label="evicted", zorder=3
        )
    axis.set_ylim(max(len(ordered), FEWEST_ROWS) - 0.4, -0.6)
    named = len(ordered) <= MOST_NAMES
    axis.set_yticks(range(len(ordered)) if named else [], [_name(each) for each in ordered] if named else [])
    words = "workloads" if named else f"{len(ordered)} workloads"
    axis.set_title(f"{words}, by creation", loc="left", fontsize=9)


def _end(item: Item) -> float:
    """When a workload ended; of one that runs, never."""
    ends = [inf if run.end is None else run.end for run in item.runs]
    return max(ends, default=item.created)


def _bar(begins: float, ends: float, start: float, unit: float) -> Bar:
    """Where a bar begins, and its length."""
    begins = max(begins, start)
    return (begins - start) / unit, max(ends - begins, 0.0) / unit


def _draw_bars(
    axis: "Axes", rows: Sequence[tuple[int, Bar]], color: str, label: str, *, as_pixels: bool
) -> None:
    """All bars of one color at once."""
    places, bars = zip(*rows, strict=True)
    begins, lengths = zip(*bars, strict=True)
    height = 1 if as_pixels else 0.8
    drawn = axis.barh(places, lengths, height, begins, color=color, linewidth=0, label=label, snap=False)
    for patch in drawn if as_pixels else ():
        patch.set_rasterized(True)


def _name(item: Item) -> str:
    name = visible(f"{item.view.namespace}/{item.name}")
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
