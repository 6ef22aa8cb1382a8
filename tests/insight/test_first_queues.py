"""How hardware is divided among teams."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admitter.insight.first_queues import divided, first_queues
from admitter.insight.hardware import Hardware

GPU = "nvidia.com/gpu"
GI = 1 << 30


def kind(name: str, **offers: int) -> Hardware:
    has = {resource.replace("gpu", GPU): amount for resource, amount in offers.items() if amount}
    return Hardware(name, (("type", name),), (), 1, has, None, ())


def test_devices_are_divided_as_whole_ones_and_the_rest_as_they_are() -> None:
    quotas = divided([kind("a100", cpu=16_000, memory=64 * GI, gpu=8)], {"a": 2, "b": 1})
    assert quotas == {
        "a": {("a100", GPU): 5, ("a100", "cpu"): 10_000, ("a100", "memory"): 40 * GI},
        "b": {("a100", GPU): 3, ("a100", "cpu"): 6_000, ("a100", "memory"): 24 * GI},
    }


def test_what_is_lost_by_whole_devices_is_made_up_for_in_the_next_flavor() -> None:
    quotas = divided([kind(name, cpu=1000, gpu=1) for name in ("x", "y", "z")], {"a": 1, "b": 1, "c": 1})
    owned = {
        team: sum(amount for key, amount in own.items() if key[1] == GPU) for team, own in quotas.items()
    }
    assert owned == {"a": 1, "b": 1, "c": 1}
    assert quotas["a"]["x", "cpu"] == 1000, "what goes with the device goes to the same team"


def test_small_amounts_are_divided_in_small_parts() -> None:
    quotas = divided([kind("tiny", cpu=1500, memory=3 * GI)], {"a": 1, "b": 1})
    assert quotas["a"] == {("tiny", "cpu"): 800, ("tiny", "memory"): 1536 << 20}
    assert quotas["b"]["tiny", "cpu"] == 700


@given(
    st.lists(
        st.tuples(st.integers(0, 10**6), st.integers(0, 2**42), st.integers(0, 20)), min_size=1, max_size=4
    ),
    st.dictionaries(st.sampled_from("abcde"), st.integers(1, 100), min_size=1),
)
def test_together_the_teams_own_nearly_all_and_never_more(
    offers: list[tuple[int, int, int]], shares: dict[str, int]
) -> None:
    found = [kind(f"k{n}", cpu=cpu, memory=memory, gpu=gpu) for n, (cpu, memory, gpu) in enumerate(offers)]
    quotas = divided(found, shares)
    owned: Counter[tuple[str, str]] = Counter()
    for own in quotas.values():
        owned.update(own)
        assert min(own.values(), default=0) >= 0
    for each in found:
        for resource, amount in each.offers.items():
            unit = 1 if "/" in resource else max(1, amount // (4 * len(shares)))
            assert amount - unit <= owned[each.name, resource] <= amount
            if "/" in resource:
                assert owned[each.name, resource] == amount


@pytest.mark.parametrize("teams", [1, 2])
def test_the_manifests_are_in_the_order_in_which_to_apply_them(teams: int) -> None:
    shares = dict.fromkeys(["a", "b"][:teams], 1)
    made = list(first_queues([kind("m5", cpu=8000), kind("a100", cpu=8000, gpu=8)], shares, frozenset("a")))
    kinds = [each["kind"] for each in made]
    assert kinds[: 2 + teams] == ["ResourceFlavor", "ResourceFlavor", *["ClusterQueue"] * teams]
    assert kinds[2 + teams :] == ["LocalQueue", "Namespace", "LocalQueue"][: 2 * teams - 1]
    spec = made[2]["spec"]
    assert ("cohort" in spec, "preemption" in spec) == (teams == 2, teams == 2), "one team shares with none"
    (cpu, gpus) = spec["resources"]
    assert (
        [each["name"] for each in cpu["flavors"]]
        == [each["name"] for each in gpus["flavors"]]
        == ["m5", "a100"]
    )
    assert gpus["flavors"][0]["quota"]["min"] == "0"
