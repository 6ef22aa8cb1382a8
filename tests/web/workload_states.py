"""Workloads in every state, for the page of one."""

from admitter.insight.snapshot_file import facts
from admitter.policy.snapshot import Snapshot
from tests.insight.states import Json, State, moment

GPU = "nvidia.com/gpu"
RULE = "its priority 0 is lower than 5 (withinClusterQueue)"


def condition(kind: str, second: float, reason: str, message: str = "", *, holds: bool = True) -> Json:
    time, status = moment(second), "True" if holds else "False"
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": time}


def lab() -> State:
    """Two teams in a Cohort with two flavors that suit, and one that does not; team-b is another tenant."""
    state = State("a100", "t4")
    taint = {"key": "spot", "value": "true", "effect": "NoSchedule"}
    state.put("resourceflavors", "spot", spec={"nodeLabels": {"kind": "spot"}, "nodeTaints": [taint]})
    state.put("cohorts", "research", spec={})
    preemption = {"withinClusterQueue": "LowerPriority"}
    of_a = {GPU: {"a100": {"min": "8", "max": "14"}, "t4": {"min": "12"}, "spot": {"min": "16"}}}
    state.queue("vision", of_a, "research", preemption=preemption)
    state.queue("speech", {GPU: {"a100": {"min": "8", "lendingLimit": "4"}}}, "research")
    state.namespace("team-a", "vision")
    state.namespace("team-b", "speech")
    state.put("localqueues", "shared", "team-b", spec={"clusterQueue": "vision"})
    for number in range(5):  # by which the runtime of others is known
        _holds(
            state, "team-a", f"past-{number}", "2", since=-9000 + 400 * number, finished=-5400 + 700 * number
        )
    for number in range(3):
        _holds(state, "team-a", f"tune-{number}", "2", since=-2400 + 300 * number)
    _holds(state, "team-b", "secret-holder", "4", since=-1800, queue="vision")
    state.waits("team-b", "secret-job", {GPU: "6"}, queue="shared", created=-900)
    state.waits("team-a", "train", {GPU: "4"}, pods=2, created=-600)
    state.waits("team-a", "huge", {GPU: "100"}, created=-500)
    state.waits("team-a", "lost", {GPU: "1"}, queue="mian", created=-400)
    _runs_with_trouble(state)
    _was_evicted(state)
    return state


def _holds(
    state: State,
    team: str,
    name: str,
    gpus: str,
    *,
    since: float,
    finished: float | None = None,
    queue: str = "vision",
) -> Json:
    usage = {GPU: (gpus, "a100")}
    return state.holds(team, name, usage, cluster_queue=queue, since=since, finished=finished)


def _runs_with_trouble(state: State) -> None:
    """`sweep`: two of eight pods find no node and one crashes; it has limits, grows, and saves its work."""
    annotations = {"admitter.dev/checkpointed-at": moment(-300)}
    job = state.waits("team-a", "sweep", {GPU: "1"}, pods=8, created=-1300, annotations=annotations)
    waiting = Snapshot(facts(state.snapshot())).find("team-a", "sweep")
    assert waiting is not None
    status = {
        "runTime": {
            "usedSeconds": 1200,
            "deadline": moment(3000),
            "limit": "maxRuntime 2h of ClusterQueue vision",
        },
        "readiness": {"deadline": moment(900), "attempts": 1, "failures": 1},
        "resize": {"granted": 8, "wanted": 10, "changedAt": moment(-60)},
    }
    made = state.holds(
        "team-a", waiting.name, {GPU: ("8", "t4")}, cluster_queue="vision", since=-1200, status=status
    )
    made["spec"]["podSets"][0] |= {"count": 8, "requests": {GPU: "1"}}
    made["status"]["admission"]["podSets"][0]["count"] = 8
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "sweep", "uid": job["metadata"]["uid"]}
    made["metadata"] |= {"ownerReferences": [owner | {"controller": True}]}
    made["metadata"] |= {"labels": {"admitter.dev/job-uid": job["metadata"]["uid"]}}
    job["spec"]["suspend"], job["status"] = False, {"active": 8, "ready": 5}
    ready = [{"type": "Ready", "status": "True"}]
    no_node = "0/6 nodes are available: 6 Insufficient nvidia.com/gpu. preemption: 0/6"
    refused = [{"type": "PodScheduled", "status": "False", "message": no_node}]
    crashes = {"name": "main", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    crashes["lastState"] = {"terminated": {"exitCode": 137}}
    for number in range(5):
        a_pod(state, made, f"sweep-{number}", f"gpu-{number % 3}", {"phase": "Running", "conditions": ready})
    for number in (5, 6):
        a_pod(state, made, f"sweep-{number}", "", {"phase": "Pending", "conditions": refused})
    a_pod(state, made, "sweep-7", "gpu-1", {"phase": "Running", "containerStatuses": [crashes]})


def _was_evicted(state: State) -> None:
    """`bumped`: preempted for a Workload of team-b, it waits again; its message says more than it should."""
    pod_set = {"name": "main", "count": 1, "flavors": {GPU: "a100"}, "usage": {GPU: "4"}}
    by: Json = {"namespace": "team-b", "name": "secret-urgent", "uid": "u-1", "message": RULE}
    by["admission"] = {"clusterQueue": "vision", "podSets": [pod_set]}
    words = f"preempted for Workload team-b/secret-urgent in ClusterQueue vision: {RULE}"
    conditions = [
        condition("QuotaReserved", -280, "Preempted", words, holds=False),
        condition("Admitted", -300, "Preempted", words, holds=False),
        condition("Evicted", -300, "Preempted", words),
        condition("Preempted", -300, "Preempted", words),
    ]
    spec = {
        "queueName": "main",
        "priority": 0,
        "podSets": [{"name": "main", "count": 1, "requests": {GPU: "4"}}],
    }
    status: Json = {"state": "Pending", "reason": "Preempted", "message": words, "preemption": by}
    status["conditions"], status["evictedAt"] = conditions, [moment(-4000), moment(-300)]
    metadata = {"creationTimestamp": moment(-5000)}
    state.put("workloads", "bumped", "team-a", metadata=metadata, spec=spec, status=status)


def a_pod(state: State, workload: Json, name: str, node: str, status: Json) -> None:
    """A pod that the admission of a Workload has made."""
    metadata = workload["metadata"]
    labels = {"admitter.dev/workload": metadata["name"], "admitter.dev/cluster-queue": "vision"}
    annotations = {"admitter.dev/workload-uid": metadata["uid"], "admitter.dev/flavors": "{}"}
    made = {"labels": labels, "annotations": annotations, "creationTimestamp": moment(-1190)}
    spec = {"nodeName": node} if node else {}
    state.put("pods", name, metadata["namespace"], metadata=made, spec=spec, status=status)
