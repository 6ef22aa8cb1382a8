"""What an object remembers of an admission: however much its flavors put in, all of it is taken out again."""

import copy
from typing import Any

from admitter.cache.views import LONGEST_RECORD
from admitter.cache.world import OWN
from admitter.names import INJECTED_ANNOTATION, QUEUE_LABEL
from tests.apiserver.experiments import templates
from tests.apiserver.loop import run
from tests.convergence.lab import EXPERIMENTS, Lab, template
from tests.convergence.scene import TEAM

Json = dict[str, Any]

OWN_TOLERATION: Json = {"key": f"own.example.com/{'t' * 60}", "operator": "Exists"}
MOST = 15
"""Labels and tolerations that a flavor may have, besides the one that it has."""
DOMAIN = f"{'.'.join(['d' * 63] * 3)}/"


def wide(domain: str) -> Json:
    """What a flavor puts in at most, with the longest names in a domain, and the longest values."""
    keys = [f"{domain}{n:02}{'k' * 61}" for n in range(MOST)]
    tolerations = [{"key": each, "operator": "Equal", "value": "v" * 63} for each in keys]
    return {"nodeLabels": dict.fromkeys(keys, "v" * 63), "tolerations": tolerations}


def eight(lab: Lab) -> Json:
    """A user makes an Experiment of eight pod sets that select nodes and tolerate taints; its spec."""
    made = template(1)
    made["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "500m"
    made["spec"] |= {"nodeSelector": {f"own{'s' * 60}": "v" * 63}, "tolerations": [OWN_TOLERATION] * 8}
    probes = [{"name": f"probe-{n}", "copies": 1, "template": copy.deepcopy(made)} for n in range(7)]
    spec = {"state": "Stopped", "control": copy.deepcopy(made), "probes": probes}
    metadata = {"name": "eight", "labels": {QUEUE_LABEL: "a"}}
    lab.server.make(EXPERIMENTS, {"metadata": metadata, "spec": copy.deepcopy(spec)})
    return spec


def reserved(lab: Lab) -> tuple[str, str, str]:
    """What its Workload says of its quota: status, reason and message."""
    conditions = ((lab.workload("eight") or {}).get("status") or {}).get("conditions") or ()
    found: Json = next((each for each in conditions if each["type"] == "QuotaReserved"), {})
    return found.get("status", ""), found.get("reason", ""), found.get("message", "")


def without_empty(spec: Json) -> Json:
    """A spec without empty metadata, which a merge patch leaves behind."""
    made = copy.deepcopy(spec)
    for each in templates({"spec": made}):
        left = each.pop("metadata", {})
        assert not any(left.values())
    return made


def test_eight_pod_sets_are_restored_exactly_after_the_longest_names() -> None:
    async def story() -> None:
        lab = Lab()
        for color in ("red", "blue"):
            lab.server.write(f"{OWN}/resourceflavors/{color}", {"spec": wide("")})
        before = eight(lab)
        await lab.start()
        await lab.settled(lambda: lab.runs("eight") == 8)
        record = lab.job("eight")["metadata"]["annotations"][INJECTED_ANNOTATION]
        assert LONGEST_RECORD / 2 < len(record) <= LONGEST_RECORD
        name = (lab.workload("eight") or {})["metadata"]["name"]
        lab.server.write(f"{OWN}/namespaces/{TEAM}/workloads/{name}", {"spec": {"active": False}})
        await lab.settled(lambda: lab.runs("eight") == 0 and reserved(lab)[0] == "False")
        assert without_empty(lab.job("eight")["spec"]) == before
        lab.server.write(f"{OWN}/namespaces/{TEAM}/workloads/{name}", {"spec": {"active": True}})
        await lab.settled(lambda: lab.is_done("eight"))
        await lab.kill()

    run(story())


def test_what_could_not_be_taken_out_again_is_not_put_in() -> None:
    async def story() -> None:
        lab = Lab()
        for color in ("red", "blue"):
            lab.server.write(f"{OWN}/resourceflavors/{color}", {"spec": wide(DOMAIN)})
        before = eight(lab)
        await lab.start()
        await lab.settled(lambda: reserved(lab)[:2] == ("False", "NotStarted"))
        assert f"at most {LONGEST_RECORD} are read" in reserved(lab)[2]
        assert without_empty(lab.job("eight")["spec"]) == before
        await lab.kill()

    run(story())
