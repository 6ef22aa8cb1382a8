"""`admitter simulate --plot`: what happened, as a picture."""

import json
import re
from pathlib import Path

import pytest

from admitter.engine.commands import Release, Reserve, Submit
from admitter.simulate.history import History
from tests.cluster.objects import cluster_queue
from tests.engine.builders import engine, flavor, pods, queue, use, workload
from tests.simulate.test_simulate import QUEUES, admitter, asks, simulate


def test_a_picture_shows_every_queue_and_is_the_same_every_time(tmp_path: Path) -> None:
    pictures = []
    for name in ("one.svg", "two.svg"):
        jobs = [asks("one", 3, lasts="90s"), asks("two", 3, lasts="4m")]
        other = cluster_queue("other", {"cpu": {"default": "2"}})
        simulate(tmp_path, *QUEUES, other, *jobs, options=["--plot", str(tmp_path / name)])
        pictures.append((tmp_path / name).read_text())
    words = set(re.findall(r">([^<>]+)</text>", pictures[0]))
    assert {"total", "other", "cpu", "used", "min", "waiting (right)", "minutes since the start"} <= words
    assert "max" not in words, "there is none"
    assert pictures[0] == pictures[1]


def test_a_picture_of_more_than_forty_queues_says_what_it_leaves_out(tmp_path: Path) -> None:
    others = [cluster_queue(f"queue-{n:02}", {"cpu": {"default": "1"}}) for n in range(45)]
    simulate(tmp_path, *QUEUES, *others, asks("one", 3), options=["--plot", str(tmp_path / "many.svg")])
    words = re.findall(r">([^<>]+)</text>", (tmp_path / "many.svg").read_text())
    assert "total" in words
    assert any("6 more queues and resources are not drawn" in word for word in words)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        pytest.param("missing/x.svg", "can't write", id="no-such-folder"),
        pytest.param("picture.docx", "not supported", id="no-such-format"),
    ],
)
def test_a_picture_that_cannot_be_written(tmp_path: Path, name: str, complaint: str) -> None:
    path = tmp_path / "queues.json"
    path.write_text(json.dumps(QUEUES[1]))
    answer = admitter("simulate", str(path), "--plot", str(tmp_path / name))
    assert answer.returncode == 2
    assert complaint in " ".join(answer.stderr.split())


def test_what_is_noted_is_what_has_changed() -> None:
    made = engine(flavor("f"), queue("q", {"cpu": {"f": "2..4"}}))
    history = History(made)
    history.look(0)
    made.apply(Reserve("x", use("q", "f", cpu="1")))
    history.look(1)
    history.look(2)
    made.apply(Submit(workload("w", pods(cpu="9"))))
    made.apply(Release("x"))
    history.look(3)
    series, waiting = history.use["q", "cpu"], history.waiting["q"]
    assert (series.times, series.used) == ([0, 1, 3], [0, 1000, 0])
    assert (series.minimum[0], series.maximum[0]) == (2000, 4000)
    assert (waiting.times, waiting.counts) == ([0, 3], [0, 1])
    assert history.end == 3
