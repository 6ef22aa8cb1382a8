"""What observers of the tests count by."""

from typing import Any

import pytest

from tests.quantities import pod_requests, thousandths


@pytest.mark.parametrize(
    ("quantity", "expected"),
    [
        ("2", 2000),
        (3, 3000),
        ("500m", 500),
        ("0.1", 100),
        ("1Gi", 2**30 * 1000),
        ("1k", 10**6),
        ("2e3", 2_000_000),
        ("2E", 2 * 10**21),
        ("1u", 1),
    ],
)
def test_a_quantity_in_thousandths(quantity: str | int, expected: int) -> None:
    assert thousandths(quantity) == expected


def test_what_is_no_quantity() -> None:
    with pytest.raises(ValueError, match="is no quantity"):
        thousandths("1mm")


def asks(cpu: str, **more: Any) -> dict[str, Any]:
    return {"resources": {"requests": {"cpu": cpu}}, **more}


def test_sidecars_count_beside_containers_and_init_containers() -> None:
    spec: dict[str, Any] = {
        "containers": [asks("1"), asks("500m")],
        "initContainers": [asks("200m", restartPolicy="Always"), asks("2")],
    }
    assert pod_requests(spec) == {"cpu": 2200}
    assert pod_requests(spec | {"initContainers": spec["initContainers"][:1]}) == {"cpu": 1700}


def test_requests_of_the_pod_replace_those_of_containers_and_overhead_comes_on_top() -> None:
    spec = {"containers": [asks("1")], **asks("3"), "overhead": {"cpu": "250m", "memory": "1"}}
    assert pod_requests(spec) == {"cpu": 3250, "memory": 1000}
