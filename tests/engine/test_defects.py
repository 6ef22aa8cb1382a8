"""A defect that one tree brings out stops no other tree."""

import pytest

from admitter.engine.commands import Submit
from admitter.engine.cycle import Engine
from admitter.engine.quota.tree import Node
from admitter.engine.tree_cycle import TreeCycle
from tests.engine.builders import admitted, engine, flavor, pods, queue, workload


@pytest.fixture(autouse=True)
def _spoilt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queue a can't be decided."""
    run = TreeCycle.run

    def fails(contest: TreeCycle, queues: set[str]) -> None:
        if "a" in queues:
            raise TypeError("a defect")
        run(contest, queues)

    monkeypatch.setattr(TreeCycle, "run", fails)


def two_queues(made: Engine) -> Engine:
    engine(flavor("any"), *(queue(name, {"cpu": {"any": "1"}}) for name in ("a", "b")), made=made)
    for name in ("a", "b"):
        made.apply(Submit(workload(f"of-{name}", pods(cpu="1"), queue=name)))
    return made


def test_others_are_decided() -> None:
    failed: list[Node] = []
    spoilt = two_queues(Engine(lambda root, _: failed.append(root)))
    assert admitted(spoilt.cycle()) == ["of-b"]
    assert failed == [("queue", "a")]


def test_without_a_listener_it_is_raised() -> None:
    with pytest.raises(TypeError, match="a defect"):
        two_queues(Engine()).cycle()
