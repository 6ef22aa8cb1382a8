"""Jobs of the made-up cluster with which something is the matter, so that each view has it to show."""

import math
from typing import Any, Final

from admitter.names import (
    EXPECTED_RUNTIME_ANNOTATION,
    MAX_PARALLELISM_ANNOTATION,
    SIMULATED_READY_AFTER_ANNOTATION,
    SIMULATED_RUNTIME_ANNOTATION,
)
from admitter.simulate.manifests import NEVER, Change
from admitter.simulate.objects import timestamp
from admitter.web.demo.hardware import ACCELERATOR
from admitter.web.demo.jobs import job
from admitter.web.demo.teams import Work

Json = dict[str, Any]

NEVER_READY: Final = ("vision-prod", "label-refresh-rc1")
"""Its image does not exist."""
NEVER_FITS: Final = ("language-pretrain", "llm-70b-one-node")
"""One pod with more GPUs than a node has."""
GROWING: Final = ("idle-sweeps", "sweep-optimizer")
"""It runs on what others leave idle, with up to twelve times its pods."""
IN_BROKEN: Final = ("edge-inference", "detector-int8")
"""It waits in a queue that does not work."""


def special_jobs(start: float, now: float) -> list[Change]:
    """These Jobs; they come between the start and `now`, both in seconds since the epoch."""
    never = {SIMULATED_READY_AFTER_ANNOTATION: NEVER}
    grows = {
        MAX_PARALLELISM_ANNOTATION: "48",
        SIMULATED_RUNTIME_ANNOTATION: "365d",
        EXPECTED_RUNTIME_ANNOTATION: "365d",
    }
    made = [
        _change(now - 5200, _on_gpus(NEVER_READY, (2, 1), "t4", never, "production")),
        _change(now - 9900, _on_gpus(NEVER_FITS, (1, 16), "h100")),
        _change(start, _without_end(_on_gpus(GROWING, (4, 1), "t4", grows))),
    ]
    for number in range(3):
        name = (IN_BROKEN[0], f"{IN_BROKEN[1]}-{number + 1}")
        made.append(_change(now - 4000 + 700 * number, _on_gpus(name, (1, 2), "l4")))
    return sorted(made)


def _change(time: float, manifest: Json) -> Change:
    manifest["metadata"]["creationTimestamp"] = timestamp(float(int(time)))
    return Change(math.ceil(time), -1, manifest)


def _on_gpus(
    key: tuple[str, str],
    size: tuple[int, int],
    flavor: str,
    annotations: dict[str, str] | None = None,
    priority: str = "",
) -> Json:
    work = Work(key[1], 1, 60, (size,), priority=priority)
    return job(*key, size, work, annotations or {}, {ACCELERATOR: flavor})


def _without_end(manifest: Json) -> Json:
    """A Job that replaces pods as they succeed: without a number of completions it may grow at any time."""
    del manifest["spec"]["completions"]
    return manifest
