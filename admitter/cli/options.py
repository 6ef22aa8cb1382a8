"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

from admitter.convert.gpus import GpuSettings, InvalidGpuSettingError, parse_settings
from admitter.convert.workloads import RequeueBy
from admitter.quantities.durations import InvalidDurationError, parse_duration

Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        help="The kubeconfig file. By default KUBECONFIG, ~/.kube/config, or the pod's own account.",
        metavar="FILE",
        show_default=False,
    ),
]
Context = Annotated[
    str | None,
    typer.Option(
        help="The context in the kubeconfig. By default its current one.", metavar="NAME", show_default=False
    ),
]
Paths = Annotated[
    list[str] | None, typer.Argument(help="The same as -f.", metavar="PATH", show_default=False)
]
Filenames = Annotated[
    list[str] | None,
    typer.Option(
        "--filename",
        "-f",
        help="A file or folder of manifests; - reads standard input. May be repeated.",
        metavar="PATH",
        show_default=False,
    ),
]
JobName = Annotated[
    str,
    typer.Argument(
        help="A Job, a queued pod, a group of pods, an object of a described kind, or a Workload: "
        "NAME, job/NAME, pod/NAME, podgroup/NAME, KIND/NAME or wl/NAME.",
        metavar="NAME",
    ),
]
RequeueOption = Annotated[
    RequeueBy,
    typer.Option(
        help="Where a preempted Workload waits. creation: in its old place. eviction: behind those that came "
        "before it was preempted.",
    ),
]
GpuMemoryOption = Annotated[
    int,
    typer.Option(
        min=1,
        help="Memory of a whole GPU, in GB, where its ResourceFlavor has no gpuMemoryGB.",
        metavar="GB",
    ),
]
GpuResourcesOption = Annotated[
    list[str] | None,
    typer.Option(
        help="A further resource that is GPUs: amd.com/gpu, or example.com/shard=8 for parts of 8 GB. "
        "May be repeated. NVIDIA's GPUs, MIG devices and memory slices are known.",
        metavar="NAME[=GB]",
        show_default=False,
    ),
]


def seconds_of(duration: str, option: str) -> float:
    """The seconds of a DURATION that an option was given.

    Raises:
        BadParameter: it is none.
    """
    try:
        return parse_duration(duration)
    except InvalidDurationError as error:
        raise typer.BadParameter(str(error), param_hint=option) from error


def gpu_settings(memory: int, more: list[str] | None) -> GpuSettings:
    """What counts as a GPU, by the options of a command.

    Raises:
        BadParameter: one of them says nothing usable.
    """
    try:
        return parse_settings(memory, more or [])
    except InvalidGpuSettingError as error:
        raise typer.BadParameter(str(error), param_hint="--gpu-resource") from error
