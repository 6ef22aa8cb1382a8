"""What runs the controller in a cluster: the image's recipe, the Deployment, and what stands around it."""

import fnmatch
import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

from admitter.cli.configuration import Configuration
from admitter.controllers.lifecycle import STOP_SECONDS
from admitter.install.apply import manifests
from admitter.names import NAMESPACE

ROOT = Path(__file__).parents[1]
BUNDLE = {m["kind"]: m for m in manifests(deployment=True) if m["metadata"].get("namespace") == NAMESPACE}
DEPLOYMENT: Any = BUNDLE["Deployment"]["spec"]
POD: Any = DEPLOYMENT["template"]["spec"]
(CONTAINER,) = POD["containers"]
SELECTED = DEPLOYMENT["selector"]["matchLabels"]

Instruction = tuple[str, str]


def stages() -> list[list[Instruction]]:
    """The instructions of each stage of the image; lines that go on are joined."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "Containerfile").read_text())
    found: list[list[Instruction]] = []
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word == "FROM":
            found.append([])
        if found and word and not word.startswith("#"):
            found[-1].append((word, rest.strip()))
    return found


BUILD, FINAL = stages()


def of(stage: list[Instruction], word: str) -> list[str]:
    return [rest for each, rest in stage if each == word]


def test_both_stages_have_one_pinned_python_that_the_package_supports() -> None:
    first = next(line for line in (ROOT / "Containerfile").read_text().splitlines() if line.startswith("ARG"))
    version = re.fullmatch(r"ARG PYTHON=(\d+)\.(\d+)\.\d+-slim-[a-z]+", first)
    assert version is not None
    assert (int(version[1]), int(version[2])) >= (3, 11)
    assert [line.split()[0] for line in of(BUILD, "FROM") + of(FINAL, "FROM")] == ["python:${PYTHON}"] * 2


def test_what_is_copied_is_there_and_not_left_out() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    allowed = [line[1:] for line in ignored if line.startswith("!")]
    copied = [line.split() for line in of(BUILD, "COPY")]
    assert copied
    for *sources, _target in copied:
        for source in sources:
            assert (ROOT / source).exists(), source
            assert source == "." or any(fnmatch.fnmatch(source.rstrip("/"), name) for name in allowed), source
    for name in allowed:
        assert (ROOT / name).exists(), name


def test_all_that_is_installed_from_elsewhere_has_its_hash_and_is_locked() -> None:
    installing = [part for line in of(BUILD, "RUN") for part in line.split("&&") if " install " in part]
    assert len(installing) == 3
    for part in installing:
        required = re.findall(r"--requirement (\S+)", part)
        assert all((ROOT / file).exists() for file in required)
        assert ("--require-hashes" in part) == bool(required)
        assert bool(required) != ("--no-index" in part)


def test_the_last_stage_builds_nothing_and_has_no_installer() -> None:
    assert of(FINAL, "COPY") == ["--from=build /opt/admitter /opt/admitter"]
    assert of(FINAL, "RUN") == ["pip uninstall --yes pip setuptools wheel"]
    assert "--without-pip /opt/admitter" in " ".join(of(BUILD, "RUN"))


def test_it_runs_as_the_user_that_the_deployment_names() -> None:
    (user,) = of(FINAL, "USER")
    security = POD["securityContext"]
    assert user == f"{security['runAsUser']}:{security['runAsGroup']}"
    assert security["runAsUser"] > 0


def test_it_runs_the_command_of_the_package() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    (entry,) = of(FINAL, "ENTRYPOINT")
    assert entry == f'["{next(iter(scripts))}"]'
    assert "command" not in CONTAINER
    assert of(FINAL, "ENV")[0].startswith("PATH=/opt/admitter/bin:")


def test_the_container_can_do_nothing_that_it_need_not() -> None:
    assert POD["securityContext"]["runAsNonRoot"] is True
    assert POD["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert CONTAINER["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert all(mount["readOnly"] for mount in CONTAINER["volumeMounts"])


def test_the_file_that_it_reads_is_the_one_that_is_mounted() -> None:
    (mount,), (volume,) = CONTAINER["volumeMounts"], POD["volumes"]
    assert volume == {"name": mount["name"], "configMap": {"name": BUNDLE["ConfigMap"]["metadata"]["name"]}}
    (file,) = BUNDLE["ConfigMap"]["data"]
    assert CONTAINER["args"] == ["run", "--config", f"{mount['mountPath']}/{file}"]


def test_two_replicas_of_which_one_stays_whatever_happens_to_a_node() -> None:
    assert DEPLOYMENT["replicas"] == 2
    assert DEPLOYMENT["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    budget = BUNDLE["PodDisruptionBudget"]["spec"]
    assert (budget["minAvailable"], budget["selector"]["matchLabels"]) == (1, SELECTED)
    spread = POD["topologySpreadConstraints"]
    assert {each["topologyKey"] for each in spread} == {
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
    }
    assert all(each["labelSelector"]["matchLabels"] == SELECTED for each in spread)


def test_critical_pods_may_run_here_wherever_a_cluster_asks_for_a_quota_of_them() -> None:
    (scope,) = BUNDLE["ResourceQuota"]["spec"]["scopeSelector"]["matchExpressions"]
    assert scope["values"] == [POD["priorityClassName"]]
    rolling = DEPLOYMENT["replicas"] + DEPLOYMENT["strategy"]["rollingUpdate"]["maxSurge"]
    assert int(BUNDLE["ResourceQuota"]["spec"]["hard"]["pods"]) > rolling


def test_probes_and_metrics_lead_to_the_one_port_and_nothing_else_comes_in() -> None:
    (port,) = CONTAINER["ports"]
    written = yaml.safe_load(BUNDLE["ConfigMap"]["data"]["config.yaml"])
    configured = Configuration.model_validate(written)
    assert configured.bind == f"0.0.0.0:{port['containerPort']}"
    for probe, path in (("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
        assert CONTAINER[probe]["httpGet"] == {"path": path, "port": port["name"]}
    service, policy = BUNDLE["Service"]["spec"], BUNDLE["NetworkPolicy"]["spec"]
    assert [each["targetPort"] for each in service["ports"]] == [port["name"]]
    assert service["selector"] == policy["podSelector"]["matchLabels"] == SELECTED
    assert policy["ingress"] == [{"ports": [{"protocol": "TCP", "port": port["name"]}]}]
    assert set(policy["policyTypes"]) == {"Ingress", "Egress"}


def test_it_has_time_to_stop_in_order() -> None:
    assert POD["terminationGracePeriodSeconds"] >= 2 * STOP_SECONDS


def test_without_deployment_all_of_it_is_left_out_and_nothing_else() -> None:
    running = yaml.safe_load_all((ROOT / "manifests" / "40-deployment.yaml").read_text())
    every, without = list(manifests(deployment=True)), list(manifests(deployment=False))
    assert [manifest for manifest in every if manifest not in without] == list(running)
