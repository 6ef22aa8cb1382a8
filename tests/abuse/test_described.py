"""Changed objects of described kinds, JobKinds and runtimes: all are read or refused, in a moment."""

import copy
import time
from typing import Any

import pytest
from structlog.testing import capture_logs

from admitter.api.job_kind import Injection, JobKind
from admitter.cache.described_views import source_of_kind
from admitter.cache.related_views import RelatedView, source_of_related
from admitter.client.decoding import decoded
from admitter.documents import documents
from admitter.kinds.registry import Kinds
from admitter.names import WORKLOAD_LABEL
from tests.abuse.mutator import mutated
from tests.kinds.described import EXAMPLES, ROOT, example, shipped
from tests.scale import scaled

Json = dict[str, Any]

SEEDS = scaled(20, 400)
LONGEST_SECONDS = 0.3
"""Of the processor, for one object: it takes 0.02 as a rule."""
METADATA: Json = {
    "namespace": "team",
    "uid": "u",
    "resourceVersion": "7",
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "labels": {"admitter.dev/queue-name": "main"},
}
INNER = "template.spec.pytorchReplicaSpecs.Worker.template"
BROKEN = "an object breaks its parser"
STATUS: Json = {
    "conditions": [{"type": "Complete", "status": "False", "message": ""}],
    "replicatedJobsStatus": [{"name": "a", "active": 1}],
    "jobsStatus": [{"name": "a", "active": 1, "ready": 1}],
    "replicaStatuses": {"Worker": {"active": 1}},
    "state": "ready",
    "componentStatus": [{"podSets": [{"path": path}]} for path in (INNER, "template")],
}
SHIPPED = {kind.metadata.name: kind for kind in shipped().declared}
FOUND = [raw for _, raw in documents([str(EXAMPLES)])]


def sample(kind: JobKind) -> Json | None:
    """An object of a kind as the API server has it."""
    named = kind.spec.resource
    alike = (each for each in FOUND if (each["apiVersion"], each["kind"]) == (named.api_version, named.kind))
    raw = copy.deepcopy(next(alike, None))
    if kind.spec.injection is Injection.POD_SET_INFOS:  # an admission has put labels into it
        for component in raw["spec"]["components"] if raw else ():
            component["podSetInfos"] = [{"labels": {WORKLOAD_LABEL: "a"}, "annotations": {"b": "c"}}]
    return raw and raw | {"metadata": {**raw["metadata"], **METADATA}, "status": STATUS}


SAMPLES = {name: raw for name, kind in SHIPPED.items() if (raw := sample(kind)) is not None}


def read(name: str, raw: Json, runtime: Json) -> None:
    """Have an object read, beside a runtime; no defect shows in the log."""
    source = source_of_kind(SHIPPED[name], shipped(), lambda *_: runtime)
    began = time.process_time()
    with capture_logs() as logs:
        source.seen(raw)
    assert time.process_time() - began < LONGEST_SECONDS
    assert not [each for each in logs if each["event"] == BROKEN]


@pytest.mark.parametrize("name", SAMPLES)
def test_changed_objects_of_a_kind(name: str) -> None:
    runtime = example("ClusterTrainingRuntime", "trainjob")
    for seed in range(SEEDS):
        read(name, decoded(mutated(SAMPLES[name], f"{name}-{seed}").text), runtime)


def test_changed_runtimes() -> None:
    """What is kept of one is what a TrainJob is read from."""
    valid, source = example("ClusterTrainingRuntime", "trainjob"), source_of_related("/runtimes")
    valid["metadata"] |= METADATA
    for seed in range(4 * SEEDS):
        with capture_logs() as logs:
            view = source.seen(decoded(mutated(valid, f"runtime-{seed}").text))
        assert not [each for each in logs if each["event"] == BROKEN]
        if isinstance(view, RelatedView) and view.text:
            read("trainjob", SAMPLES["trainjob"], decoded(view.text))


@pytest.mark.parametrize("name", SAMPLES)
def test_changed_job_kinds(name: str) -> None:
    """One does not work, in words, or reads its objects as any other."""
    manifests = [raw for _, raw in documents([str(ROOT / "manifests" / "kinds")])]
    [valid] = [each for each in manifests if each["metadata"]["name"] == name]
    works = 0
    for seed in range(SEEDS):
        raw = decoded(mutated(valid, f"kind-{name}-{seed}").text)
        kinds = Kinds([raw], {})
        kinds.find_all()
        assert bool(kinds.declared) or bool(kinds.defects)
        if not kinds.defects:
            works += 1
            source_of_kind(kinds.declared[0], kinds, lambda *_: None).seen(SAMPLES[name])
    assert works, "some are changed in nothing that counts"
