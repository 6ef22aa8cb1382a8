"""Whether what is reserved for a workload is what it asks for."""

import pytest

from admitter.convert.gpus import DEFAULT_GPUS
from admitter.convert.workloads import pod_set, suits
from admitter.engine.model import Admission, Assignment, Flavor, Workload
from admitter.quantities.amounts import InvalidQuantityError

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


def test_a_place_with_pods_is_one_for_each_pod() -> None:
    flavors = {"any": Flavor("any")}.get
    for count, suitable in ((1, True), (2, False)):
        both = (("cpu", 1000), ("pods", count))
        made = Admission("own", (Assignment("main", 1, (("cpu", "any"), ("pods", "any")), both),))
        assert suits(made, asking(cpu="1"), flavors) is suitable


def test_a_pod_is_one_pod_whatever_it_requests() -> None:
    assert asking(cpu="1", pods="1") == asking(cpu="1"), "to say so says nothing else"
    for wrong in ("0", "5", "1500m"):
        with pytest.raises(InvalidQuantityError, match=f"pods is {wrong}, but each pod counts as one"):
            asking(cpu="1", pods=wrong)
