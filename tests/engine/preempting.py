"""What the cases of preemption have in common: one flavor, CPUs, and which workloads run since when."""

from admitter.engine.commands import Reserve, Submit
from admitter.engine.cycle import Engine
from admitter.engine.policy import PreemptionPolicy, Queue, Reclaim, WithinQueue
from tests.engine.builders import flavor, pods, queue, use, workload

DEFAULT = flavor("default")
LOWER = PreemptionPolicy(within=WithinQueue.LOWER_PRIORITY)
NEWER = PreemptionPolicy(within=WithinQueue.LOWER_OR_NEWER_EQUAL_PRIORITY)
RECLAIM = PreemptionPolicy(reclaim=Reclaim.ANY)


def cpus(name: str, limits: str, preemption: PreemptionPolicy | None = None, parent: str = "c") -> Queue:
    return queue(
        name, {"cpu": {"default": limits}}, cohort=parent, preemption=preemption or PreemptionPolicy()
    )


def running(made: Engine, uid: str, cpu: int, name: str, *, priority: int = 0, since: float = 0) -> None:
    """Something that was admitted some time ago."""
    who = workload(uid, pods(cpu=str(cpu)), queue=name, priority=priority, created=since)
    made.apply(Reserve(uid, use(name, "default", cpu=str(cpu)), who, since))


def asks(made: Engine, uid: str, cpu: int, name: str, *, priority: int = 0, created: float = 99) -> None:
    made.apply(Submit(workload(uid, pods(cpu=str(cpu)), queue=name, priority=priority, created=created)))
