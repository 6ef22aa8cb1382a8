"""Records of evictions: what queues with limits on evictions remember, as a controller writes it."""

from typing import TYPE_CHECKING

from admitter.api.eviction_limits import MOST_EVICTIONS_OF_QUEUE
from admitter.engine import commands
from admitter.engine.cycle import Engine
from admitter.engine.policy import EvictionLimit
from tests.engine.scenarios.world import World

if TYPE_CHECKING:
    from tests.engine.scenarios.driver import Play

Node = tuple[str, str]  # `queue` or `cohort`, and a name


def limits_above(world: World, queue: str) -> dict[Node, EvictionLimit]:
    """The limits on evictions from a queue that it shares with others, by the names that definitions give."""
    defined = world.queues[queue]
    found = {("queue", queue): defined.max_evictions} if defined.max_evictions is not None else {}
    name, seen = defined.cohort, set[str]()
    while name and name not in seen:
        seen.add(name)
        cohort = world.cohorts.get(name)
        if cohort is not None and cohort.max_evictions is not None:
            found["cohort", name] = cohort.max_evictions
        name = cohort.parent if cohort is not None else ""
    return found


def write(play: "Play", uid: str) -> None:
    """The eviction of a workload is about to begin: first the record has it."""
    queue = play.world.running[uid].admission.queue
    if limits_above(play.world, queue):
        record = play.world.records.get(queue, ())
        play.world.records[queue] = (*record, (play.now, uid))[-MOST_EVICTIONS_OF_QUEUE:]
        tell(play.world, play.engine)


def take_back(play: "Play", uid: str) -> None:
    """The eviction was not written; every second time the controller does not come to correct the record."""
    queue = play.world.running[uid].admission.queue
    record = play.world.records.get(queue, ())
    if play.scenario.seed % 2 and (play.now, uid) in record:
        play.world.records[queue] = tuple(each for each in record if each != (play.now, uid))
        tell(play.world, play.engine)


def start(world: World, engine: Engine) -> None:
    """Let an engine know that evictions have begun."""
    for victim in [uid for uid, leaving in world.leaving.items() if leaving.going]:
        engine.apply(commands.StartEviction(victim))


def tell(world: World, engine: Engine) -> None:
    """Let an engine know all records."""
    for queue, record in world.records.items():
        engine.apply(commands.SetEvictions(queue, record))
