"""Kueue's Cohorts and its configuration, which speak of more than one object."""

from pathlib import Path
from typing import Any

import pytest

from admitter.importers.translation import Fidelity
from tests.importers.importing import imported, made, outcomes, refusals, words
from tests.importers.test_kueue_document import DEFAULT, decided, job, queue
from tests.simulate.test_simulate import states


def cohort(name: str, parent: str = "", quota: str = "", version: str = "v1beta1", more: str = "") -> str:
    """A Cohort with one quota of CPUs in the default flavor."""
    field = "parentName" if version == "v1beta2" else "parent"
    group = (
        f"resourceGroups: [{{coveredResources: [cpu], flavors: [{{name: default, resources: [{quota}]}}]}}]"
        if quota
        else ""
    )
    return f"""
    apiVersion: kueue.x-k8s.io/{version}
    kind: Cohort
    metadata: {{name: {name}}}
    spec:
      {f"{field}: {parent}" if parent else ""}
      {group}
      {more}
    """


def cluster_queue(name: str, parent: str, quota: str, more: str = "") -> str:
    return f"""
    apiVersion: kueue.x-k8s.io/v1beta2
    kind: ClusterQueue
    metadata: {{name: {name}}}
    spec:
      cohortName: {parent}
      namespaceSelector: {{}}
      resourceGroups: [{{coveredResources: [cpu], flavors: [{{name: default, resources: [{quota}]}}]}}]
      {more}
    """


def configuration(text: str, version: str = "v1beta1") -> str:
    lines = "\n".join(f"    {line}" for line in text.splitlines())
    return f"    apiVersion: config.kueue.x-k8s.io/{version}\n    kind: Configuration\n{lines}\n"


CPU = "{name: cpu, nominalQuota: 4}"


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1", "v1beta2"])
def test_a_cohort_has_its_parent_quota_and_weight(version: str) -> None:
    quota = "{name: cpu, nominalQuota: 5, lendingLimit: 2}"
    into = imported("kueue", cohort("team", "org", quota, version, "fairSharing: {weight: 3}"))
    assert made(into, "Cohort")["spec"] == {
        "parent": "org",
        "resources": [
            {"name": "cpu", "flavors": [{"name": "default", "quota": {"min": 5, "lendingLimit": 2}}]}
        ],
        "fairSharing": {"weight": 3},
    }
    assert into.worst is Fidelity.TRANSLATED


def test_what_a_cohort_borrows_becomes_the_most_that_is_used_below_it(tmp_path: Path) -> None:
    into = imported(
        "kueue",
        DEFAULT,
        cohort("org"),
        cohort("left", "org", "{name: cpu, nominalQuota: 1, borrowingLimit: 3}"),
        cohort("below", "left", "{name: cpu, nominalQuota: 2}"),
        cluster_queue("a", "left", CPU),
        cluster_queue("b", "below", CPU),
        cluster_queue("c", "org", "{name: cpu, nominalQuota: 10}"),
        queue("a", "a"),
    )
    quota = made(into, "Cohort", "left")["spec"]["resources"][0]["flavors"][0]["quota"]
    assert quota == {"min": 1, "max": "14"}, "1 of its own, 4 of each queue, 2 below, and 3"
    path = "spec.resourceGroups[0].flavors[0].resources[0].borrowingLimit"
    assert outcomes(into, "Cohort left")[path] == "approximated"
    result = decided(tmp_path, into, job("a", "most", {"cpu": "14"}, 1), job("a", "more", {"cpu": "1"}, 2))
    assert states(result) == {"most": "Admitted", "more": "Pending"}


def test_a_queue_that_is_refused_does_not_count_in_the_limit_of_its_cohort() -> None:
    into = imported(
        "kueue",
        cohort("team", "org", "{name: cpu, nominalQuota: 1, borrowingLimit: 3}"),
        cluster_queue("good", "team", CPU),
        cluster_queue("good", "team", CPU),
        cluster_queue("bad", "team", CPU, "queueingStrategy: LIFO"),
    )
    assert made(into, "Cohort")["spec"]["resources"][0]["flavors"][0]["quota"]["max"] == "8"
    assert set(refusals(into)) == {("ClusterQueue good", ""), ("ClusterQueue bad", "")}


def test_a_circle_of_cohorts_comes_to_an_end() -> None:
    quota = "{name: cpu, nominalQuota: 1, borrowingLimit: 3}"
    into = imported("kueue", cohort("a", "b", quota), cohort("b", "a", quota))
    assert [m["metadata"]["name"] for m in into.manifests] == ["a", "b"]


def test_a_cohort_that_is_given_twice_counts_once() -> None:
    into = imported("kueue", cohort("a"), cohort("a", "b"))
    assert made(into, "Cohort", "a")["spec"] == {}
    assert "already" in refusals(into)["Cohort a", ""]


def test_fair_sharing_is_enabled_at_the_top_of_each_tree() -> None:
    given = [
        cohort("given", more="fairSharing: {weight: 2}"),
        cohort("inner", "named-by-a-cohort"),
        cluster_queue("a", "given", CPU),
        cluster_queue("b", "inner", CPU),
        cluster_queue("c", "named-by-a-queue", CPU, "preemption: {reclaimWithinCohort: Any}"),
    ]
    into = imported("kueue", configuration("fairSharing: {enable: true}"), *given)
    specs = {m["metadata"]["name"]: m["spec"] for m in into.manifests if m["kind"] == "Cohort"}
    assert specs == {
        "given": {"fairSharing": {"weight": 2, "enabled": True}},
        "inner": {"parent": "named-by-a-cohort"},
        "named-by-a-cohort": {"fairSharing": {"enabled": True}},
        "named-by-a-queue": {"fairSharing": {"enabled": True}},
    }
    assert outcomes(into, "ClusterQueue c")["spec.preemption.reclaimWithinCohort"] == "approximated"
    without = imported("kueue", *given)
    assert outcomes(without, "ClusterQueue c")["spec.preemption.reclaimWithinCohort"] == "translated"
    assert {m["metadata"]["name"] for m in without.manifests if m["kind"] == "Cohort"} == {"given", "inner"}


@pytest.mark.parametrize(
    ("section", "version", "enabled"),
    [
        ("fairSharing: {enable: true}", "v1beta1", True),
        ("fairSharing: {enable: false}", "v1beta1", False),
        ("fairSharing: {preemptionStrategies: [LessThanInitialShare]}", "v1beta1", False),
        ("fairSharing: {preemptionStrategies: [LessThanInitialShare]}", "v1beta2", True),
        ("fairSharing: {}", "v1beta2", True),
        ("namespace: x", "v1beta2", False),
    ],
)
def test_what_enables_fair_sharing(section: str, version: str, *, enabled: bool) -> None:
    into = imported("kueue", configuration(section, version), cohort("top"))
    assert made(into, "Cohort")["spec"].get("fairSharing", {}).get("enabled", False) is enabled
    assert not refusals(into)


WHOLE: dict[str, Any] = {
    "namespace": ("kueue-system", "translated"),
    "health": ("{healthProbeBindAddress: ':8081'}", "translated"),
    "leaderElection": ("{leaderElect: true}", "translated"),
    "internalCertManagement": ("{enable: true}", "translated"),
    "manageJobsWithoutQueueName": ("true", "approximated"),
    "managedJobsNamespaceSelector": ("{matchLabels: {a: b}}", "approximated"),
    "waitForPodsReady": ("{enable: true, timeout: 5m}", "refused"),
    "multiKueue": ("{gcInterval: 1m}", "refused"),
    "admissionFairSharing": ("{usageHalfLifeTime: 1h}", "refused"),
    "featureGates": ("{PartialAdmission: true}", "approximated"),
    "objectRetentionPolicies": ("{workloads: {afterFinished: 1h}}", "approximated"),
    "somethingNew": ("5", "refused"),
}


@pytest.mark.parametrize("key", WHOLE)
def test_each_section_of_the_configuration_is_accounted_for(key: str) -> None:
    value, outcome = WHOLE[key]
    into = imported("kueue", configuration(f"{key}: {value}"))
    assert outcomes(into, "Configuration of text: document 1") == {key: outcome}
    assert into.manifests == []


def test_frameworks_and_resources_are_accounted_for_one_by_one() -> None:
    text = """
integrations:
  frameworks: [batch/job, pod, leaderworkerset.x-k8s.io/leaderworkerset]
  labelKeysToCopy: [team]
resources:
  excludeResourcePrefixes: [example.com]
  transformations: [{input: a, outputs: {b: 1}}]
waitForPodsReady: {enable: false}
manageJobsWithoutQueueName: false
"""
    into = imported("kueue", configuration(text))
    assert outcomes(into, "Configuration of text: document 1") == {
        "integrations.frameworks[0]": "translated",
        "integrations.frameworks[1]": "approximated",
        "integrations.frameworks[2]": "refused",
        "integrations.labelKeysToCopy": "refused",
        "resources.excludeResourcePrefixes": "refused",
        "resources.transformations": "refused",
        "waitForPodsReady": "translated",
        "manageJobsWithoutQueueName": "translated",
    }


def test_a_configuration_is_found_in_its_config_map() -> None:
    text = """
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: kueue-manager-config, namespace: kueue-system}
        data:
          controller_manager_config.yaml: |
            apiVersion: config.kueue.x-k8s.io/v1beta1
            kind: Configuration
            fairSharing: {enable: true}
            waitForPodsReady: {enable: true}
    """
    into = imported("kueue", text, cohort("top"))
    assert made(into, "Cohort")["spec"] == {"fairSharing": {"enabled": True}}
    place = "Configuration of ConfigMap kueue-system/kueue-manager-config: controller_manager_config.yaml"
    assert outcomes(into, place) == {"fairSharing.enable": "translated", "waitForPodsReady": "refused"}


def test_a_config_map_with_something_else_in_it_is_refused() -> None:
    text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: 'x: [', b: 'kind: Other'}}"
    into = imported("kueue", text)
    assert "is no YAML" in words(into, "ConfigMap c", "data.a")
    assert "not known" in words(into, "ConfigMap c")
