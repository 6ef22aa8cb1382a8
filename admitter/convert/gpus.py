"""The GPUs in a pod's requests: whole ones, and parts with their memory in the name (docs/elastic-quota.md).

`nvidia.com/gpu` is a whole GPU. A MIG device is named after its profile: `nvidia.com/mig-1g.10gb`, or with
less than all of its compute `nvidia.com/mig-1c.3g.40gb`, or with an attribute `nvidia.com/mig-1g.10gb.me`. A
slice of memory is named after its size: `nvidia.com/gpu-10gb`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from admitter.api.base import is_resource, own_name
from admitter.engine.model import GPU_MEMORY_GB, NO_GPUS, Gpus
from admitter.names import GPU_MEMORY
from admitter.quantities.amounts import Amounts, InvalidQuantityError

WHOLE_GPU: Final = "nvidia.com/gpu"

_SLICE = re.compile(r"nvidia\.com/(?:gpu-|mig-(?:[0-9]+c\.)?[0-9]+g\.)([0-9]+)gb(?:[.-][a-z0-9.-]+)?")


@dataclass(frozen=True, slots=True)
class GpuSettings:
    """What an administrator says about GPUs."""

    memory: int = GPU_MEMORY_GB  # of a whole GPU, in GB, if its flavor does not say
    # further resources that are GPUs: name to the memory of one in GB; None: whole ones
    more: Mapping[str, int | None] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.memory, frozenset(self.more.items())))

    def gpus(self, requests: Amounts) -> Gpus:
        """The GPUs that one pod requests.

        Raises:
            InvalidQuantityError: GPUs are requested both as devices and as an amount of memory.
        """
        whole = sliced = 0
        found = set()
        for resource, amount in requests.items():
            size = self._size(resource) if amount else 0
            if size == 0:
                continue
            found.add(resource)
            if size is None:
                whole += amount
            else:
                sliced += amount * size
        if GPU_MEMORY in found and len(found) > 1:
            devices = ", ".join(sorted(found - {GPU_MEMORY}))
            raise InvalidQuantityError(
                f"{GPU_MEMORY} and {devices} are both requested: memory of GPUs is counted by the devices"
            )
        return Gpus(whole, sliced, frozenset(found)) if found else NO_GPUS

    def _size(self, resource: str) -> int | None:
        """The memory of one unit of a resource in GB; None for a whole GPU, 0 if it is none."""
        if resource == WHOLE_GPU:
            return None
        if resource == GPU_MEMORY:
            return 1
        if resource in self.more:
            return self.more[resource]
        match = _SLICE.fullmatch(resource)
        return int(match[1]) if match is not None else 0


DEFAULT_GPUS: Final = GpuSettings()


class InvalidGpuSettingError(ValueError):
    """A setting that says nothing usable about GPUs."""


def parse_settings(memory: int, more: Iterable[str]) -> GpuSettings:
    """Settings as they are written on a command line; `memory` is in GB.

    In `more`, `NAME` is a resource with whole GPUs as units, `NAME=GB` one with units of so much memory.

    Raises:
        InvalidGpuSettingError: one of `more` is neither.
    """
    found: dict[str, int | None] = {}
    for text in more:
        name, equals, size = text.partition("=")
        if not is_resource(name) or (equals and (not size.isdecimal() or not int(size))):
            raise InvalidGpuSettingError(f"{text!r} is neither NAME nor NAME=GB, with a whole number of GB")
        if own_name(name) in {WHOLE_GPU, GPU_MEMORY}:
            raise InvalidGpuSettingError(
                f"{name} is known: what a whole GPU has is for flavors to say, or for --gpu-memory-gb"
            )
        found[name] = int(size) if equals else None
    return GpuSettings(memory, found)
