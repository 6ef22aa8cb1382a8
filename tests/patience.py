"""How long tests without a cluster wait for what must come."""

from typing import Final

PATIENCE_SECONDS: Final = 120.0
"""Only a failure takes so long: beside the tests on an API server others may get a twentieth of a core."""
