"""A simulation of Jobs that grow (docs/growing.md)."""

from pathlib import Path

from tests.cluster.objects import Json, cluster_queue, local_queue, resource_flavor
from tests.simulate.test_simulate import annotate, asks, happened, simulate, states


def shared(name: str = "owns", **preemption: str) -> list[Json]:
    return [
        resource_flavor("default", {}),
        cluster_queue(name, {"cpu": {"default": "8"}}, preemption=preemption),
        local_queue("team", name, "main"),
    ]


def sweep(most: str = "8") -> Json:
    return annotate(asks("sweep", 1, pods=4, completions=1000), "max-parallelism", most)


def extra(result: Json, name: str) -> int:
    return next(int(row["extraPods"]) for row in result["workloads"] if row["job"] == name)


def test_it_grows_after_half_a_minute(tmp_path: Path) -> None:
    early = simulate(tmp_path, *shared(), sweep("7"), options=["--until", "29s"])
    assert extra(early, "sweep") == 0
    result = simulate(tmp_path, *shared(), sweep("7"), options=["--until", "30s"])
    assert extra(result, "sweep") == 3
    assert happened(result) == [("00:00:00", "Admitted", "sweep"), ("00:00:30", "Resized", "sweep")]


def test_what_comes_gets_its_quota_back_and_nothing_is_evicted(tmp_path: Path) -> None:
    later = annotate(asks("next", 3), "simulated-at", "5m")
    result = simulate(tmp_path, *shared(), sweep(), later, options=["--until", "10m"])
    assert states(result) == {"sweep": "Admitted", "next": "Admitted"}
    assert extra(result, "sweep") == 1
    assert [each[1] for each in happened(result)] == ["Admitted", "Resized", "Resized", "Admitted"]
    used = result["clusterQueues"][0]["usage"]["default"]["cpu"]["used"]
    assert used == "8"


def test_what_is_no_number_waits(tmp_path: Path) -> None:
    result = simulate(tmp_path, *shared(), sweep("many"), exit_code=1)
    assert "many" in str(result["errors"]) or "many" in str(result["workloads"])
