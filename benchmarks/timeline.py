"""Draws a run: use of quota, what waits and what has been admitted, over time."""

from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Final

from matplotlib import rc_context
from matplotlib.figure import Figure

COLOURS: Final = {"small": "#2a78b5", "medium": "#d68910", "large": "#7d3c98"}

POINTS: Final = 1000

Steps = tuple[list[float], list[float]]
"""Times, and the value from each of them on."""


def running_total(changes: Iterable[tuple[float, int]]) -> Steps:
    """The sum of changes over time."""
    ordered = sorted(changes)
    return [time for time, _ in ordered], list(accumulate(change for _, change in ordered))


def _thinned(times: Sequence[float], values: Sequence[float]) -> tuple[list[float], list[float]]:
    """The last value of each of `POINTS` spans of time: more can't be seen."""
    kept = {
        int(time / max(times[-1], 1e-9) * POINTS): (time, value)
        for time, value in zip(times, values, strict=True)
    }
    return [time for time, _ in kept.values()], [value for _, value in kept.values()]


def draw(
    path: Path,
    title: str,
    use: Sequence[tuple[float, float]],
    quota: float,
    waiting: dict[str, Steps],
    admitted: dict[str, Steps],
) -> None:
    """Write a picture.

    Args:
        path: the file; its ending says the format.
        title: a line above it.
        use: pairs of a time and the quota that is used from then on.
        quota: all there is.
        waiting: how many wait, by class.
        admitted: how many have been admitted for the first time, by class.
    """
    figure = Figure(figsize=(10, 7), layout="constrained")
    top, middle, bottom = figure.subplots(3, 1, sharex=True)
    top.fill_between(*_thinned(*zip(*use, strict=True)), step="post", color="#2a78b5", alpha=0.4, linewidth=0)
    top.axhline(quota, color="#c0392b", linestyle=":", label="quota")
    top.set_ylabel("CPU of admitted Jobs")
    for axis, courses, label in ((middle, waiting, "waiting"), (bottom, admitted, "admitted")):
        for kind, (times, values) in courses.items():
            axis.step(*_thinned(times, values), where="post", color=COLOURS[kind], label=kind)
        axis.set_ylabel(label)
        axis.legend(frameon=False, fontsize=8)
    for axis in (top, middle, bottom):
        axis.set_ylim(bottom=0)
        axis.margins(x=0)
        axis.tick_params(labelsize=8)
    bottom.set_xlabel("seconds since the first Job")
    top.set_title(title, loc="left", fontsize=10)
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "admitter"}):
        figure.savefig(path, metadata={"Date": None})
