"""A Job that can do with fewer pods than it asks for: as many as fit are started, and the rest never are.

The start lowers its parallelism, and an annotation remembers what it was. The next eviction puts that back,
so that the Job asks for all of its pods again (docs/design/fewer-pods.md).
"""

from admitter.cache.parallelism import number
from admitter.cache.views import JobView, Json, WorkloadView
from admitter.names import (
    GRANTED_PARALLELISM_ANNOTATION,
    MIN_PARALLELISM_ANNOTATION,
    PARALLELISM_ANNOTATION,
)
from admitter.policy.held import wanted
from admitter.quantities.amounts import InvalidQuantityError


def annotated_pods(job: JobView, name: str, annotation: str) -> int | None:
    """The number of pods in an annotation, which the view of a Job has by a name; None if it has none.

    Raises:
        InvalidQuantityError: it is no number of pods.
    """
    said = job.spec.get(name)
    if said is None:
        return None
    found = number(said)
    if found is None:
        raise InvalidQuantityError(f"its annotation {annotation} is {said!r}, which is no number of pods")
    return found


def fewest(job: JobView) -> int | None:
    """With how many pods a Job can do; None if with all of them alone.

    Raises:
        InvalidQuantityError: its annotation is no number of pods.
    """
    least = annotated_pods(job, "least", MIN_PARALLELISM_ANNOTATION)
    return least if least is not None and least < job.count() else None


def least_wanted(job: JobView) -> dict[str, int]:
    """How many pods of each pod set have to be admitted, so that a Job runs or may be started."""
    wants = wanted(job)
    try:
        least = fewest(job) if job.suspended else None
    except InvalidQuantityError:
        least = None
    return dict.fromkeys(wants, least) if least is not None else wants


def lowering(job: JobView, admitted: int) -> tuple[Json, Json]:
    """Annotations and fields of the spec of a Job that is started with so many pods: nothing if with all."""
    if job.spec.get("least") is None or admitted >= job.count():
        return {}, {}
    return {PARALLELISM_ANNOTATION: str(job.spec["parallelism"])}, {"parallelism": admitted}


def raising(job: JobView) -> tuple[Json, Json]:
    """The same for the end of that: nothing if it was started with all, and has not grown."""
    original = job.spec.get("original")
    if original is None:
        return {}, {}
    noted = [PARALLELISM_ANNOTATION]
    noted += [GRANTED_PARALLELISM_ANNOTATION] if job.spec.get("applied") is not None else []
    return dict.fromkeys(noted), {"parallelism": original}


def is_lowered(job: JobView) -> bool:
    """Whether the parallelism of a Job is not its own."""
    return job.spec.get("original") is not None


def fewer(workload: WorkloadView, admitted: int) -> str:
    """That a Workload runs with fewer pods than it asks for, in words; empty if with all."""
    asked = sum(each["count"] for each in workload.spec["podSets"])
    return f"runs with {admitted} of {asked} pods" if admitted < asked else ""
