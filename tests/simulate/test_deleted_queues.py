"""What a simulation shows of queues that go while something runs in them."""

from pathlib import Path

from tests.cluster.objects import cluster_queue, local_queue, resource_flavor
from tests.commands import admitter
from tests.simulate.test_simulate import annotate, asks, simulate

GOES = [
    resource_flavor("default", {}),
    annotate(cluster_queue("total", {"cpu": {"default": "4"}}), "simulated-until", "1m"),
    local_queue("team", "total"),
]


def test_a_deleted_queue_is_shown_with_its_use_for_as_long_as_something_is_held_in_it(tmp_path: Path) -> None:
    result = simulate(tmp_path, *GOES, asks("runs", 3))
    (row,) = result["clusterQueues"]
    assert row == {
        "name": "total",
        "cohort": None,
        "usage": {"default": {"cpu": {"used": "3", "borrowed": "3"}}},
        "pending": 0,
        "admitted": 1,
    }
    table = admitter("simulate", str(tmp_path / "manifests.yaml")).stdout
    assert table.splitlines()[-1].split() == ["total", "default", "cpu", "3", "3", "0", "1"]


def test_a_deleted_queue_is_shown_no_more_once_nothing_is_held_in_it(tmp_path: Path) -> None:
    result = simulate(tmp_path, *GOES, asks("runs", 3, lasts="5m"))
    assert result["clusterQueues"] == []
