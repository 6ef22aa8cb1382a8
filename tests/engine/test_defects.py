"""A defect that one tree brings out stops no other tree."""

import pytest

from admitter.engine.commands import Submit
from admitter.engine.cycle import Engine
from admitter.engine.quota.tree import Node
from admitter.engine.tree_cycle import Plan, TreeCycle
from tests.engine.builders import admitted, engine, flavor, pods, queue, workload


@pytest.fixture
def spoilt(monkeypatch: pytest.MonkeyPatch) -> Engine:
    """Queue a can't be decided, and queue b can."""
    made = engine(flavor("any"), *(queue(name, {"cpu": {"any": "1"}}) for name in ("a", "b")))
    for name in ("a", "b"):
        made.apply(Submit(workload(f"of-{name}", pods(cpu="1"), queue=name)))
    run = TreeCycle.run

    def fails(contest: TreeCycle, queues: set[str], now: float, plan: Plan) -> None:
        if "a" in queues:
            raise TypeError("a defect")
        run(contest, queues, now, plan)

    monkeypatch.setattr(TreeCycle, "run", fails)
    return made


def test_others_are_decided(spoilt: Engine) -> None:
    failed: list[Node] = []
    spoilt.failed = lambda root, _: failed.append(root)
    assert admitted(spoilt.cycle()) == ["of-b"]
    assert failed == [("queue", "a")]


def test_without_a_listener_it_is_raised(spoilt: Engine) -> None:
    with pytest.raises(TypeError, match="a defect"):
        spoilt.cycle()
