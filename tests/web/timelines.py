"""States with a past: what ran, what was evicted, what runs and what waits."""

from collections.abc import Mapping

from tests.insight.states import State
from tests.web.histories import evicted

HOUR = 3600.0
TEAMS = ("vision", "speech", "language")
GPU = "nvidia.com/gpu"


def busy(teams: tuple[str, ...] = TEAMS, jobs: int = 12) -> State:
    """Teams in a Cohort with an afternoon behind them: runs of different length, evictions, and a line."""
    state = State("a100")
    state.put("cohorts", "research", spec={})
    for team in teams:
        state.queue(team, {GPU: {"a100": {"min": "8"}}}, "research")
        state.namespace(team, team)
        for number in range(jobs):
            began = -9 * HOUR + number * 2300
            gpus = str(1 + number * 5 % 7)
            name = f"{('train', 'tune', 'sweep')[number % 3]}-{number}"
            state.holds(
                team,
                name,
                {GPU: (gpus, "a100")},
                cluster_queue=team,
                since=began,
                finished=began + 1500 + 700 * (number % 4),
            )
        for number in range(3):
            since = -2400.0 + 600 * number
            state.holds(team, f"now-{number}", {GPU: ("2", "a100")}, cluster_queue=team, since=since)
        _evicted(state, team)
        for number in range(4):
            _waits(state, team, f"next-{number}", "3")
    return state


def _evicted(state: State, team: str) -> None:
    """A Workload of a team that is being evicted for another one, and two that were."""
    by = {
        "namespace": team,
        "name": "now-0",
        "message": "reclaimWithinCohort: the queue takes its own quota back",
    }
    stopping(state, team, "gone", {GPU: ("2", "a100")}, -120.0, by)


def stopping(  # a Workload, and for what it stops
    state: State,
    team: str,
    name: str,
    usage: Mapping[str, tuple[str, str]],
    second: float,
    by: Mapping[str, str],
) -> None:
    """A Workload that was evicted at a second; its pods still end."""
    status = evicted(second, by=by)
    made = state.holds(
        team,
        name,
        usage,
        cluster_queue="a" if team == "team-a" else team,
        since=-5000,
        conditions=status["conditions"][1:],
    )
    made["status"]["preemption"] = status["preemption"]


def _waits(state: State, team: str, name: str, gpus: str) -> None:
    pods = {"name": "main", "count": 1, "requests": {GPU: gpus}}
    spec = {"queueName": "main", "priority": 0, "podSets": [pods]}
    state.put("workloads", name, team, spec=spec, status={"state": "Pending", "reason": "InsufficientQuota"})


def long_day(queues: int, spans: int) -> State:
    """Very many short admissions of one day, in many queues."""
    state = State()
    for number in range(queues):
        name = f"queue-{number:04}"
        state.queue(name, {"cpu": {"default": {"min": "8"}}})
        state.namespace(f"ns-{number:04}", name)
    for number in range(spans):
        queue, turn = number % queues, number // queues
        since = -86000.0 + turn * 85000.0 / (spans / queues) + queue
        state.holds(
            f"ns-{queue:04}",
            f"job-{number:05}",
            {"cpu": ("1", "default")},
            cluster_queue=f"queue-{queue:04}",
            since=since,
            finished=since + 20 + 400 * (number % 7),
        )
    return state
