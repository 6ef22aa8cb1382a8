"""Draws a simulation: each queue's use against its quota, and what waits in it, over time."""

from collections.abc import Sequence
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Final

from admitter.simulate.history import History, UseOverTime, WaitingOverTime, shortest_unit

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PANELS: Final = 40
PANEL_INCHES: Final = 1.6
USED, OWN, LIMIT, WAITING = "#2a78b5", "#444444", "#c0392b", "#d68910"


class PlotError(Exception):
    """A picture can't be drawn; the message says why."""


def draw(history: History, path: Path) -> None:
    """Write a picture, in the format that the file's name ends on.

    Of more than 40 queues and resources those with the most use are drawn.

    Raises:
        PlotError: matplotlib is missing, nothing is to be drawn, or the file can't be written.
    """
    try:
        from matplotlib import rc_context  # noqa: PLC0415  # an extra, and slow to import
        from matplotlib.figure import Figure as Drawing  # noqa: PLC0415
    except ImportError as error:
        raise PlotError("--plot needs matplotlib: pip install 'admitter[plot]'") from error
    panels = _panels(history)
    if not panels:
        raise PlotError("there is nothing to draw: no ClusterQueue has a quota")
    figure = Drawing(figsize=(10, PANEL_INCHES * len(panels) + 1.2), layout="constrained")
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    start = min(each.times[0] for each in history.use.values())
    for axis, (queue, resource) in zip(axes, panels, strict=True):
        _quota(axis, history.use[queue, resource], resource, start, history.end)
        _waiting(axis.twinx(), history.waiting[queue], start, history.end)
        axis.set_title(queue, loc="left", fontsize=9)
    unit, name = _time_unit(history.end - start)
    axes[-1].xaxis.set_major_formatter(lambda value, _: f"{value / unit:g}")
    left_out = len(history.use) - len(panels)
    note = f"; {left_out} more queues and resources are not drawn" if left_out else ""
    axes[-1].set_xlabel(f"{name} since the start{note}")
    figure.legend(*_legend(figure), loc="outside upper right", ncols=4, frameon=False, fontsize=8)
    undated = {"Date": None} if path.suffix == ".svg" else None  # the same input, the same file
    try:
        with rc_context({"svg.fonttype": "none", "svg.hashsalt": "admitter"}):
            figure.savefig(path, metadata=undated)
    except (OSError, ValueError) as error:
        raise PlotError(f"can't write {path}: {error}") from error


def _panels(history: History) -> list[tuple[str, str]]:
    """Queues and resources, by name; of too many those with the most use."""
    by_use = sorted(history.use, key=lambda key: (-max(history.use[key].used), key))
    return sorted(by_use[:MOST_PANELS])


def _quota(axis: "Axes", use: UseOverTime, resource: str, start: float, end: float) -> None:
    """Use of a resource as an area, its min and max as lines."""
    limits = [limit for limit in use.maximum if limit is not None]
    divisor, label = shortest_unit(max([*use.used, *use.minimum, *limits]), resource)
    times = [*(time - start for time in use.times), end - start]

    def scaled(values: Sequence[int | None]) -> list[float]:
        return [nan if value is None else value / divisor for value in (*values, values[-1])]

    used = scaled(use.used)
    axis.fill_between(times, used, step="post", color=USED, alpha=0.35, linewidth=0, label="used")
    axis.step(times, used, where="post", color=USED, linewidth=1)
    axis.step(times, scaled(use.minimum), where="post", color=OWN, linewidth=1, linestyle="--", label="min")
    if limits:
        axis.step(
            times, scaled(use.maximum), where="post", color=LIMIT, linewidth=1, linestyle=":", label="max"
        )
    axis.set_ylim(bottom=0)
    axis.margins(x=0)
    axis.tick_params(labelsize=8)
    axis.set_ylabel(label, fontsize=8)


def _waiting(axis: "Axes", waiting: WaitingOverTime, start: float, end: float) -> None:
    """How many wait, on the right."""
    times = [*(time - start for time in waiting.times), end - start]
    counts = [*waiting.counts, waiting.counts[-1]]
    axis.step(times, counts, where="post", color=WAITING, linewidth=1, label="waiting (right)")
    most = max(1, *counts)
    axis.set_ylim(0, most * 1.1)
    axis.set_yticks([0, most])
    axis.tick_params(axis="y", colors=WAITING, labelsize=8)


def _legend(figure: "Figure") -> tuple[list["Artist"], list[str]]:
    """Each kind of line once."""
    found = {
        label: handle
        for axis in figure.axes
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    return list(found.values()), list(found)


def _time_unit(span: float) -> tuple[float, str]:
    """The unit in which a span of seconds is easily read."""
    for seconds, name in ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if span >= 3 * seconds:
            return seconds, name
    return 1.0, "seconds"
