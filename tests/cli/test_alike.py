"""Arguments are alike in all commands: what an option is called, how files and objects are named."""

from collections import defaultdict
from pathlib import Path

import pytest
from typer.testing import CliRunner

from admitter.cli.main import app
from tools.docs.cli import commands

ROOT = Path(__file__).parents[2]
STATE = ("--state", str(ROOT / "docs/examples/monday.json"))
QUEUES = str(ROOT / "docs/examples/first-queue")
JOB_NAMES = ("job/train-7", "jobs/train-7", "Job/train-7", "job.batch/train-7", "jobs.batch/train-7")
NOT_BOTH = "exclude each other"
JOB = ("-n", "team-a", "--estimate-for", "0s", *STATE)


def said(*words: str, exit_code: int = 0) -> str:
    answer = CliRunner().invoke(app, words)
    assert answer.exit_code == exit_code, answer.output
    return answer.stdout + answer.stderr


@pytest.mark.parametrize("path", [each.path for each in commands()])
def test_each_command_has_help_by_one_letter(path: str) -> None:
    _, *words = path.split()
    assert said(*words, "-h") == said(*words, "--help")


def test_a_letter_means_the_same_in_all_commands() -> None:
    meant: defaultdict[str, set[str]] = defaultdict(set)
    for each in commands():
        for parameter in () if each.is_group else each.command.params:
            *letters, name = sorted(parameter.opts, key=len)
            for letter in letters:
                meant[letter].add(name)
    assert meant == {
        "-A": {"--all-namespaces"},
        "-f": {"--filename"},
        "-n": {"--namespace"},
        "-o": {"--output"},
    }


def test_all_commands_that_read_files_take_them_alike() -> None:
    takes: dict[str, list[str]] = {}
    for each in commands():
        options = {name: parameter for parameter in each.command.params for name in parameter.opts}
        if "paths" in options or "-f" in options:
            takes[each.path] = sorted(options.keys() & {"paths", "-f", "--filename"})
    read = {f"admitter {name}" for name in ("import", "lint", "replay", "simulate", "what-if")}
    of_cluster = {"admitter init": ["--filename", "-f"]}  # reads the nodes of a cluster if no file is named
    assert takes == {key: ["--filename", "-f", "paths"] for key in read} | of_cluster


@pytest.mark.parametrize(
    "words", [("lint",), ("simulate", "--until", "5m"), ("what-if", "--estimate-for", "0s", *STATE)]
)
def test_files_may_be_named_with_an_option_or_without(words: tuple[str, ...]) -> None:
    files = (f"{QUEUES}/queue.yaml", f"{QUEUES}/sort-1.yaml")
    with_option = said(*words, "-f", files[0], "--filename", files[1])
    assert with_option == said(*words, *files) == said(*words, "-f", files[0], files[1])


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (("lint",), "give files or folders with -f, or --live, or --state"),
        (("lint", "--live", "queue.yaml"), "give files or folders with -f, or --live, or --state"),
        (("simulate",), "give manifests with -f"),
        (("what-if",), "nothing to try: give -f or --without"),
        (("import", "kueue"), "give files or folders with -f, - for standard input, or --live"),
        (("import", "kueue", "--context", "here", QUEUES), "a cluster is only read with --live"),
        (("replay",), "give a journal, or a folder of them, with -f"),
        (
            ("install", "--image", "admitter", "--without-deployment"),
            f"--image and --without-deployment {NOT_BOTH}",
        ),
        (
            ("sandbox", "up", "--nodes", f"{QUEUES}/queue.yaml", "--no-nodes"),
            f"--nodes and --no-nodes {NOT_BOTH}",
        ),
    ],
)
def test_a_command_says_which_options_it_needs_or_does_not_take_together(
    words: tuple[str, ...], remedy: str
) -> None:
    answer = unboxed(said(*words, exit_code=2))
    assert f"╮ {remedy} ╰" in answer, "no value is called invalid"


@pytest.mark.parametrize("name", JOB_NAMES)
def test_a_job_may_be_named_with_its_kind(name: str) -> None:
    assert said("explain", name, *JOB) == said("explain", "train-7", *JOB)


def unboxed(answer: str) -> str:
    """An error as one line, without the frame around it."""
    return " ".join(answer.replace("│", "").split())


@pytest.mark.parametrize("name", ["cq/team-a", "service/train-7", "job/"])
def test_what_is_no_job_can_not_be_explained(name: str) -> None:
    answer = unboxed(said("explain", name, *JOB, exit_code=2))
    assert f"{name!r} is none of NAME, job/NAME, pod/NAME, podgroup/NAME, wl/NAME" in answer


@pytest.mark.parametrize("command", ["explain", "history", "pause", "resume", "hold", "drain"])
@pytest.mark.parametrize("name", ["team-a/train-7", "job/team-a/train-7"])
def test_a_namespace_is_no_part_of_a_name(command: str, name: str) -> None:
    answer = unboxed(said(command, name, exit_code=2))
    assert f"{name!r} is none of NAME, job/NAME" in answer
    assert "; -n names the namespace" in answer


@pytest.mark.parametrize("words", [("explain", *STATE), ("hold",), ("drain",)])
def test_what_may_be_a_kind_is_a_namespace_if_no_job_kind_describes_it(words: tuple[str, ...]) -> None:
    command, *more = words
    name = "teama/train-7"
    answer = unboxed(said(command, name, *more, exit_code=2))
    assert f"{name!r} is none of NAME, job/NAME" in answer
    assert "; -n names the namespace" in answer


@pytest.mark.parametrize("kind", ["cq", "clusterqueue", "clusterqueues", "ClusterQueue", "cq.admitter.dev"])
def test_a_queue_may_be_named_as_for_kubectl(kind: str) -> None:
    words = ("what-if", "--estimate-for", "0s", *STATE, "--without")
    assert said(*words, f"{kind}/team-a") == said(*words, "ClusterQueue/team-a")


def test_workloads_have_their_short_name() -> None:
    assert said("get", "wl", "-A", *STATE) == said("get", "workloads", "-A", *STATE)
