"""Objects of described kinds as views, which no field of them may break."""

import copy
from typing import Any

import pytest

from admitter.cache.described_views import parse_record, record_of, source_of_kind
from admitter.cache.job_resources import resource_of
from admitter.cache.views import JobView
from admitter.client.errors import UnreadableError
from admitter.client.source import Source
from admitter.kinds.registry import Kinds
from admitter.names import QUEUE_LABEL, WORKLOAD_LABEL
from tests.apiserver.experiments import job_kind
from tests.kinds.described import example, shipped

Json = dict[str, Any]

TEMPLATE: Json = {
    "spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}], "priorityClassName": "low"}
}
TRIAL: Json = {
    "metadata": {
        "name": "trial",
        "namespace": "team",
        "uid": "u",
        "resourceVersion": "7",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {QUEUE_LABEL: "main"},
        "ownerReferences": [
            {"apiVersion": "x.io/v1", "kind": "Study", "name": "s", "uid": "o", "controller": True}
        ],
    },
    "spec": {
        "state": "Stopped",
        "control": TEMPLATE,
        "probes": [{"name": "p", "copies": 3, "template": {**TEMPLATE, "metadata": {"labels": {"a": "b"}}}}],
    },
}


def source(**changed: Any) -> Source[JobView]:
    kinds = Kinds([job_kind(**changed)], {})
    return source_of_kind(kinds.declared[0], kinds, lambda *_: None)


def trial(**status: Any) -> Json:
    return {**copy.deepcopy(TRIAL), "status": status}


def test_what_is_kept_of_an_object() -> None:
    view = source().read(TRIAL)
    assert (view.key, view.queue, view.suspended) == (("team", "experiment/trial"), "main", True)
    assert view.workload.startswith("experiment-trial-")
    assert view.path == "/apis/lab.example.com/v1/namespaces/team/experiments/trial"
    assert [(each.name, each.count) for each in view.sets] == [("control", 1), ("p", 3)]
    assert [each.place for each in view.sets] == [("spec", "control"), ("spec", "probes", 0, "template")]
    assert view.count() == 4
    assert view.template["priorityClassName"] == "low"
    assert view.owner is not None
    assert view.owner.title == "study/s"


def test_states_in_the_words_of_jobs() -> None:
    read = source().read
    idle, runs = read(TRIAL), read(trial(pods=2))
    assert (idle.at_rest, idle.resumed) == (True, False)
    assert (runs.at_rest, runs.resumed, runs.idle) == (False, True, False)
    done = read(trial(pods=0, phase="Done", words="well"))
    assert (done.finished, done.finish_message) == ("Complete", "well")
    assert read(trial(phase="Broken")).finished == "Failed"
    assert not idle.unstarted, "nothing is left in it of an earlier start"


def test_an_object_that_cant_be_counted_says_why() -> None:
    raw = trial()
    raw["spec"]["probes"][0]["copies"] = "two"
    view = source().read(raw)
    assert view.sets == ()
    assert "spec.podSets[1].count: gives 'two'" in view.problem
    raw["spec"]["probes"] = "none"
    assert "must be a list or a map" in source().read(raw).problem


def test_two_pod_sets_with_one_template_are_refused() -> None:
    spec = job_kind()["spec"]
    again = source(podSets=[*spec["podSets"], {"name": "again", "template": "spec.control"}])
    assert again.read(TRIAL).problem == "two of its pod sets have the same template"


def test_a_status_that_cant_be_read_leaves_what_was_known() -> None:
    read = source()
    known = read.take(TRIAL)
    raw = trial(pods="many")
    raw["metadata"]["resourceVersion"] = "8"
    with pytest.raises(UnreadableError, match=r"spec\.active"):
        read.take(raw)
    assert read.store.get(known.key) is known
    assert known.key in read.store.unreadable


@pytest.mark.parametrize(
    "spec", [None, {}, "text", [1], 5, {"state": 5}, {"control": []}, {"probes": {"a": 1}, "control": 5}]
)
def test_whatever_a_user_writes_is_read_or_refused(spec: Any) -> None:
    raw = trial()
    raw["spec"] = spec
    if spec is None:
        del raw["spec"]
    assert source().read(raw).problem


def test_what_a_user_writes_into_another_objects_template_starts_nothing() -> None:
    runtime, train = example("ClusterTrainingRuntime", "trainjob"), example("TrainJob")
    template = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    template["metadata"] = {"labels": {WORKLOAD_LABEL: "of-another"}}
    kind = next(each for each in shipped().declared if each.metadata.name == "trainjob")
    read = source_of_kind(kind, shipped(), lambda *_: runtime).read
    train["metadata"] |= {each: TRIAL["metadata"][each] for each in ("uid", "resourceVersion")}
    train["metadata"]["creationTimestamp"] = TRIAL["metadata"]["creationTimestamp"]
    assert read(train).started_by is None


def test_a_snapshot_keeps_how_many_pods_have_ended() -> None:
    kinds = shipped()
    (kind,) = [each for each in kinds.declared if each.spec.resource.kind == "JobSet"]
    raw = copy.deepcopy(example("JobSet"))
    raw["metadata"] |= {"uid": "u", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z"}
    raw["status"] = {"replicatedJobsStatus": [{"name": "workers", "succeeded": 1}]}
    view = source_of_kind(kind, kinds, lambda *_: None).parse(raw)
    ended = {each.name: (each.count, each.ended) for each in view.sets}
    assert ended == {"driver": (1, 0), "workers": (8, 4)}
    kept = parse_record(record_of(raw["metadata"], view), resource_of(kind))
    assert {each.name: (each.count, each.ended) for each in kept.sets} == ended
