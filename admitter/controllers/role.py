"""What a process is to its cluster, as its probes say it."""

from enum import StrEnum


class Role(StrEnum):
    """What this process is to its cluster."""

    STARTING = "not synced with the API server yet"
    FOLLOWER = "follower"
    LEADER = "leader"
    STOPPING = "stopping"

    @property
    def ready(self) -> bool:
        """Whether it leads, or could at once."""
        return self in {Role.FOLLOWER, Role.LEADER}
