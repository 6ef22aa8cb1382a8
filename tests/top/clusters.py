"""Clusters to look at."""

from tests.insight.states import State

GPU = "nvidia.com/gpu"


def company() -> State:
    """A Cohort of two teams, of which one borrows; one queue that stands alone, one that does not work."""
    state = State("a100", "t4")
    state.put("cohorts", "research", spec={})
    gpus = {"a100": {"min": "8", "max": "16"}}
    state.queue("team-a", {GPU: gpus, "cpu": {"a100": {"min": "100"}}}, "research")
    state.queue("team-b", {GPU: {"a100": {"min": "12"}}}, "research")
    state.queue("broken", {"cpu": {"missing": {"min": "4"}}})
    state.queue("alone", {"memory": {"t4": {"min": "64Gi"}}})
    for queue in ("team-a", "team-b", "alone", "broken"):
        state.namespace(queue, queue)
    for number in range(6):
        usage = {GPU: ("2", "a100"), "cpu": ("4", "a100")}
        state.holds("team-a", f"tune-{number}", usage, cluster_queue="team-a", since=-40 * number)
    state.holds("team-b", "etl", {GPU: ("3", "a100")}, cluster_queue="team-b", since=-3000)
    state.waits("team-a", "train-7", {GPU: "8"}, created=-500)
    state.waits("team-a", "train-8", {GPU: "1"}, created=-400)
    state.waits("team-a", "lost", {GPU: "1"}, queue="mian")
    state.waits("alone", "index", {"memory": "999Gi"}, created=-7200)
    return state


def many(queues: int, workloads: int, per_cohort: int = 20) -> State:
    """Queues in Cohorts of so many; half of the Workloads hold a core, the others wait for four."""
    state = State()
    for number in range(-(-queues // per_cohort)):
        state.put("cohorts", f"department-{number:02}", spec={})
    for number in range(queues):
        cohort = f"department-{number // per_cohort:02}"
        state.queue(f"queue-{number:04}", {"cpu": {"default": {"min": "10"}}}, cohort)
        state.namespace(f"ns-{number:04}", f"queue-{number:04}")
    for number in range(workloads):
        place = number % queues
        if number < workloads // 2:
            usage = {"cpu": ("1", "default")}
            state.holds(f"ns-{place:04}", f"run-{number:05}", usage, cluster_queue=f"queue-{place:04}")
        else:
            state.waits(f"ns-{place:04}", f"wait-{number:05}", {"cpu": "4"})
    return state
