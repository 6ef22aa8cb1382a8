"""Preemption that waits: a grace period before the end, and a runtime that every victim is left."""

from datetime import datetime

import pytest

from tests.cluster.elastic import RUNNING, Tenants
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

GPU = "nvidia.com/gpu"
PENDING = '{.status.conditions[?(@.type=="EvictionPending")].status}'
TIME = "{.metadata.annotations.admitter\\.dev/eviction-time}"


def of_pods(tenants: Tenants, namespace: str) -> str:
    path = f"{{range .items[*]}}{TIME}{{end}}"
    return tenants.cluster.run_kubectl("get", "pods", f"--namespace={namespace}", f"-o=jsonpath={path}")


@pytest.mark.timeout(600)
def test_a_victim_with_a_grace_period_reads_its_end_and_is_evicted_then(tenants: Tenants) -> None:
    a = tenants.quota("a", max={GPU: 1}, preemption={"gracePeriod": "30s"})
    b = tenants.quota("b", min={GPU: 1})
    tenants.node("gpus", {GPU: "1"})
    kills = tenants.controller.kills
    tenants.runs(a, "borrows", {GPU: "1"})
    tenants.submit(b, "owner", {GPU: "1"})
    eventually(lambda: tenants.workload(a, "borrows", PENDING) == "True", what="the condition")
    until = tenants.workload(a, "borrows", "{.status.preemption.evictAt}")
    eventually(lambda: tenants.shows("job", "borrows", a, TIME) == until, what="the Job's annotation")
    eventually(lambda: of_pods(tenants, a) == until, what="the pod's annotation")
    assert tenants.state(a, "borrows") == "Admitted"
    eventually(lambda: tenants.used(GPU, a, b) == ["1", "0"], what="what counts as its own until then")
    assert tenants.pods(a, RUNNING) == ["borrows"]
    eventually(lambda: tenants.state(b, "owner") == "Admitted", what="the owner")
    evicted = tenants.workload(a, "borrows", '{.status.conditions[?(@.type=="Evicted")].lastTransitionTime}')
    late = datetime.fromisoformat(evicted) - datetime.fromisoformat(until)
    assert 0 <= late.total_seconds() < tenants.controller.soon(kills)
    assert tenants.workload(a, "borrows", PENDING) == "False"


def test_an_eviction_is_cancelled_once_no_workload_waits_for_the_quota(tenants: Tenants) -> None:
    a = tenants.quota("a", max={GPU: 1}, preemption={"gracePeriod": "1h"})
    b = tenants.quota("b", min={GPU: 1})
    tenants.node("gpus", {GPU: "1"})
    tenants.runs(a, "borrows", {GPU: "1"})
    tenants.submit(b, "owner", {GPU: "1"})
    eventually(lambda: of_pods(tenants, a) != "", what="the pod's annotation")
    tenants.controller.kill()
    tenants.delete("job", "owner", b)
    eventually(lambda: tenants.workload(a, "borrows", PENDING) == "False", what="the condition to end")
    eventually(lambda: of_pods(tenants, a) == "", what="the pod's annotation to go")
    eventually(lambda: tenants.shows("job", "borrows", a, TIME) == "", what="the Job's annotation to go")
    assert tenants.state(a, "borrows") == "Admitted"


def test_no_workload_is_evicted_before_its_minimum_runtime_is_over(tenants: Tenants) -> None:
    a = tenants.quota("a", max={GPU: 1}, preemption={"minRuntime": "15s"})
    b = tenants.quota("b", min={GPU: 1})
    tenants.node("gpus", {GPU: "1"})
    kills = tenants.controller.kills
    tenants.runs(a, "borrows", {GPU: "1"})
    since = tenants.workload(a, "borrows", '{.status.conditions[?(@.type=="Admitted")].lastTransitionTime}')
    tenants.submit(b, "owner", {GPU: "1"})
    tenants.running(b, "owner")
    went = tenants.workload(a, "borrows", '{.status.conditions[?(@.type=="Evicted")].lastTransitionTime}')
    ran = datetime.fromisoformat(went) - datetime.fromisoformat(since)
    assert 15 <= ran.total_seconds() < 15 + tenants.controller.soon(kills)
