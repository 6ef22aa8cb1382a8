"""GPUs in requests, by the names of device plugins. Source: docs/design/requests.md."""

from typing import Any

import pytest

from admitter.convert.gpus import (
    DEFAULT_GPUS,
    WHOLE_GPU,
    GpuSettings,
    InvalidGpuSettingError,
    parse_settings,
)
from admitter.convert.workloads import pod_set
from admitter.engine.model import GPU_MEMORY_GB, NO_GPUS, Flavor, Gpus, PodSet
from admitter.names import GPU_MEMORY, GPU_MEMORY_ALIASES
from admitter.quantities.amounts import InvalidQuantityError

Json = dict[str, Any]

(ALIAS,) = GPU_MEMORY_ALIASES
PLAIN, H100, T4 = Flavor("plain"), Flavor("h100", gpu_memory=80), Flavor("t4", gpu_memory=16)


def read(requests: Json, settings: GpuSettings = DEFAULT_GPUS, count: int = 1) -> PodSet:
    """A pod set with these requests."""
    return pod_set({"name": "main", "count": count, "requests": requests}, settings)


def memory(requests: Json, flavor: Flavor = PLAIN, settings: GpuSettings = DEFAULT_GPUS) -> int:
    """The GB that a pod with these requests has on a flavor."""
    return read(requests, settings).request(GPU_MEMORY, flavor)


def test_the_example_of_a_slice_and_a_whole_gpu() -> None:
    requests = {"nvidia.com/gpu-10gb": 1, "nvidia.com/gpu": 1}
    assert memory(requests) == 10 + 32
    assert DEFAULT_GPUS.gpus({"nvidia.com/gpu-10gb": 1, "nvidia.com/gpu": 1}) == Gpus(
        1, 10, frozenset(requests)
    )


@pytest.mark.parametrize(
    ("flavor", "settings", "expected"),
    [
        pytest.param(PLAIN, DEFAULT_GPUS, 2 * 32, id="of a flavor that says nothing"),
        pytest.param(H100, DEFAULT_GPUS, 2 * 80, id="of 80 GB"),
        pytest.param(T4, DEFAULT_GPUS, 2 * 16, id="of 16 GB"),
        pytest.param(Flavor("plain", gpu_memory=24), GpuSettings(24), 2 * 24, id="as the settings say"),
    ],
)
def test_whole_gpus_have_the_memory_of_their_flavor(
    flavor: Flavor, settings: GpuSettings, expected: int
) -> None:
    assert memory({WHOLE_GPU: 2}, flavor, settings) == expected


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("mig-1g.5gb", 5),
        ("mig-1g.6gb", 6),
        ("mig-1g.10gb", 10),
        ("mig-1g.12gb", 12),
        ("mig-1g.20gb", 20),
        ("mig-2g.10gb", 10),
        ("mig-3g.20gb", 20),
        ("mig-3g.40gb", 40),
        ("mig-4g.40gb", 40),
        ("mig-7g.80gb", 80),
        ("mig-7g.141gb", 141),
        ("mig-1c.3g.40gb", 40),
        ("mig-2c.7g.80gb", 80),
        ("mig-1g.10gb.me", 10),
        ("mig-1g.5gb.me", 5),
        ("mig-1c.1g.10gb.me", 10),
        ("mig-1g.24gb.gfx", 24),
        ("mig-2g.48gb.gfx", 48),
        ("mig-1g.24gb.me.all", 24),
        ("mig-1g.24gb-me", 24),
        ("mig-4g.96gb", 96),
        ("gpu-10gb", 10),
        ("gpu-1gb", 1),
        ("gpu-128gb", 128),
    ],
)
def test_parts_of_a_gpu_have_the_memory_in_their_name(name: str, size: int) -> None:
    requests = {f"nvidia.com/{name}": 3}
    for flavor in (PLAIN, H100, T4):
        assert memory(requests, flavor) == 3 * size, "whatever the GPU that it is a part of"
    assert DEFAULT_GPUS.gpus(requests) == Gpus(0, 3 * size, frozenset(requests))


@pytest.mark.parametrize(
    "name",
    [
        "nvidia.com/mig-1g.gb",
        "nvidia.com/mig-1g.5g",
        "nvidia.com/mig-1g.5GB",
        "nvidia.com/mig-1g",
        "nvidia.com/mig-5gb",
        "nvidia.com/mig-g.5gb",
        "nvidia.com/mig-1c.5gb",
        "nvidia.com/mig-1g.5gbs",
        "nvidia.com/mig-1g.5gb.",
        "nvidia.com/mig-1g.0gb",
        "nvidia.com/mig-1g-5gb",
        "nvidia.com/gpu-10g",
        "nvidia.com/gpu-gb",
        "nvidia.com/gpu-10gi",
        "nvidia.com/gpu-1.5gb",
        "nvidia.com/gpu-0gb",
        "nvidia.com/gpu.shared",
        "nvidia.com/gpu-",
        "nvidia.com/gpumem",
        "nvidia.com/gpus",
        "nvidia.com.example/gpu-10gb",
        "xnvidia.com/gpu-10gb",
        "nvidiaxcom/gpu-10gb",
        "example.com/gpu-10gb",
        "example.com/gpu",
        "amd.com/gpu",
        "gpu-10gb",
        "gpu",
        "example.com/gpu-memory",
        "cpu",
        "memory",
    ],
)
def test_names_that_look_like_gpus_and_are_none(name: str) -> None:
    assert DEFAULT_GPUS.gpus({name: 1}) == NO_GPUS
    assert memory({name: 1}) == 0
    assert not read({name: 1}).asks_for(GPU_MEMORY)


def test_all_forms_add_up() -> None:
    requests = {
        "cpu": 8,
        "memory": "64Gi",
        "nvidia.com/gpu": 2,
        "nvidia.com/gpu-10gb": 3,
        "nvidia.com/mig-1g.5gb": 4,
        "nvidia.com/mig-1c.3g.40gb": 1,
    }
    assert memory(requests, H100) == 160 + 30 + 20 + 40
    assert read(requests).gpus.resources == {name for name in requests if name.startswith("nvidia.com")}


def test_what_is_requested_zero_times_is_not_requested() -> None:
    assert DEFAULT_GPUS.gpus({"nvidia.com/gpu": 0, "nvidia.com/gpu-10gb": 0}) == NO_GPUS
    assert memory({GPU_MEMORY: 20, "nvidia.com/gpu": 0}) == 20, "so it is not both at a time"
    assert not read({"nvidia.com/gpu": 0}).asks_for(GPU_MEMORY)


def test_pods_that_are_none_ask_for_nothing() -> None:
    assert not read({"nvidia.com/gpu": 1}, count=0).asks_for(GPU_MEMORY)
    assert read({"nvidia.com/gpu": 1}, count=1).asks_for(GPU_MEMORY)


@pytest.mark.parametrize("name", [GPU_MEMORY, ALIAS], ids=["own name", "alias"])
@pytest.mark.parametrize("flavor", [PLAIN, H100], ids=lambda flavor: flavor.name)
def test_memory_itself_counts_as_it_is(name: str, flavor: Flavor) -> None:
    assert memory({name: 20}, flavor) == 20
    assert dict(read({name: "20"}).requests) == {GPU_MEMORY: 20}, "under its own name"


@pytest.mark.parametrize("name", [GPU_MEMORY, ALIAS], ids=["own name", "alias"])
@pytest.mark.parametrize(
    ("devices", "named"),
    [
        pytest.param({"nvidia.com/gpu": 1}, "nvidia.com/gpu", id="a whole GPU"),
        pytest.param({"nvidia.com/mig-1g.5gb": 1}, "nvidia.com/mig-1g.5gb", id="a MIG device"),
        pytest.param(
            {"nvidia.com/gpu-10gb": 1, "nvidia.com/gpu": 1},
            "nvidia.com/gpu, nvidia.com/gpu-10gb",
            id="a slice and a whole one",
        ),
    ],
)
def test_memory_and_devices_at_a_time_are_refused(name: str, devices: Json, named: str) -> None:
    with pytest.raises(InvalidQuantityError) as refused:
        read({name: 20, **devices})
    assert str(refused.value) == (
        f"{GPU_MEMORY} and {named} are both requested: memory of GPUs is counted by the devices"
    )


def test_without_settings_a_whole_gpu_has_32_gb() -> None:
    assert (DEFAULT_GPUS.memory, GPU_MEMORY_GB) == (32, 32)
    assert parse_settings(32, []) == DEFAULT_GPUS


def test_further_resources_are_whole_gpus_or_parts() -> None:
    settings = parse_settings(24, ["amd.com/gpu", "example.com/shard=8"])
    assert settings == GpuSettings(24, {"amd.com/gpu": None, "example.com/shard": 8})
    requests = {"amd.com/gpu": 2, "example.com/shard": 3, "nvidia.com/gpu": 1}
    assert settings.gpus(requests) == Gpus(3, 24, frozenset(requests))
    assert memory(requests, H100, settings) == 3 * 80 + 24
    with pytest.raises(InvalidQuantityError, match=r"example\.com/shard are both requested"):
        settings.gpus({GPU_MEMORY: 1, "example.com/shard": 1})


def test_a_setting_goes_before_what_a_name_says() -> None:
    settings = parse_settings(32, ["nvidia.com/gpu-10gb=12", "nvidia.com/mig-1g.5gb"])
    assert settings.gpus({"nvidia.com/gpu-10gb": 1, "nvidia.com/mig-1g.5gb": 1}) == Gpus(
        1, 12, frozenset({"nvidia.com/gpu-10gb", "nvidia.com/mig-1g.5gb"})
    )


@pytest.mark.parametrize("text", ["", "=8", "=", "x=", "x=0", "x=-1", "x=8Gi", "x=1.5", "x= 8", "x=8=9"])
def test_a_setting_that_says_nothing_usable_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(InvalidGpuSettingError) as refused:
        parse_settings(32, ["amd.com/gpu", text])
    assert str(refused.value) == f"{text!r} is neither NAME nor NAME=GB, with a whole number of GB"


@pytest.mark.parametrize("name", [WHOLE_GPU, GPU_MEMORY, ALIAS])
@pytest.mark.parametrize("text", ["{}", "{}=24"])
def test_a_setting_for_what_has_a_meaning_already_is_refused(name: str, text: str) -> None:
    with pytest.raises(InvalidGpuSettingError, match="known"):
        parse_settings(32, [text.format(name)])


@pytest.mark.parametrize("text", ["not a name=8", "amd.com/gpu =8", "-x", "a/b/c"])
def test_a_setting_for_what_can_be_no_resource_is_refused(text: str) -> None:
    with pytest.raises(InvalidGpuSettingError):
        parse_settings(32, [text])


def test_both_names_of_memory_in_one_pod_are_refused() -> None:
    with pytest.raises(InvalidQuantityError, match="are two names of the same resource: use one of them"):
        read({GPU_MEMORY: 10, ALIAS: 20})


def test_pods_that_request_the_same_are_equal_and_others_are_not() -> None:
    assert read({"nvidia.com/gpu": 1, "cpu": 1}) == read({"cpu": "1000m", "nvidia.com/gpu": "1"})
    assert read({"example.com/shard": 1}) != read(
        {"example.com/shard": 1}, parse_settings(32, ["example.com/shard"])
    )
