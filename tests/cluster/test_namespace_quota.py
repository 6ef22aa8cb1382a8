"""Namespaces that bring their own quota (docs/namespaces.md), on the real API server."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from admitter.sandbox.cluster import Cluster
from tests.cluster.controller import Controller
from tests.cluster.objects import ON_DEMAND, Json, cluster_queue, job, local_queue, resource_flavor
from tests.cluster.team import Team
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

QUOTA = "admitter.dev/namespace.quota"
PARENT = "admitter.dev/parent-queue"
YUNIKORN = "yunikorn.apache.org"


class Tenant(Team):
    """A namespace with annotations that say what it may use."""

    def has_cohort(self, name: str, cpu: str) -> str:
        """Make a Cohort with so many CPUs; returns its full name."""
        self.apply(resource_flavor(self.flavor("on-demand"), ON_DEMAND))
        self.cohort(name, cpu=cpu)
        return f"{self.namespace}-{name}"

    def annotate(self, annotations: dict[str, str | None]) -> None:
        """Set annotations, or with None remove them."""
        self.patch("namespace", self.namespace, {"metadata": {"annotations": annotations}})

    def queue(self) -> Json:
        """The spec of its ClusterQueue; empty if there is none."""
        return self._spec("clusterqueue")

    def local_queue(self) -> Json:
        """The spec of its LocalQueue; empty if there is none."""
        return self._spec("localqueue")

    def limits(self, expected: dict[str, str]) -> None:
        """Wait until its queue limits just that, and works."""
        eventually(lambda: self.queue().get("limits") == expected, what=f"limits {expected}")
        eventually(lambda: self.shown() == "Ready" and self.local_queue(), what="queues that work")

    def shown(self) -> str:
        """The reason of its ClusterQueue's condition Active."""
        return str(self.active("clusterqueue", self.namespace).get("reason", ""))

    def submit(self, name: str, cpu: str, seconds: int | None = None) -> None:
        """Make a Job of one pod, which runs for ever."""
        self.apply(job(self.namespace, name, requests={"cpu": cpu}, queue=self.namespace, seconds=seconds))

    def used(self) -> dict[str, str]:
        """What its ClusterQueue uses, by resource."""
        status = self.read("clusterqueue", self.namespace).get("status", {})
        uses = [use for flavor in status.get("flavors", []) for use in flavor["resources"]]
        return {use["name"]: use["used"] for use in uses}

    def _spec(self, kind: str) -> Json:
        found = self.read(kind, f"--field-selector=metadata.name={self.namespace}")["items"]
        return dict(found[0]["spec"]) if found else {}

    def versions(self) -> list[Any]:
        """By which it is seen that nothing was written."""
        kinds = ("clusterqueue", "localqueue", "namespace")
        return [self.read(kind, self.namespace)["metadata"]["resourceVersion"] for kind in kinds]


@pytest.fixture
def tenant(installed: Cluster, controller: Controller, namespace: str) -> Iterator[Tenant]:
    """A namespace of the test's own."""
    made = Tenant(installed, namespace, controller)
    yield made
    made.close()


def test_a_quota_comes_changes_and_goes(tenant: Tenant) -> None:
    production = tenant.has_cohort("production", "64")
    tenant.annotate({QUOTA: '{"cpu": "64", "memory": "100G"}', PARENT: f"root.{production}"})
    tenant.limits({"cpu": "64", "memory": "100G"})
    assert tenant.queue()["cohort"] == production
    assert tenant.local_queue()["clusterQueue"] == tenant.namespace
    made = tenant.read("clusterqueue", tenant.namespace)["metadata"]
    assert made["labels"]["admitter.dev/generated-for"] == tenant.namespace
    assert [owner["kind"] for owner in made["ownerReferences"]] == ["Namespace"]
    tenant.annotate({QUOTA: '{"cpu": "32"}', PARENT: None})
    tenant.limits({"cpu": "32"})
    assert tenant.queue()["cohort"] == "root"
    tenant.annotate({QUOTA: None})
    eventually(lambda: not tenant.queue() and not tenant.local_queue(), what="no queues")


def test_the_names_of_yunikorn_and_the_deprecated_ones(tenant: Tenant) -> None:
    """*Namespace quota* in docs/coming-from-yunikorn.md."""
    old = {f"{YUNIKORN}/namespace.max.cpu": "64", f"{YUNIKORN}/namespace.max.memory": "100Gi"}
    tenant.annotate({**old})
    tenant.limits({"cpu": "64", "memory": "100Gi"})
    quota = '{"cpu": "64", "memory": "100G", "nvidia.com/gpu": "1"}'
    tenant.annotate({f"{YUNIKORN}/namespace.quota": quota})
    tenant.limits(json.loads(quota))
    tenant.annotate({QUOTA: '{"cpu": "1"}'})
    tenant.limits({"cpu": "1"})


def test_bad_json_keeps_the_old_quota_and_is_told(tenant: Tenant) -> None:
    tenant.annotate({QUOTA: '{"cpu": "64"}'})
    tenant.limits({"cpu": "64"})
    tenant.annotate({QUOTA: '{"cpu": "64"'})
    eventually(lambda: tenant.shown() == "InvalidAnnotation", what="the condition")
    words = f"annotation {QUOTA}: is no JSON: Expecting ',' delimiter at character 13"
    assert tenant.active("clusterqueue", tenant.namespace)["message"] == words
    assert tenant.active("clusterqueue", tenant.namespace)["status"] == "False"
    assert tenant.queue()["limits"] == {"cpu": "64"}
    # Its ClusterQueue and its LocalQueue have the same name, and may have events too.
    eventually(
        lambda: tenant.events(tenant.namespace).get("InvalidAnnotation") == words,
        what="an event of the namespace",
    )
    tenant.submit("goes-on", "1")
    tenant.runs("goes-on")
    tenant.annotate({QUOTA: '{"cpu": "32"}'})
    tenant.limits({"cpu": "32"})


def test_a_parent_that_does_not_exist_is_waited_for(tenant: Tenant) -> None:
    parent = f"{tenant.namespace}-research"
    tenant.annotate({QUOTA: '{"cpu": "8"}', PARENT: f"root.{parent}"})
    eventually(lambda: tenant.shown() == "ParentNotFound", what="the condition")
    assert tenant.queue()["stopPolicy"] == "Hold"
    tenant.submit("waits", "1")
    words = f"ClusterQueue {tenant.namespace} is stopped: annotation {PARENT}: Cohort {parent} does not exist"
    eventually(lambda: tenant.workload("waits").get("status", {}).get("message") == words, what=words)
    assert tenant.has_cohort("research", "8") == parent
    tenant.runs("waits")
    assert tenant.queue()["cohort"] == parent
    tenant.kubectl("delete", "cohort", parent)
    eventually(lambda: tenant.shown() == "ParentNotFound", what="the condition")
    assert tenant.queue()["limits"] == {"cpu": "8"}, "what was in force stays"


def test_jobs_are_limited_by_the_quota_and_started(tenant: Tenant) -> None:
    """*Namespace quota* in docs/coming-from-yunikorn.md: the queue mapped to the namespace is limited."""
    tenant.annotate({QUOTA: '{"cpu": "2"}'})
    tenant.limits({"cpu": "2"})
    tenant.submit("first", "1500m")
    tenant.runs("first")
    tenant.submit("second", "1")
    eventually(lambda: tenant.reason("second") == "InsufficientQuota", what="that it waits")
    eventually(lambda: tenant.used() == {"cpu": "1500m"}, what="what is in use")
    tenant.annotate({QUOTA: '{"cpu": "3"}'})
    tenant.runs("second")


def test_a_namespace_that_is_deleted_frees_all_that_it_had(tenant: Tenant, installed: Cluster) -> None:
    """Its Jobs run until they are gone; then what its parent has is free for others."""
    parent, other = tenant.has_cohort("parent", "4"), f"{tenant.namespace}-other"
    installed.run_kubectl("create", "namespace", other)
    tenant.offers({"cpu": {"on-demand": "0"}}, cohort=parent)
    try:
        second = Tenant(installed, other, tenant.controller)
        second.annotate({QUOTA: '{"cpu": "4"}', PARENT: parent})
        second.limits({"cpu": "4"})
        second.submit("all", "4")
        second.runs("all")
        tenant.apply(job(tenant.namespace, "next", requests={"cpu": "4"}, seconds=None))
        eventually(lambda: tenant.reason("next") == "InsufficientQuota", what="that it waits")
    finally:
        installed.run_kubectl("delete", "namespace", other, "--wait=false")
    tenant.runs("next")
    eventually(lambda: not second.queue(), what="no queue of the namespace")


def test_an_object_that_was_made_by_hand_is_left_alone(tenant: Tenant) -> None:
    own = cluster_queue(tenant.namespace, {}, tenant.namespace)
    tenant.apply(own, local_queue(tenant.namespace, "elsewhere", tenant.namespace))
    for kind in ("clusterqueue", "localqueue"):  # else one of them is told of before the other is known
        eventually(partial(tenant.active, kind, tenant.namespace), what=f"a controller that knows the {kind}")
    tenant.annotate({QUOTA: '{"cpu": "64"}'})
    words = f"ClusterQueue {tenant.namespace} was not made for this namespace, and stays as it is"
    eventually(lambda: tenant.events(tenant.namespace).get("QueueNameTaken") == words, what="the event")
    assert tenant.local_queue()["clusterQueue"] == "elsewhere"
    assert "limits" not in tenant.queue()
    tenant.kubectl("delete", "clusterqueue", tenant.namespace)
    tenant.limits({"cpu": "64"})
    assert tenant.local_queue()["clusterQueue"] == "elsewhere"
    tenant.kubectl("delete", "localqueue", tenant.namespace)
    eventually(lambda: tenant.local_queue().get("clusterQueue") == tenant.namespace, what="its own")


def test_edits_of_what_is_generated_are_set_right(tenant: Tenant) -> None:
    tenant.annotate({QUOTA: '{"cpu": "64"}'})
    tenant.limits({"cpu": "64"})
    before = tenant.queue()
    edit = {
        "limits": {"cpu": "999", "memory": "1"},
        "stopPolicy": "HoldAndDrain",
        "fairSharing": {"weight": 3},
    }
    tenant.patch("clusterqueue", tenant.namespace, {"spec": edit})
    eventually(lambda: tenant.queue() == before, what="the limits of the annotation")
    tenant.kubectl("delete", "clusterqueue", tenant.namespace)
    tenant.kubectl("delete", "localqueue", tenant.namespace)
    eventually(lambda: tenant.queue() == before and tenant.local_queue(), what="both again")


def test_a_restart_writes_nothing(tenant: Tenant) -> None:
    tenant.annotate({QUOTA: '{"cpu": "64"}'})
    tenant.limits({"cpu": "64"})
    tenant.annotate({QUOTA: "64"})
    eventually(lambda: tenant.shown() == "InvalidAnnotation", what="the condition")
    # Its ClusterQueue and its LocalQueue have the same name, and may have events too.
    named = f"involvedObject.kind=Namespace,involvedObject.name={tenant.namespace}"
    about = ("events", f"--field-selector={named}")
    eventually(
        lambda: "InvalidAnnotation" in {each["reason"] for each in tenant.read(*about)["items"]},
        what="the event",
    )
    visible = ("localqueue", tenant.namespace)
    eventually(lambda: tenant.read(*visible)["status"].get("clusterQueue"), what="what it tells of its queue")
    before, told = tenant.versions(), tenant.read(*about)["items"]
    tenant.controller.restart()
    tenant.apply(local_queue(tenant.namespace, tenant.namespace, "later"))
    eventually(lambda: tenant.active("localqueue", "later"), what="that all before it has been looked at")
    assert tenant.versions() == before
    assert tenant.read(*about)["items"] == told
