"""What all views show: the newest scene, where scenes come from, and what is wrong."""

from dataclasses import dataclass

from admitter.insight.forecast.deadline import Allowance
from admitter.top.scene import Feed, TopScene


@dataclass(slots=True)
class TopState:
    """Shared by the application, which changes it, and the views, which show it.

    Attributes:
        feed: where scenes come from.
        allowance: how long an estimate of a start may take.
        scene: the newest; None: there is none yet.
        trouble: why there is none newer; empty if nothing is wrong.
    """

    feed: Feed
    allowance: Allowance
    scene: TopScene | None = None
    trouble: str = ""

    def totals(self) -> str:
        if self.scene is None:
            return ""
        roots = list(self.scene.roots())
        waiting, admitted, recent = (
            sum(getattr(line, count) for line in roots) for count in ("waiting", "admitted", "recent")
        )
        queues = self.scene.queues()
        counts = f"{waiting:,} waiting, {admitted:,} admitted, {recent:,} of them in the last minute"
        return f"{queues:,} {'queue' if queues == 1 else 'queues'}: {counts}"
