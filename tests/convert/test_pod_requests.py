"""What a pod made from a template requests. Source: the API server's defaults and the scheduler's sums."""

from typing import Any

import pytest

from admitter.convert.pod_requests import pod_requests
from admitter.convert.pod_sets import claims, job_count, pod_set
from admitter.quantities.amounts import InvalidQuantityError

Json = dict[str, Any]


def container(requests: Json | None = None, limits: Json | None = None, *, sidecar: bool = False) -> Json:
    resources = {k: v for k, v in (("requests", requests), ("limits", limits)) if v}
    return {"resources": resources} | ({"restartPolicy": "Always"} if sidecar else {})


def default_limits(**requests: str) -> Json:
    return {"limits": [{"type": "Container", "defaultRequest": requests}]}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": [container({"cpu": "1"}), container({"cpu": "500m"})]}, {"cpu": 1500}),
        ({"containers": [container(None, {"cpu": "2"})]}, {"cpu": 2000}),
        (
            {"containers": [container({"cpu": "1"}, {"cpu": "2", "memory": "1Ki"})]},
            {"cpu": 1000, "memory": 1024},
        ),
        (
            {"containers": [container({"cpu": "1"})], "initContainers": [container({"cpu": "3"})]},
            {"cpu": 3000},
        ),
        (
            {
                "containers": [container({"cpu": "1"})],
                "initContainers": [container({"cpu": "1"}, sidecar=True), container({"cpu": "1500m"})],
            },
            {"cpu": 2500},
        ),
        (
            {
                "containers": [container({"cpu": "2"})],
                "initContainers": [container({"cpu": "2500m"}), container({"cpu": "1"}, sidecar=True)],
            },
            {"cpu": 3000},
        ),
        (
            {"containers": [container({"cpu": "1", "x": "1"})], "resources": {"requests": {"cpu": "4"}}},
            {"cpu": 4000, "x": 1},
        ),
        (
            {"containers": [container({"cpu": "1"})], "resources": {"limits": {"cpu": "4", "memory": "2"}}},
            {"cpu": 1000, "memory": 2},
        ),
        ({"containers": [container({"cpu": "1"})], "overhead": {"cpu": "250m"}}, {"cpu": 1250}),
        ({"containers": [container({"cpu": "0.0001"}), container({"cpu": "0.0001"})]}, {"cpu": 1}),
        ({"containers": [container()]}, {}),
    ],
    ids=[
        "containers add up",
        "a limit is a request where none is given",
        "a request goes before its limit",
        "the largest init container, if larger than all that runs later",
        "a sidecar runs beside later init containers and beside the rest",
        "an init container before the sidecar runs without it",
        "requests of the whole pod take the place of the sum, other resources stay",
        "limits of the whole pod: containers' requests first, else the limit",
        "overhead comes on top",
        "rounded up once, after the sum",
        "nothing",
    ],
)
def test_requests_of_a_pod(spec: Json, expected: dict[str, int]) -> None:
    assert pod_requests(spec) == expected


def test_limit_ranges_fill_in_what_is_missing_and_the_largest_default_counts() -> None:
    spec = {"containers": [container({"cpu": "1"}), container()], "initContainers": [container()]}
    ranges = [default_limits(cpu="200m", memory="1Mi"), default_limits(cpu="300m")]
    assert pod_requests(spec, ranges) == {"cpu": 1300, "memory": 2 * 2**20}


def test_limit_ranges_of_pods_and_claims_give_no_defaults() -> None:
    limits = {"limits": [{"type": "Pod", "max": {"cpu": "1"}}]}
    assert pod_requests({"containers": [container()]}, [limits]) == {}


def test_the_runtime_class_adds_its_overhead_unless_the_template_states_one() -> None:
    classes = {"heavy": {"overhead": {"podFixed": {"memory": "64Mi"}}}}
    spec = {"containers": [container({"cpu": "1"})], "runtimeClassName": "heavy"}
    assert pod_requests(spec, (), classes) == {"cpu": 1000, "memory": 64 * 2**20}
    assert pod_requests({**spec, "overhead": {"memory": "1Mi"}}, (), classes) == {
        "cpu": 1000,
        "memory": 2**20,
    }
    assert pod_requests({**spec, "runtimeClassName": "unknown"}, (), classes) == {"cpu": 1000}


def test_a_bad_quantity_is_named_by_its_field() -> None:
    spec = {"containers": [container({"cpu": "1"}), container({"cpu": "-1"})]}
    with pytest.raises(
        InvalidQuantityError, match=r"containers\[1\]\.resources\.requests\[cpu\]: '-1' is negative"
    ):
        pod_requests(spec)


@pytest.mark.parametrize(
    ("spec", "status", "expected"),
    [
        ({"parallelism": 4, "completions": 10}, {"succeeded": 0}, 4),
        ({"parallelism": 4, "completions": 10}, {"succeeded": 7}, 3),
        ({"parallelism": 4, "completions": 10}, {"succeeded": 12}, 0),
        ({"parallelism": 4, "completions": None}, {"succeeded": 2}, 4),
        ({"parallelism": 0, "completions": 1}, {"succeeded": 0}, 0),
    ],
    ids=["parallelism", "completions left", "more succeeded than asked", "a work queue", "none at a time"],
)
def test_count_of_a_job(spec: Json, status: Json, expected: int) -> None:
    assert job_count(spec, status) == expected


def test_a_pod_set_is_equal_however_its_maps_are_ordered_and_leaves_out_what_is_empty() -> None:
    def derived(*keys: str) -> Json:
        requests = dict.fromkeys(keys, "1")
        template = {"containers": [container(requests)], "nodeSelector": dict.fromkeys(keys, "x")}
        return pod_set("main", template, 2, (), {})

    assert (
        derived("a", "b")
        == derived("b", "a")
        == {
            "name": "main",
            "count": 2,
            "requests": {"a": "1", "b": "1"},
            "nodeSelector": {"a": "x", "b": "x"},
        }
    )
    assert list(derived("b", "a")["requests"]) == ["a", "b"]
    assert pod_set("main", {"containers": []}, 0, (), {}) == {"name": "main", "count": 0}


def test_claims_of_the_pod_or_of_a_container() -> None:
    assert claims({"resourceClaims": [{"name": "card"}]})
    assert claims({"initContainers": [{"resources": {"claims": [{"name": "card"}]}}]})
    assert not claims({"containers": [container({"cpu": "1"})]})
