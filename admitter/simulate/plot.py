"""Draws a simulation: use of each flavor by queue, what waits, and when each workload ran.

Beside it: `gantt` draws the workloads.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from admitter.engine.model import FlavorResource
from admitter.simulate.gantt import draw_workloads
from admitter.simulate.history import History, Use
from admitter.simulate.items import Item
from admitter.visible import visible

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PANELS: Final = 20
PANEL_INCHES: Final = 1.7
LEAST_INCHES: Final = 4.5
FEW: Final = 3
"""Up to so many units an axis is divided into parts of one."""
QUOTA, LIMIT, REST = "#222222", "#c0392b", "#9a9a9a"
COLORS: Final = (
    *("#2a78b5", "#e08214", "#3a9a4b", "#9467bd", "#17a2b8"),
    *("#b8860b", "#d1589f", "#6b7f2a", "#7a5548"),
)
"""Of the queues with the most use; `REST` is for the others."""


class PlotError(Exception):
    """A picture can't be drawn; the message says why."""


def draw(history: History, items: Sequence[Item], start: float, title: str, path: Path) -> None:
    """Write a picture, in the format that the file's name ends on.

    Of more than 20 flavors and resources those with the most use of their quota are drawn.
    The simulation starts at `start`, in seconds since the epoch.

    Raises:
        PlotError: matplotlib is missing, nothing is to be drawn, or the file can't be written.
    """
    try:
        from matplotlib import rc_context  # noqa: PLC0415  # an extra, and slow to import
        from matplotlib.figure import Figure as Drawing  # noqa: PLC0415
    except ImportError as error:
        raise PlotError("--plot needs matplotlib: pip install 'admitter[plot]'") from error
    keys = _panels(history)
    if not keys:
        raise PlotError("there is nothing to draw: no queue has a quota")
    rows = len(keys) + 1
    undated = {"Date": None} if path.suffix == ".svg" else None  # the same input, the same file
    with rc_context(
        {
            "svg.fonttype": "none",
            "svg.hashsalt": "admitter",
            "hatch.linewidth": 0.6,
            "text.parse_math": False,  # names may have dollar signs in them
        }
    ):
        figure = Drawing(figsize=(15, max(LEAST_INCHES, PANEL_INCHES * rows) + 1.2), layout="constrained")
        grid = figure.add_gridspec(rows, 2)
        axes = [figure.add_subplot(grid[row, 0]) for row in range(rows)]
        workloads = figure.add_subplot(grid[:, 1])
        colors = _colors(history, items)
        span = _Span(start, history.end)
        for axis, key in zip(axes, keys, strict=False):
            _use(axis, history.use[key], key, span, colors)
        _waiting(axes[-1], history.waiting, span, colors)
        draw_workloads(workloads, items, span.start, span.end, span.unit, colors, REST)
        for axis in (*axes, workloads):
            span.set_axis(axis, labelled=axis in {axes[-1], workloads})
        left_out = len(history.use) - len(keys)
        note = f" ({left_out} more flavors and resources are not drawn)" if left_out else ""
        figure.suptitle(f"{title}{note}", fontsize=12)
        figure.legend(*_legend(figure), loc="outside lower center", ncols=7, frameon=False, fontsize=8)
        try:
            figure.savefig(path, metadata=undated, dpi=110)
        except (OSError, ValueError) as error:
            raise PlotError(f"can't write {path}: {error}") from error


_UNITS: Final = (
    (3 * 86400, 86400, "days"),
    (6 * 3600, 3600, "hours"),
    (120, 60, "minutes"),
    (0, 1, "seconds"),
)
"""From how many seconds on a time is drawn in a unit, the unit's seconds, and its name."""


class _Span:
    """The time that is drawn, and in which unit: one in which it is easily read."""

    def __init__(self, start: float, end: float) -> None:
        """What still runs or waits at the end is drawn a little beyond it."""
        self.start, lasts = start, end - start
        self.unit, self.name = next((unit, name) for least, unit, name in _UNITS if lasts >= least)
        self.end = end + (lasts * 0.03 or 60.0)

    def scaled(self, time: float) -> float:
        return (time - self.start) / self.unit

    def set_axis(self, axis: "Axes", *, labelled: bool) -> None:
        """Whole units below an axis."""
        from matplotlib.ticker import MaxNLocator  # noqa: PLC0415  # as above

        steps = [1, 1.5, 3, 6, 10] if self.name in {"minutes", "seconds"} else [1, 2, 5, 10]
        axis.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True, steps=steps))
        axis.set_xlim(0, self.scaled(self.end))
        axis.tick_params(labelsize=8, labelbottom=labelled)
        if labelled:
            axis.set_xlabel(f"{self.name} since the start", fontsize=9)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)


def _panels(history: History) -> list[FlavorResource]:
    """Flavors and resources that are drawn, by name; of too many those with the most use of their quota."""

    def busy(key: FlavorResource) -> float:
        return max(use.used / max(use.quota, 1) for _, use in history.use[key])

    return sorted(sorted(history.use, key=lambda key: (-busy(key), key))[:MOST_PANELS])


def _colors(history: History, items: Sequence[Item]) -> dict[str, str]:
    """The colors of the queues with the most admissions, by name; of two alike the first by name."""
    ran = Counter(run.queue for item in items for run in item.runs)
    ran.update({name: 0 for _, counts in history.waiting for name in counts})
    chosen = sorted(ran, key=lambda name: (-ran[name], name))[: len(COLORS)]
    return dict(zip(sorted(chosen), COLORS, strict=False))


def _use(
    axis: "Axes",
    noted: Sequence[tuple[float, Use]],
    key: FlavorResource,
    span: _Span,
    colors: Mapping[str, str],
) -> None:
    """What queues use of a flavor, one on the other; what is borrowed is hatched."""
    uses = [use for _, use in noted]
    times = [*(span.scaled(time) for time, _ in noted), span.scaled(span.end)]
    divisor, label = _unit(max(max(use.used, use.quota, use.limit or 0) for use in uses), key[1])
    below = [0.0] * len(times)
    for name in (*colors, ""):
        for part, hatch in ((0, None), (1, "////")):
            amounts = [_part(use, name, part, colors) / divisor for use in uses]
            above = [low + amount for low, amount in zip(below, [*amounts, amounts[-1]], strict=True)]
            if any(amounts):
                color, shown = colors.get(name, REST), visible(name) or "other queues"
                axis.fill_between(
                    times,
                    below,
                    above,
                    step="post",
                    facecolor=color,
                    alpha=0.45 if hatch else 1,
                    hatch=hatch,
                    edgecolor=color,
                    linewidth=0,
                    label=f"{shown}, borrowed" if hatch else shown,
                )
            below = above
    lines = [("quota (min)", QUOTA, "--", [use.quota for use in uses])]
    limits = [use.limit for use in uses if use.limit is not None]
    if len(limits) == len(uses):
        lines.append(("max", LIMIT, ":", limits))
    for name, color, style, values in lines:
        heights = [value / divisor for value in (*values, values[-1])]
        axis.step(times, heights, where="post", color=color, linewidth=1.3, linestyle=style, label=name)
    highest = max(use.used for use in uses) / divisor
    axis.set_ylim(
        0, 1.08 * (max(highest, *(value / divisor for *_, values in lines for value in values)) or 1)
    )
    axis.locator_params(axis="y", integer=axis.get_ylim()[1] > FEW)
    axis.set_title(f"{visible(key[0])}: {visible(label)}", loc="left", fontsize=9)


def _part(use: Use, name: str, part: int, colors: Mapping[str, str]) -> int:
    """What a queue uses of its own (0) or has borrowed (1); without a name, all that have no color."""
    if name:
        return use.queues.get(name, (0, 0))[part]
    return sum(amounts[part] for queue, amounts in use.queues.items() if queue not in colors)


def _waiting(
    axis: "Axes", noted: Sequence[tuple[float, Mapping[str, int]]], span: _Span, colors: Mapping[str, str]
) -> None:
    """How many workloads wait in each queue, one on the other."""
    times = [*(span.scaled(time) for time, _ in noted), span.scaled(span.end)]
    below = [0] * len(times)
    for name in (*colors, ""):
        counts = [
            counts.get(name, 0) if name else sum(n for queue, n in counts.items() if queue not in colors)
            for _, counts in noted
        ]
        above = [low + count for low, count in zip(below, [*counts, counts[-1]], strict=True)]
        axis.fill_between(times, below, above, step="post", color=colors.get(name, REST), linewidth=0)
        below = above
    axis.set_ylim(0, max(1, *below) * 1.08)
    axis.locator_params(axis="y", integer=True)
    axis.set_title("waiting workloads", loc="left", fontsize=9)


def _unit(highest: int, resource: str) -> tuple[int, str]:
    """A divisor for amounts up to some height, and what to call a resource then."""
    if resource == "cpu":
        return 1000, "cpu"
    for power, prefix in ((40, "Ti"), (30, "Gi"), (20, "Mi")):
        if highest >= 1 << power:
            return 1 << power, f"{resource} ({prefix})"
    return 1, resource


def _legend(figure: "Figure") -> tuple[list["Artist"], list[str]]:
    """Each kind of area and line once, by name."""
    found = {
        label: handle
        for axis in figure.axes
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    return list(found.values()), list(found)
