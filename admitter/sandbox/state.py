"""What is known of a control plane, in its folder's `state.json`; its supervisor alone writes it."""

import dataclasses
import json
import os
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Self

from admitter.sandbox.processes import ProcessIdentity

_FILE = "state.json"


class Phase(StrEnum):
    """How far a control plane is."""

    STARTING = "Starting"
    READY = "Ready"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class SandboxState:
    """One control plane, as its supervisor saw it last; a killed supervisor can't tell that it is gone."""

    phase: Phase
    supervisor: ProcessIdentity
    components: dict[str, ProcessIdentity] = field(default_factory=dict)
    server: str = ""
    kubectl: str = ""
    message: str = ""

    @property
    def running(self) -> bool:
        return self.supervisor.find() is not None

    @classmethod
    def load(cls, folder: Path) -> Self | None:
        """The state of the control plane in a folder; None if there is none."""
        try:
            raw = json.loads((folder / _FILE).read_text())
        except FileNotFoundError:
            return None
        raw["phase"] = Phase(raw["phase"])
        raw["supervisor"] = ProcessIdentity(**raw["supervisor"])
        raw["components"] = {name: ProcessIdentity(**value) for name, value in raw["components"].items()}
        return cls(**raw)

    def save(self, folder: Path) -> None:
        """Replace what the folder says, as a whole."""
        partial = folder / f".{_FILE}.{os.getpid()}"
        partial.write_text(json.dumps(dataclasses.asdict(self), indent=2))
        partial.replace(folder / _FILE)

    @staticmethod
    def remove(folder: Path) -> None:
        (folder / _FILE).unlink(missing_ok=True)
