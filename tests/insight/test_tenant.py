"""What a user of one namespace learns from its objects alone (docs/design/tenants.md)."""

import pytest

from admitter.cache.views import workload_name
from admitter.insight.forecast.playout import Effect
from admitter.insight.snapshot_file import facts
from admitter.insight.stand_in import stand_in
from admitter.insight.tenant import lines, obstacle_of, position, rows
from admitter.insight.what_if.compare import compare
from admitter.policy.snapshot import Facts
from admitter.simulate.manifests import Change
from tests.insight.states import NOW, Json, State

GPU = "nvidia.com/gpu"
INACTIVE = "ClusterQueueInactive"


def namespace(told: Json | None, *, held: str = "") -> State:
    """Namespace blue with a Job that waits, and one that holds some GPUs; `told` is of its ClusterQueue."""
    state = State()
    state.objects["resourceflavors"].clear()
    status = {"pendingWorkloads": 1, "admittedWorkloads": 0, **({"clusterQueue": told} if told else {})}
    state.put("localqueues", "main", "blue", spec={"clusterQueue": "gpus"}, status=status)
    waits = {"queueName": "main", "podSets": [{"name": "main", "count": 1, "requests": {GPU: "5"}}]}
    reasons = {"state": "Pending", "reason": "InsufficientQuota", "message": "waits for more"}
    state.put("workloads", "train-7", "blue", spec=waits, status=reasons)
    if held:
        state.holds("blue", "runs", {GPU: (held, "a100")}, cluster_queue="gpus")
    return state


def told(**amounts: str) -> Json:
    """What the example of the design page says, but for some amounts."""
    gpu = {"name": GPU, "quota": "8", "max": "12", "used": "6", "borrowed": "0", "free": "2", **amounts}
    return {
        "pendingWorkloads": 5,
        "admittedWorkloads": 6,
        "flavors": [{"name": "a100", "resources": [gpu]}],
        "line": [{"name": "train-7", "position": 3}],
    }


def known(state: State) -> Facts:
    """What can be read of it."""
    return facts(state.snapshot())


def tried(state: State, gpus: str, labels: Json | None = None, **pod: str) -> Effect | None:
    """What becomes of a further Job; None: nothing is said of it."""
    container, named = {"resources": {"requests": {GPU: gpus}}}, {"admitter.dev/queue-name": "main"}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "new", "namespace": "blue", "labels": named | (labels or {})},
        "spec": {"template": {"spec": {"containers": [container], **pod}}},
    }
    made = facts(stand_in(state.snapshot(), "blue", pod.values(), (labels or {}).values()))
    difference = compare(made, [Change(NOW, 0, job)])
    assert not difference.errors
    return next((each.effect for each in difference.outcomes if each.key == ("blue", "new")), None)


@pytest.mark.parametrize(
    ("gpus", "effect"), [("2", Effect.ADMITTED), ("3", Effect.WAITS), ("13", Effect.NEVER)]
)
def test_further_jobs_are_tried_on_what_the_local_queue_tells(gpus: str, effect: Effect) -> None:
    assert tried(namespace(told()), gpus) is effect


def test_a_job_that_can_never_run_by_its_status_takes_no_quota_from_a_further_one() -> None:
    state = namespace(told())
    job = state.waits("blue", "train-8", {GPU: "2"}, created=-10.0)
    assert tried(state, "1") is Effect.WAITS
    spec = {"queueName": "main", "podSets": [{"name": "main", "count": 1, "requests": {GPU: "2"}}]}
    status = {"state": "Pending", "reason": "NeverFits", "message": "a taint is not tolerated"}
    state.put("workloads", workload_name("train-8", job["metadata"]["uid"]), "blue", spec=spec, status=status)
    assert tried(state, "1") is Effect.ADMITTED


def test_what_the_namespace_holds_itself_is_counted_once() -> None:
    state = namespace(told(used="8", free="4"), held="3")
    assert tried(state, "4") is Effect.ADMITTED
    assert tried(state, "5") is Effect.WAITS


def test_what_is_borrowed_is_no_more_than_there_is() -> None:
    state = namespace(told(used="12", borrowed="4", free="0"))
    assert tried(state, "1") is Effect.WAITS


@pytest.mark.parametrize(("reason", "effect"), [(INACTIVE, Effect.BLOCKED), ("Stopped", Effect.ADMITTED)])
def test_a_queue_that_admits_nothing_admits_no_further_job(reason: str, effect: Effect) -> None:
    """By what another LocalQueue says; that the other one is stopped itself means nothing here."""
    state = namespace(told())
    since = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
    active = {"type": "Active", "status": "False", "reason": reason, "message": "it is so", **since}
    status = {"clusterQueue": told(), "conditions": [active]}
    state.put("localqueues", "other", "blue", spec={"clusterQueue": "gpus"}, status=status)
    assert tried(state, "2") is effect
    assert obstacle_of(known(state), ("blue", "other")) == ("it is so" if reason == INACTIVE else "")
    assert obstacle_of(known(state), ("blue", "main")) == ""


def test_a_priority_class_that_can_not_be_read_is_no_reason_to_wait() -> None:
    assert tried(namespace(told()), "2", priorityClassName="high") is Effect.ADMITTED


def test_a_class_that_a_label_names_can_not_be_read_either() -> None:
    """What a Workload of the namespace has of it is known, and that of its pods counts beside it."""
    state = namespace(told())
    (train,) = (each for each in state.objects["workloads"] if each["metadata"]["name"] == "train-7")
    train["spec"] |= {"priority": 7, "workloadPriorityClass": "mine", "priorityClassName": "low"}
    label = {"admitter.dev/priority-class": "new"}
    assert tried(state, "2", labels=label, priorityClassName="high") is Effect.ADMITTED
    views = facts(stand_in(state.snapshot(), "blue")).views
    assert views["workloadpriorityclasses"]["", "mine"].spec == {"value": 7}
    assert views["priorityclasses"]["", "low"].body == {"value": 0}


def test_the_queue_is_described() -> None:
    state = namespace(told(used="9", borrowed="1", free="0"))
    view = known(state).views["workloads"]["blue", "train-7"]
    assert list(lines(known(state), view)) == [
        "It is number 3 in line.",
        "ClusterQueue gpus, as LocalQueue main told it last: 5 wait, 6 hold quota",
        f"  a100: 9 of 8 {GPU} in use, 1 of that borrowed; 0 free, at most 12",
    ]
    assert position(known(state), view) == 3


def test_a_queue_that_is_hidden_is_named_and_no_more() -> None:
    state = namespace(None)
    view = known(state).views["workloads"]["blue", "train-7"]
    (line,) = lines(known(state), view)
    assert line == "LocalQueue main leads to ClusterQueue gpus, and tells no more of it."
    assert position(known(state), view) is None
    assert tried(state, "1") is not Effect.ADMITTED


def test_an_elastic_quota_of_the_namespace_is_described() -> None:
    state = State()
    quota = {"min": {"cpu": "4"}, "max": {"cpu": "8"}}
    status = {"used": {"cpu": "6"}, "pendingWorkloads": 2, "admittedWorkloads": 3}
    state.put("elasticquotas", "quota", "blue", spec=quota, status=status)
    spec = {"queueName": "elastic-quota", "podSets": [{"name": "main", "count": 1}]}
    state.put("workloads", "job", "blue", spec=spec, status={})
    view = known(state).views["workloads"]["blue", "job"]
    assert list(lines(known(state), view)) == [
        "ElasticQuota blue/quota: 2 wait, 3 hold quota",
        "  6 of 4 cpu in use, at most 8",
    ]


def test_rows_have_what_statuses_say() -> None:
    state = namespace(told(), held="3")
    held, waits = rows(known(state))
    assert (held.job, held.queue, held.state, held.position) == ("runs", "gpus", "Admitted", None)
    assert (waits.job, waits.queue, waits.position) == ("train-7", "gpus", 3)
    assert waits.reason == "InsufficientQuota"


def test_a_line_that_still_names_what_has_been_admitted_gives_it_no_position() -> None:
    state = namespace(told() | {"line": [{"name": "runs", "position": 1}]}, held="3")
    held, waits = rows(known(state))
    assert (held.workload.name, held.position, waits.position) == ("runs", None, None)
    assert "It is number 1 in line." not in list(lines(known(state), held.workload))
