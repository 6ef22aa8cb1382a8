"""Elastic quotas that are in use, and flavors that they need, are not deleted by mistake."""

from typing import Any

import pytest

from admitter.sandbox.cluster import KubectlError
from tests.cluster.elastic import Tenants
from tests.cluster.objects import ON_DEMAND, Json, elastic_quota, resource_flavor
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

FORCE = "admitter.dev/delete-in-use"
NEVER = {"cpu": "64k"}
"""What no quota has: a Job of it waits for ever."""


def guarded(tenants: Tenants, *what: str) -> None:
    """Take the annotation away with which tests clear up."""
    tenants.cluster.run_kubectl("annotate", *what, f"{FORCE}-")


def forced(tenants: Tenants, *what: str) -> None:
    tenants.cluster.run_kubectl("annotate", *what, f"{FORCE}=true")
    assert answer(tenants, *what) == ""


def answer(tenants: Tenants, *what: str) -> str:
    """Why a deletion would be refused; empty if it would not."""
    try:
        tenants.cluster.run_kubectl("delete", *what, "--dry-run=server")
    except KubectlError as error:
        return str(error)
    return ""


def refused(tenants: Tenants, words: str, *what: str) -> None:
    eventually(lambda: words in answer(tenants, *what), what=words)


def quota(tenants: Tenants, kind: str, short: str, **spec: Any) -> tuple[str, str, str]:
    """Make a namespace with an elastic quota; returns how kubectl names it."""
    namespace = tenants.namespace(short)
    composite: Json = {"namespaces": [namespace]} if kind == "CompositeElasticQuota" else {}
    tenants.apply(elastic_quota(namespace, **spec, **composite))
    tenants.in_force(kind, namespace)
    return f"{kind.lower()}s.admitter.dev", "quota", f"--namespace={namespace}"


@pytest.mark.parametrize("kind", ["ElasticQuota", "CompositeElasticQuota"])
def test_a_quota_in_use_is_not_deleted_unless_forced(tenants: Tenants, kind: str) -> None:
    what = quota(tenants, kind, "a", min={"cpu": "1"})
    guarded(tenants, *what)
    namespace = tenants.name("a")
    tenants.submit(namespace, "waits", NEVER)
    words = f"{kind} quota is in use: 0 admitted, 1 waiting. Wait until they have ended"
    refused(tenants, words, *what)
    tenants.runs(namespace, "runs", {"cpu": "1"})
    refused(tenants, f"{kind} quota is in use: 1 admitted, 1 waiting.", *what)
    forced(tenants, *what)


def test_a_quota_in_use_goes_with_its_namespace(tenants: Tenants) -> None:
    what = quota(tenants, "ElasticQuota", "a", min={"cpu": "1"})
    guarded(tenants, *what)
    namespace = tenants.name("a")
    tenants.runs(namespace, "runs", {"cpu": "1"})
    refused(tenants, "1 admitted", *what)
    tenants.cluster.run_kubectl("delete", "namespace", namespace, "--wait=false")
    gone = ["get", "namespace", namespace, "--ignore-not-found", "--output=name"]
    eventually(lambda: not tenants.cluster.run_kubectl(*gone).strip(), what="the end of the namespace")


def test_a_flavor_is_not_deleted_that_elastic_quotas_with_workloads_name(tenants: Tenants) -> None:
    flavor = tenants.name("flavor")
    what = ("resourceflavors.admitter.dev", flavor)
    tenants.made.append(what)
    tenants.apply(resource_flavor(flavor, ON_DEMAND))
    guarded(tenants, *what)
    first = quota(tenants, "ElasticQuota", "a", min={"cpu": "1"}, flavors=[flavor])
    quota(tenants, "ElasticQuota", "idle", min={"cpu": "1"}, flavors=[flavor])
    assert answer(tenants, *what) == "", "two quotas without Workloads name it"
    tenants.runs(tenants.name("a"), "runs", {"cpu": "1"})
    says = f"ResourceFlavor {flavor} is in use:"
    refused(tenants, f"{says} 1 elastic quota that names it has Workloads. Wait", *what)
    quota(tenants, "CompositeElasticQuota", "b", min={"cpu": "0"}, flavors=[flavor])
    tenants.submit(tenants.name("b"), "waits", NEVER)
    refused(tenants, f"{says} 2 elastic quotas that name it have Workloads.", *what)
    change = '{"spec": {"flavors": null}}'
    tenants.cluster.run_kubectl("patch", *first, "--type=merge", f"--patch={change}")
    refused(tenants, f"{says} 1 elastic quota", *what)
    tenants.cluster.run_kubectl("delete", "job", "waits", f"--namespace={tenants.name('b')}", "--wait=false")
    eventually(lambda: answer(tenants, *what) == "", what="a flavor that may go")
    tenants.submit(tenants.name("b"), "late", NEVER)
    refused(tenants, f"{says} 1 elastic quota", *what)
    forced(tenants, *what)
