"""What all views show: the newest scene, where scenes come from, and what is wrong."""

from dataclasses import dataclass

from admitter.insight.controller_status import ControllerState, ControllerStatus
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
        controllers: whether a controller decides; None: it is not known, or it is a snapshot.
    """

    feed: Feed
    allowance: Allowance
    scene: TopScene | None = None
    trouble: str = ""
    controllers: ControllerStatus | None = None

    def problems(self) -> str:
        """What is wrong, a line each: the connection, and the absence of a controller."""
        found = [self.trouble] if self.trouble else []
        if self.controllers is not None and self.controllers.lacks_decisions:
            found.append(self.controllers.sentence(self.scene.roots() if self.scene is not None else ()))
        return "\n".join(found)

    def leader(self) -> str:
        """Which controller leads and since when; empty if it is not known."""
        leads = self.controllers is not None and self.controllers.state is ControllerState.LEADING
        return self.controllers.sentence() if self.controllers is not None and leads else ""
