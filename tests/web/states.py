"""A made-up cluster that many tests of views look at."""

from tests.insight.states import State, moment

GPU = "nvidia.com/gpu"


def research() -> State:
    """Three teams in a Cohort; vision borrows GPUs and has a line, speech lends, language uses its own."""
    state = State("a100", "t4")
    state.put("cohorts", "research", spec={})
    for team, large, small in (("vision", "8", "4"), ("speech", "8", "4"), ("language", "16", "0")):
        state.queue(team, {GPU: {"a100": {"min": large}, "t4": {"min": small}}}, "research")
        state.namespace(team, team)
    for number in range(5):  # by which the runtime of others is known
        _holds(
            state, "vision", f"past-{number}", "2", since=-9000 + 400 * number, finished=-6000 + 700 * number
        )
    for number in range(5):
        _holds(state, "vision", f"train-{number}", "2", since=-2400 + 300 * number)
    state.holds("vision", "label", {GPU: ("3", "t4")}, cluster_queue="vision", since=-1500)
    _holds(state, "speech", "decode", "4", since=-4000)
    _holds(state, "language", "pretrain", "14", since=-9000)
    for number, (name, gpus) in enumerate((("train-5", "8"), ("train-6", "8"), ("sweep", "6"))):
        _waits(state, name, gpus, -600 + 100 * number)
    return state


def _holds(
    state: State, team: str, name: str, gpus: str, *, since: float, finished: float | None = None
) -> None:
    state.holds(team, name, {GPU: (gpus, "a100")}, cluster_queue=team, since=since, finished=finished)


def _waits(state: State, name: str, gpus: str, created: float) -> None:
    pods = {"name": "main", "count": 1, "requests": {GPU: gpus}}
    metadata = {"creationTimestamp": moment(created)}
    spec = {"queueName": "main", "priority": 0, "podSets": [pods]}
    status = {"state": "Pending", "reason": "InsufficientQuota"}
    state.put("workloads", name, "vision", metadata=metadata, spec=spec, status=status)
