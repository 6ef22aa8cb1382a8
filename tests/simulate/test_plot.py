"""`admitter simulate --plot`: what happened, as a picture."""

import json
import re
from pathlib import Path

import pytest

from admitter.engine.commands import Release, Reserve, Submit
from admitter.simulate.history import History
from tests.cluster.objects import Json, cluster_queue, local_queue, resource_flavor
from tests.commands import admitter
from tests.engine.builders import engine, flavor, pods, queue, use, workload
from tests.simulate.test_simulate import QUEUES, annotate, asks, simulate

WORDS = r">([^<>]+)</text>"


def test_a_picture_shows_every_queue_and_is_the_same_every_time(tmp_path: Path) -> None:
    pictures = []
    for name in ("one.svg", "two.svg"):
        jobs = [asks("one", 3, lasts="90s"), asks("two", 3, lasts="4m")]
        other = cluster_queue("other", {"cpu": {"default": "2"}})
        simulate(tmp_path, *QUEUES, other, *jobs, options=["--plot", str(tmp_path / name)])
        pictures.append((tmp_path / name).read_text())
    words = set(re.findall(WORDS, pictures[0]))
    shown = {
        "default: cpu",
        "waiting workloads",
        "workloads, by creation",
        "team/one",
        "minutes since the start",
    }
    shown |= {"total", "total, borrowed", "other", "other, borrowed", "quota (min)", "waits"}
    assert shown - words == {"total, borrowed", "other", "other, borrowed"}, "what is not there is not drawn"
    assert "max" not in words, "there is none"
    assert "Makespan: 5m30s, until all of 2 workloads have finished" in words
    assert {word for word in words if word.isdigit()} >= {"0", "1", "2", "3"}
    assert not [word for word in words if word.endswith(".5")], "minutes are whole"
    assert pictures[0] == pictures[1]


def drawn(tmp_path: Path, *manifests: Json) -> list[str]:
    """The words in a picture."""
    path = tmp_path / "drawn.svg"
    simulate(tmp_path, *manifests, options=["--plot", str(path)])
    return re.findall(WORDS, path.read_text())


def test_the_picture_in_the_docs_is_what_is_drawn_now(tmp_path: Path) -> None:
    root, path = Path(__file__).parents[2], tmp_path / "use.svg"
    answer = admitter("simulate", str(root / "docs" / "examples" / "two-teams"), "--plot", str(path))
    assert answer.returncode == 0
    shown = (root / "docs" / "images" / "simulate.svg").read_text()
    assert re.findall(WORDS, shown) == re.findall(WORDS, path.read_text())


def test_what_is_borrowed_and_what_is_evicted_can_be_seen(tmp_path: Path) -> None:
    owner, borrower = (
        cluster_queue(
            name, {"cpu": {"default": "4"}}, cohort="all", preemption={"reclaimWithinCohort": "Any"}
        )
        for name in ("owner", "borrower")
    )
    queues = [local_queue("team", "borrower"), local_queue("team", "owner", name="owned")]
    jobs = [
        asks("large", 6, lasts="1h"),
        annotate(asks("owns", 4, lasts="1h", queue="owned"), "simulated-at", "9m"),
    ]
    words = drawn(tmp_path, resource_flavor("default", {}), owner, borrower, *queues, *jobs)
    assert {"borrower, borrowed", "evicted", "owner", "waits"} <= {*words}
    assert "owner, borrowed" not in words


@pytest.mark.long
def test_a_picture_of_many_flavors_says_what_it_leaves_out(tmp_path: Path) -> None:
    names = [f"flavor-{n:02}" for n in range(25)]
    others = [cluster_queue(f"queue-{name}", {"cpu": {name: "1"}}) for name in names]
    flavors = [resource_flavor(name, {"nodeLabels": {"hardware": name}}) for name in names]
    words = drawn(tmp_path, *QUEUES, *flavors, *others, asks("one", 3))
    assert "default: cpu" in words
    assert any("(6 more flavors and resources are not drawn)" in word for word in words)


def test_of_many_queues_and_workloads_only_some_are_named(tmp_path: Path) -> None:
    queues = [cluster_queue(f"queue-{n:02}", {"cpu": {"default": "2"}}) for n in range(12)]
    local = [local_queue("team", f"queue-{n:02}", name=f"local-{n:02}") for n in range(12)]
    jobs = [asks(f"job-{n}", 1, queue=f"local-{n % 12:02}", lasts="1m") for n in range(48)]
    words = drawn(tmp_path, resource_flavor("default", {}), *queues, *local, *jobs)
    assert {"queue-00", "queue-08", "other queues", "48 workloads, by creation"} <= {*words}
    assert not {"queue-09", "team/job-0"} & {*words}


def test_what_was_deleted_is_drawn_and_what_ended_before_is_not(tmp_path: Path) -> None:
    gone = annotate(asks("gone", 2), "simulated-until", "3m")
    words = drawn(tmp_path, *QUEUES, gone, asks("stays", 2, lasts="4m"))
    assert {"team/gone", "team/stays"} <= {*words}


def test_names_with_dollar_signs_are_no_formulas(tmp_path: Path) -> None:
    jobs = [asks(name, 1, lasts="1m") for name in (r"a$\fra{x}$b", "$x$")]
    assert {r"team/a$\fra{x}$b", "team/$x$"} <= {*drawn(tmp_path, *QUEUES, *jobs)}


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        pytest.param("missing/x.svg", "can't write", id="no-such-folder"),
        pytest.param("picture.docx", "not supported", id="no-such-format"),
    ],
)
def test_a_picture_that_cannot_be_written(tmp_path: Path, name: str, complaint: str) -> None:
    path = tmp_path / "queues.json"
    invalid = {"apiVersion": "admitter.dev/v1alpha1", "kind": "Cohort", "metadata": {"name": "c"}, "spec": 5}
    path.write_text(json.dumps({"kind": "List", "items": [QUEUES[1], invalid]}))
    answer = admitter("simulate", str(path), "--plot", str(tmp_path / name))
    assert answer.returncode == 2
    assert complaint in " ".join(answer.stderr.split())
    assert answer.stderr.startswith("Cohort c: spec"), "the simulation is over: what it found is shown"
    assert "No makespan: no workload ran" in answer.stdout


def test_what_is_noted_is_what_has_changed() -> None:
    made = engine(flavor("f"), queue("q", {"cpu": {"f": "2..4"}}))
    history = History(made)
    history.look(0)
    made.apply(Reserve("x", use("q", "f", cpu="3")))
    history.look(1)
    history.look(2)
    made.apply(Submit(workload("w", pods(cpu="9"))))
    made.apply(Release("x"))
    history.look(3)
    shares = [(time, dict(use.queues)) for time, use in history.use["f", "cpu"]]
    assert shares == [(0, {}), (1, {"q": (2000, 1000)}), (3, {})]
    assert {(use.quota, use.limit, use.used) for _, use in history.use["f", "cpu"]} == {
        (2000, 4000, 0),
        (2000, 4000, 3000),
    }
    assert history.waiting == [(0, {}), (3, {"q": 1})]
    assert history.end == 3
