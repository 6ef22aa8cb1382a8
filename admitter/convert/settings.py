"""Settings that decisions depend on, beside the API objects (`admitter run --config`)."""

from dataclasses import dataclass
from typing import Final

from admitter.convert.gpus import DEFAULT_GPUS, GpuSettings
from admitter.convert.workloads import RequeueBy


@dataclass(frozen=True, slots=True)
class Settings:
    """The same for all processes that are to decide alike."""

    requeue_by: RequeueBy = RequeueBy.CREATION
    gpus: GpuSettings = DEFAULT_GPUS


DEFAULTS: Final = Settings()  # of a controller without a configuration
