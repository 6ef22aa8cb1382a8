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
