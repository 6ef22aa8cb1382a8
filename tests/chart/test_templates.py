"""What the chart renders to: the bundle by default, and with each value what is wanted of it."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from admitter.cli.configuration import Configuration
from admitter.install.apply import manifests
from tests.chart.helm import CHART, Helm, HelmError

pytestmark = pytest.mark.cluster

Json = dict[str, Any]

ROOT = Path(__file__).parents[2]
OWN_NAMESPACE = "--namespace=admitter-system"
OLD_SERVER = ("--kube-version=1.35.0", "--api-versions=apiregistration.k8s.io/v1/APIService")


def by_name(objects: list[Json]) -> dict[tuple[str, str], Json]:
    found = {(each["kind"], each["metadata"]["name"]): each for each in objects}
    assert len(found) == len(objects)
    return found


def kinds(objects: list[Json]) -> set[str]:
    return {each["kind"] for each in objects}


def pod(objects: list[Json]) -> Json:
    found: Json = by_name(objects)["Deployment", "admitter-controller"]["spec"]["template"]
    return found


def container(objects: list[Json]) -> Json:
    (found,) = pod(objects)["spec"]["containers"]
    assert isinstance(found, dict)
    return found


def configuration(objects: list[Json]) -> Json:
    text = by_name(objects)["ConfigMap", "admitter-controller"]["data"]["config.yaml"]
    written: Json = yaml.safe_load(text)
    Configuration.model_validate(written)
    return written


def test_nothing_is_to_be_complained_about(helm: Helm) -> None:
    assert "1 chart(s) linted, 0 chart(s) failed" in helm.run("lint", "--strict", str(CHART))


def test_by_default_it_is_the_bundle_but_that_definitions_stay(helm: Helm) -> None:
    rendered = by_name(helm.template())
    for (kind, _), manifest in rendered.items():
        if kind == "CustomResourceDefinition":
            assert manifest["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
    assert rendered == by_name(list(manifests(deployment=True)))


def test_without_deployment_it_is_the_bundle_without_deployment(helm: Helm) -> None:
    rendered = by_name(helm.template(values={"deployment": {"enabled": False}}))
    assert rendered.keys() == by_name(list(manifests(deployment=False))).keys()


def test_a_release_in_the_namespace_itself_does_not_make_it(helm: Helm) -> None:
    """Helm, or another client, has made it, and Helm refuses to take what is there already."""
    elsewhere, there = by_name(helm.template("--namespace=elsewhere")), by_name(helm.template(OWN_NAMESPACE))
    assert elsewhere.keys() - there.keys() == {("Namespace", "admitter-system")}
    assert there.items() <= elsewhere.items()


def test_servers_that_lack_a_kind_get_the_rest(helm: Helm) -> None:
    mutating = {"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"}
    assert kinds(helm.template()) - kinds(helm.template(*OLD_SERVER)) == mutating
    assert mutating <= kinds(helm.template("--kube-version=1.35.0")), "no server has said that it is old"
    beta = "admissionregistration.k8s.io/v1beta1"
    turned_on = helm.template(*OLD_SERVER, f"--api-versions={beta}/MutatingAdmissionPolicy")
    versions = {each["apiVersion"] for each in turned_on if each["kind"] in mutating}
    assert versions == {beta}
    assert kinds(turned_on) == kinds(helm.template())


AFFINITY: Json = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
TOLERATION = {"key": "control", "operator": "Exists", "effect": "NoSchedule"}
WEB = {"enabled": True}


def web(helm: Helm, **values: Any) -> dict[tuple[str, str], Json]:
    """What there is more of with the page than without it."""
    rest = {key: value for key, value in values.items() if key != "web"}
    without = by_name(helm.template(values=rest))
    made = by_name(helm.template(values=rest | {"web": WEB | values.get("web", {})}))
    assert without.items() <= made.items()
    return {key: made[key] for key in made.keys() - without.keys()}


def test_the_page_is_that_of_its_manifest_and_off_unless_asked_for(helm: Helm) -> None:
    deployed = by_name(list(yaml.safe_load_all((ROOT / "deploy" / "web.yaml").read_text())))
    assert web(helm) == deployed
    assert {kind for kind, _ in deployed} >= {"ServiceAccount", "NetworkPolicy", "Service", "Deployment"}


def test_the_page_has_its_configuration_though_the_controller_runs_elsewhere(helm: Helm) -> None:
    given = web(helm, deployment={"enabled": False}, configuration={"gpuMemoryGB": 80})
    assert configuration(list(given.values()))["gpuMemoryGB"] == 80
    (volume, history) = given["Deployment", "admitter-web"]["spec"]["template"]["spec"]["volumes"]
    assert ("ConfigMap", volume["configMap"]["name"]) in given
    assert history["emptyDir"]


def test_values_of_the_page_are_its_own_and_those_of_the_image_are_shared(helm: Helm) -> None:
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "2Gi"}}
    own = {"replicas": 2, "port": 8080, "resources": resources, "nodeSelector": {"a": "b"}}
    placed = {"tolerations": [TOLERATION], "affinity": AFFINITY}
    image = {"repository": "example.com/a", "pullPolicy": "Always", "pullSecrets": [{"name": "s"}]}
    given = web(helm, web=own | placed, image=image, configuration={"shards": 2}, apiServerPorts=[8132])
    service, deployment = (given[kind, "admitter-web"]["spec"] for kind in ("Service", "Deployment"))
    assert service["sessionAffinity"] == "ClientIP"
    assert service["ports"] == [{"name": "http", "port": 8080, "targetPort": "http"}]
    assert deployment["replicas"] == 2
    assert deployment["template"]["metadata"]["annotations"].keys() == {"checksum/configuration"}
    pod = deployment["template"]["spec"]
    assert pod.items() >= (placed | {"nodeSelector": {"a": "b"}, "imagePullSecrets": [{"name": "s"}]}).items()
    (container,) = pod["containers"]
    assert (container["image"], container["imagePullPolicy"]) == ("example.com/a:0.1.0", "Always")
    assert container["resources"] == resources
    egress = given["NetworkPolicy", "admitter-web"]["spec"]["egress"]
    assert egress == [{"ports": [{"protocol": "TCP", "port": 8132}]}]


def test_the_history_of_the_page_is_in_a_claim_if_one_is_named(helm: Helm) -> None:
    deployment = web(helm, web={"historyClaim": "page"})["Deployment", "admitter-web"]["spec"]
    assert deployment["strategy"] == {"type": "Recreate"}
    (_, volume) = deployment["template"]["spec"]["volumes"]
    assert volume == {"name": "history", "persistentVolumeClaim": {"claimName": "page"}}


JOURNAL = {"folder": "/var/lib/admitter/journal"}
EFFECTS: list[tuple[Json, Callable[[list[Json]], Any], Any]] = [
    ({"image": {"repository": "example.com/a"}}, lambda o: container(o)["image"], "example.com/a:0.1.0"),
    ({"image": {"tag": "1.2"}}, lambda o: container(o)["image"], "admitter:1.2"),
    ({"image": {"pullPolicy": "Always"}}, lambda o: container(o)["imagePullPolicy"], "Always"),
    (
        {"image": {"pullSecrets": [{"name": "s"}]}},
        lambda o: pod(o)["spec"]["imagePullSecrets"],
        [{"name": "s"}],
    ),
    (
        {"replicas": 3},
        lambda o: by_name(o)["Deployment", "admitter-controller"]["spec"]["replicas"],
        3,
    ),
    ({"replicas": 1}, lambda o: "PodDisruptionBudget" in kinds(o), False),
    (
        {"resources": {"limits": {"memory": "4Gi"}}},
        lambda o: container(o)["resources"]["limits"],
        {"memory": "4Gi"},
    ),
    ({"nodeSelector": {"a": "b"}}, lambda o: pod(o)["spec"]["nodeSelector"], {"a": "b"}),
    ({"tolerations": [TOLERATION]}, lambda o: pod(o)["spec"]["tolerations"], [TOLERATION]),
    ({"affinity": AFFINITY}, lambda o: pod(o)["spec"]["affinity"], AFFINITY),
    ({"configuration": {"requeueBy": "eviction"}}, lambda o: configuration(o)["requeueBy"], "eviction"),
    ({"configuration": {"shards": 4}}, lambda o: configuration(o)["bind"], "0.0.0.0:8080"),
    (
        {"configuration": {"journal": JOURNAL}},
        lambda o: (
            container(o)["volumeMounts"][1],
            pod(o)["spec"]["volumes"][1],
            configuration(o)["journal"],
        ),
        (
            {"name": "journal", "mountPath": JOURNAL["folder"]},
            {"name": "journal", "emptyDir": {}},
            JOURNAL,
        ),
    ),
    (
        {"apiServerPorts": [8132]},
        lambda o: by_name(o)["NetworkPolicy", "admitter-controller"]["spec"]["egress"],
        [{"ports": [{"protocol": "TCP", "port": 8132}]}],
    ),
]


@pytest.mark.parametrize(("values", "look", "wanted"), EFFECTS, ids=[json.dumps(each[0]) for each in EFFECTS])
def test_a_value_has_its_effect(
    helm: Helm, values: Json, look: Callable[[list[Json]], Any], wanted: Any
) -> None:
    assert look(helm.template(values=values)) == wanted


def test_another_configuration_makes_other_pods(helm: Helm) -> None:
    seen = [
        pod(helm.template(values={"configuration": each}))["metadata"].get("annotations")
        for each in ({}, {"shards": 2}, {"shards": 3})
    ]
    assert seen[0] is None
    assert seen[1] != seen[2]


def test_monitoring_is_that_of_the_checkout_and_has_the_labels_that_are_asked_for(helm: Helm) -> None:
    labels = {"release": "prometheus"}
    on: Json = {"enabled": True, "labels": labels}
    values = {
        "serviceMonitor": on | {"interval": "30s"},
        "prometheusRule": on,
        "dashboard": {"enabled": True},
    }
    made = by_name(helm.template(values=values))
    added = {key: made[key] for key in made.keys() - by_name(list(manifests(deployment=True))).keys()}
    monitor, rule, dashboard = (
        added.pop(key)
        for key in (
            ("ServiceMonitor", "admitter"),
            ("PrometheusRule", "admitter"),
            ("ConfigMap", "admitter-dashboard"),
        )
    )
    assert endpoint_reader(added) == "admitter-metrics-reader"
    assert not added
    assert labels.items() <= monitor["metadata"]["labels"].items()
    assert labels.items() <= rule["metadata"]["labels"].items()
    (endpoint,) = monitor["spec"]["endpoints"]
    service = made["Service", "admitter-metrics"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    token = {"credentials": {"name": "admitter-metrics-reader", "key": "token"}}
    port = service["spec"]["ports"][0]["name"]
    assert endpoint == {"port": port, "interval": "30s", "authorization": token}
    assert (
        rule["spec"] == yaml.safe_load((ROOT / "deploy" / "monitoring" / "alerts.yaml").read_text())["spec"]
    )
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert dashboard["data"] == {
        "admitter.json": (ROOT / "deploy" / "monitoring" / "dashboard.json").read_text()
    }


def endpoint_reader(added: dict[tuple[str, str], Json]) -> str:
    """The account that shows its token, and may read metrics; it is taken out of what was added."""
    name = "admitter-metrics-reader"
    account, secret, binding = (
        added.pop((kind, name)) for kind in ("ServiceAccount", "Secret", "ClusterRoleBinding")
    )
    assert secret["metadata"]["annotations"] == {"kubernetes.io/service-account.name": name}
    assert secret["metadata"]["namespace"] == account["metadata"]["namespace"] == "admitter-system"
    assert secret["type"] == "kubernetes.io/service-account-token"
    (subject,) = binding["subjects"]
    assert binding["roleRef"]["name"] == name
    return str(subject["name"])


NOTES = [
    ("elsewhere only holds Helm's record", "--namespace=elsewhere", OWN_NAMESPACE),
    ("kubectl label namespace admitter-system", OWN_NAMESPACE, "--namespace=elsewhere"),
    ("No controller runs in the cluster", "--set=deployment.enabled=false", OWN_NAMESPACE),
    ("port-forward service/admitter-web 8090:80", "--set=web.enabled=true", OWN_NAMESPACE),
    ("rollout status deployment", OWN_NAMESPACE, "--set=deployment.enabled=false"),
]


@pytest.mark.parametrize(("words", "there", "not_there"), NOTES, ids=[each[0] for each in NOTES])
def test_notes_say_what_is_to_be_known_and_only_then(
    helm: Helm, words: str, there: str, not_there: str
) -> None:
    said = [
        helm.run("install", "admitter", str(CHART), "--dry-run=client", option).partition("NOTES:")[2]
        for option in (there, not_there)
    ]
    assert [words in each for each in said] == [True, False]


WRONG: list[tuple[Json, str]] = [
    ({"replicas": 0}, r"at '/replicas': minimum: got 0, want 1"),
    ({"replicas": 12}, r"at '/replicas': maximum: got 12, want 9"),
    ({"replicsa": 3}, r"additional properties 'replicsa' not allowed"),
    ({"image": {"pullPolicy": "Sometimes"}}, r"at '/image/pullPolicy': value must be one of"),
    ({"configuration": {"requeueBy": "never"}}, r"at '/configuration/requeueBy': value must be one of"),
    (
        {"configuration": {"bind": "0.0.0.0:1"}},
        r"at '/configuration': additional properties 'bind' not allowed",
    ),
    ({"configuration": {"shards": 65}}, r"at '/configuration/shards': maximum: got 65, want 64"),
    ({"configuration": {"journal": {"files": 3}}}, r"missing property 'folder'"),
    ({"apiServerPorts": []}, r"at '/apiServerPorts': minItems: got 0, want 1"),
    ({"web": {"replicas": 0}}, r"at '/web/replicas': minimum: got 0, want 1"),
    ({"web": {"port": 70000}}, r"at '/web/port': maximum: got 70,000, want 65,535"),
    ({"web": {"ingress": True}}, r"at '/web': additional properties 'ingress' not allowed"),
    ({"tolerations": [{"keys": "x"}]}, r"at '/tolerations/0': additional properties 'keys' not allowed"),
    ({"serviceMonitor": {"interval": "often"}}, r"at '/serviceMonitor/interval': 'often' does not match"),
    (
        {"serviceMonitor": {"enabled": True}, "deployment": {"enabled": False}},
        r"serviceMonitor.enabled: without deployment.enabled there is no Service",
    ),
]


@pytest.mark.parametrize(("values", "words"), WRONG, ids=[json.dumps(each[0]) for each in WRONG])
def test_a_wrong_value_is_refused_by_its_name(helm: Helm, values: Json, words: str) -> None:
    with pytest.raises(HelmError) as refused:
        helm.template(values=values)
    assert re.search(words, str(refused.value)), str(refused.value)
