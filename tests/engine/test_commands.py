"""Commands: an observer sees those that make a difference, and nothing that follows from them."""

from unittest import mock

import pytest

from admitter.engine import commands
from admitter.engine.cycle import Engine
from admitter.engine.model import Workload
from tests.engine.builders import engine, flavor, pods, queue, workload
from tests.engine.builders import use as holds

DEFAULT = flavor("default")
QUEUE = queue("q", {"cpu": {"default": "4"}})
FITS: Workload = workload("w", pods(cpu="1"))
HELD = commands.Reserve("r", holds("q", "default", cpu="1"), workload("r", pods(cpu="1")))


def observed() -> tuple[Engine, mock.Mock]:
    """An engine that knows a queue, one that runs and one that waits, and its observer."""
    observer = mock.Mock()
    made = engine(DEFAULT, QUEUE, made=Engine(observer=observer))
    made.apply(HELD)
    made.apply(commands.Submit(FITS))
    observer.reset_mock()
    return made, observer


def test_each_command_has_a_handler() -> None:
    made = [each for each in vars(commands).values() if isinstance(each, type)]
    every = {each for each in made if issubclass(each, commands.Command)} - {commands.Command}
    assert Engine._handlers.keys() == every


@pytest.mark.parametrize(
    "command",
    [
        commands.SetFlavor(DEFAULT),
        commands.RemoveFlavor("none"),
        commands.Define((QUEUE,), gone=("none",), gone_cohorts=("none",)),
        commands.SetWeight("default", 1),
        commands.Submit(FITS),
        commands.Withdraw("none"),
        HELD,
        commands.SetPods("r", ()),
        commands.Release("none"),
        commands.StartEviction("none"),
        commands.CancelEviction("r"),
        commands.ReturnReservation("w"),
        commands.UseReservation("w"),
    ],
    ids=lambda command: type(command).__name__,
)
def test_a_command_that_makes_no_difference_is_not_seen(command: commands.Command) -> None:
    made, observer = observed()
    made.apply(command)
    assert observer.mock_calls == []


@pytest.mark.parametrize(
    "command",
    [
        commands.SetFlavor(flavor("other")),
        commands.Define(gone=("q",)),
        commands.SetWeight("default", 2),
        commands.Submit(workload("w", pods(cpu="2"))),
        commands.Withdraw("w"),
        commands.Reserve("w", HELD.admission, FITS),
        commands.SetPods("r", ((1.0, "r-0"),)),
        commands.Release("r"),
        commands.Evict("r", FITS, holds("q", "default", cpu="4")),
        commands.Displace("gone", "w"),
        commands.StartEviction("r"),
        commands.GainReservation("w"),
    ],
    ids=lambda command: type(command).__name__,
)
def test_another_one_is_seen_once_and_alone(command: commands.Command) -> None:
    made, observer = observed()
    made.apply(command)
    assert observer.mock_calls == [mock.call.applied(command)]


def test_a_command_that_fails_halfway_is_seen() -> None:
    made, observer = observed()
    changed = commands.Submit(workload("w", pods(cpu="2")))
    with mock.patch.object(made._state, "enqueue", side_effect=KeyError), pytest.raises(KeyError):
        made.apply(changed)
    assert observer.mock_calls == [mock.call.applied(changed)]


def test_cycles_and_their_trees_are_seen() -> None:
    made, observer = observed()
    made.resume(lambda _: True)
    plan = made.cycle(7.0, lambda _: False)
    made.abandon_trees(lambda _: True)
    resumed, decided, abandoned = observer.mock_calls
    root = ("queue", "q")
    assert (resumed[0], resumed.args[0].answers) == ("resumed", {root: True})
    assert (decided[0], decided.args[0], decided.args[2]) == ("decided", 7.0, plan)
    assert decided.args[1].answers == {root: False}
    assert (abandoned[0], abandoned.args[0].answers) == ("abandoned", {})
