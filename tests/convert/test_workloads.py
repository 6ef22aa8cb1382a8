"""Whether what is reserved for a workload is what it asks for."""

import pytest

from admitter.convert.gpus import DEFAULT_GPUS
from admitter.convert.workloads import pod_set, suits
from admitter.engine.model import Admission, Assignment, Flavor, Workload

ONE_CPU = Admission("own", (Assignment("main", 1, (("cpu", "any"),), (("cpu", 1000),)),))


def asking(**requests: str) -> Workload:
    """A workload of one pod in the queue `own`."""
    pods = pod_set({"name": "main", "count": 1, "requests": requests}, DEFAULT_GPUS)
    return Workload("uid", "own", 0, 0.0, (pods,))


@pytest.mark.parametrize(
    ("requests", "strict", "lenient"),
    [
        pytest.param({"cpu": "1"}, True, True, id="what is reserved"),
        pytest.param({"cpu": "2"}, False, False, id="more than is reserved"),
        pytest.param({"cpu": "1", "memory": "1Gi"}, False, True, id="what the queue may not limit"),
    ],
)
def test_a_queue_that_limits_only_what_it_lists_reserves_nothing_else(
    requests: dict[str, str], strict: bool, lenient: bool
) -> None:
    flavors = {"any": Flavor("any")}.get
    assert suits(ONE_CPU, asking(**requests), flavors) is strict
    assert suits(ONE_CPU, asking(**requests), flavors, lenient=True) is lenient
