"""An operator of Experiments that knows nothing of Admitter; it needs kubectl and never ends by itself."""

import json
import subprocess
import time
from typing import Any

Json = dict[str, Any]

ACCOUNT = "--as=system:serviceaccount:lab:operator"


def kubectl(*arguments: str, given: Json | None = None) -> str:
    """What kubectl prints to the operator's account."""
    command, text = ["kubectl", ACCOUNT, *arguments], json.dumps(given)
    return subprocess.run(command, input=text, stdout=subprocess.PIPE, text=True, check=True).stdout


def listed(kind: str) -> list[Json]:
    """All objects of a kind."""
    return list(json.loads(kubectl("get", kind, "--all-namespaces", "--output=json"))["items"])


def make(experiment: Json, name: str, template: Json) -> None:
    """Make a pod of a template, with the labels in it, that goes when the Experiment goes."""
    of = experiment["metadata"]
    owner = {"apiVersion": "lab.example.com/v1", "kind": "Experiment", "controller": True}
    metadata = {
        **template.get("metadata", {}),
        "generateName": f"{of['name']}-{name}-",
        "namespace": of["namespace"],
        "ownerReferences": [owner | {"name": of["name"], "uid": of["uid"]}],
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    kubectl("create", "--filename=-", given=pod)


def look(experiment: Json, pods: list[Json]) -> None:
    """Make or delete its pods, and say how many there are."""
    of, spec, before = experiment["metadata"], experiment["spec"], experiment.get("status", {})
    scope = f"--namespace={of['namespace']}"
    now = {"pods": len(pods)}
    if before.get("phase") or "deletionTimestamp" in of:
        return
    if spec.get("suspend"):
        for pod in pods:
            kubectl("delete", "pod", pod["metadata"]["name"], scope, "--wait=false")
    elif not pods:
        make(experiment, "control", spec["control"])
        for _ in range(spec["probes"].get("count", 1)):
            make(experiment, "probe", spec["probes"]["template"])
    elif all(pod["status"].get("phase") == "Succeeded" for pod in pods):
        now = {"pods": 0, "phase": "Done"}
    if now != before:
        change = json.dumps({"status": now})
        kubectl(
            "patch", "experiment", of["name"], scope, "--subresource=status", "--type=merge", f"-p={change}"
        )


while True:
    there = listed("pods")
    for each in listed("experiments"):
        uid = each["metadata"]["uid"]
        look(each, [p for p in there if uid in [o["uid"] for o in p["metadata"].get("ownerReferences", [])]])
    time.sleep(0.5)
