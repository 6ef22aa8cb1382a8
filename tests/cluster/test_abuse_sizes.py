"""Objects as large as the API server takes them, and as many: the memory of the controller is bounded."""

import asyncio
import logging
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, islice
from pathlib import Path

import orjson
import pytest
import yaml

from admitter.api import weights
from admitter.cache.room import OWN_BYTES
from admitter.cache.views import LONGEST_TEMPLATE
from admitter.client.transport import HttpTransport
from admitter.names import NAMESPACE, SERVICE_ACCOUNT
from admitter.quantities.amounts import parse_quantity
from admitter.sandbox.control_plane import ControlPlane
from tests.cluster.abuse import Attacker
from tests.cluster.objects import Json, job, local_queue, workload
from tests.cluster.team import Team
from tests.cluster.waiting import eventually
from tests.scale import examples, scaled

pytestmark = pytest.mark.cluster

DEPLOYMENT = Path(__file__).parents[2] / "manifests" / "40-deployment.yaml"
NAMESPACES = 20
PART = scaled(8, 1)
"""The controller has an eighth of its room for large objects, or all of it, and as much memory for them."""
LARGEST = examples(640)
"""More than the 492 that there is room for then: the last namespaces get their own part only."""
AT_A_TIME = 32

log = logging.getLogger("abuse")


def affinity(hosts: int, first: int = 0) -> Json:
    """One that keeps away from so many nodes, with names as long as a label's value may be."""
    values = [f"{number:063d}" for number in range(first, first + hosts)]
    parts = [values[begin : begin + 200] for begin in range(0, hosts, 200)]
    expressions = [{"key": "kubernetes.io/hostname", "operator": "NotIn", "values": part} for part in parts]
    required = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def heavy(namespace: str, name: str, hosts: int, first: int = 0) -> Json:
    made = workload(namespace, name)
    made["spec"]["podSets"][0]["affinity"] = affinity(hosts, first)
    return made


def largest(hosts: int) -> int:
    """Bytes of the spec of such a Workload."""
    return len(orjson.dumps(heavy("a", "a", hosts)["spec"]))


def most_hosts() -> int:
    """With how many a Workload is as heavy as it may be."""
    return next(
        hosts
        for hosts in range(1000, 0, -1)
        if weights.weight(heavy("a", "a", hosts)["spec"]["podSets"]) <= weights.HEAVIEST
    )


def test_a_workload_that_says_too_much_is_refused_and_one_that_says_less_is_not(attacker: Attacker) -> None:
    most = most_hosts()
    with attacker.refused("names and values may weigh"):
        attacker.create(heavy(attacker.namespace, "heavy", most + 1))
    attacker.create(heavy(attacker.namespace, "heaviest", most))
    long = workload(attacker.namespace, "long")
    long["spec"]["podSets"][0]["requests"]["example.com/" + "x" * 500_000] = "1"
    with attacker.refused("names and values may weigh"):
        attacker.create(long)


@pytest.mark.parametrize(
    ("hosts", "words"),
    [(500, "names and values may weigh"), (15_000, f"at most {LONGEST_TEMPLATE} are read")],
    ids=["too heavy for a Workload", "too large to be kept"],
)
def test_a_job_that_says_too_much_is_told_so(team: Team, attacker: Attacker, hosts: int, words: str) -> None:
    team.offers({"cpu": {"on-demand": "4"}})
    attacker.create(job(team.namespace, "heavy", pod={"affinity": affinity(hosts)}))
    eventually(lambda: words in team.events("heavy").get("InvalidRequests", ""), what="the event")
    attacker.create(job(team.namespace, "sound"))
    attacker.undone(lambda: team.state("sound") == "Finished", "a sound Job beside it")
    assert attacker.job("heavy")["spec"]["suspend"]


def limit() -> int:
    """Bytes of memory that the Deployment gives the controller."""
    manifests = yaml.safe_load_all(DEPLOYMENT.read_text())
    (deployment,) = (each for each in manifests if each["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return int(parse_quantity(container["resources"]["limits"]["memory"]))


@contextmanager
def running(cluster: ControlPlane, folder: Path) -> "Iterator[subprocess.Popen[bytes]]":
    """A controller with its part of the room, for as long as a block lasts."""
    folder.mkdir()
    account = cluster.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT, folder / "kubeconfig")
    command = [sys.executable, "-m", "tests.cluster.part_of_room", str(PART), "run", "--bind=127.0.0.1:0"]
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen([*command, f"--kubeconfig={account}"], stderr=log) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def peak(process: "subprocess.Popen[bytes]") -> int:
    """Bytes of memory that it has had at most."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024


def space(name: str, team: Team) -> Json:
    """A namespace that the team's queues select."""
    labels = {"team": team.namespace}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def flooding(number: int, names: list[str], hosts: int) -> Json:
    """One of the flood; no two have a name of a node in common."""
    return heavy(names[number % len(names)], f"w{number:05}", hosts, number * hosts)


async def create(cluster: ControlPlane, manifests: Iterator[Json]) -> None:
    async with await HttpTransport.connect(cluster.kubeconfig, cluster.context) as transport:

        async def work() -> None:
            for each in manifests:
                namespace = each["metadata"]["namespace"]
                await transport.create(f"/apis/admitter.dev/v1alpha1/namespaces/{namespace}/workloads", each)

        await asyncio.gather(*(work() for _ in range(AT_A_TIME)))


def reasons(team: Team, namespace: str) -> Counter[str]:
    """How many Workloads of a namespace wait for each reason; without one yet under an empty text."""
    found = team.cluster.read("workloads.admitter.dev", f"--namespace={namespace}")["items"]
    return Counter(each.get("status", {}).get("reason", "") for each in found)


def least(cluster: ControlPlane, team: Team, folder: Path) -> int:
    """Bytes of memory of a controller that has started a Job, and has nothing large to keep."""
    with running(cluster, folder) as process:
        team.apply(job(team.namespace, "before"))
        eventually(lambda: team.state("before") == "Finished", what="a Job before the flood")
        return peak(process)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_any_number_of_the_largest_fits_into_the_deployments_memory(
    own: ControlPlane, own_team: Team, tmp_path: Path
) -> None:
    """Those that came last are parked, others' Jobs run, and what is parked comes in when there is room."""
    own_team.offers({"cpu": {"on-demand": "4"}})
    without = least(own, own_team, tmp_path / "least")
    full = own_team.offers({"cpu": {"on-demand": "0"}}, name="full", flavors=False)
    names = [f"flood-{number:02}" for number in range(NAMESPACES)]
    own_team.apply(*(space(name, own_team) for name in names), *(local_queue(name, full) for name in names))
    hosts = most_hosts()
    asyncio.run(create(own, (flooding(number, names, hosts) for number in range(LARGEST))))
    with running(own, tmp_path / "largest") as process:
        own_team.apply(job(own_team.namespace, "sound"))
        eventually(
            lambda: own_team.state("sound") == "Finished", timeout=300, what="a sound Job beside the flood"
        )
        last = names[-1]
        eventually(lambda: not reasons(own_team, last)[""], timeout=420, what="a reason for each of the last")
        held = reasons(own_team, last)["NeverFits"]
        assert held == OWN_BYTES // largest(hosts)
        own.run_kubectl(
            *(
                "delete",
                "workloads.admitter.dev",
                *islice((f"w{n:05}" for n in count(NAMESPACES - 1, NAMESPACES)), held),
            ),
            *(f"--namespace={last}", "--wait=false"),
        )
        eventually(
            lambda: reasons(own_team, last)["NeverFits"] == held,
            timeout=420,
            what="as many others to come in",
        )
        assert process.poll() is None, "the controller has ended"
        log.info("peak %d MB, %d MB without", peak(process) // 10**6, without // 10**6)
        assert peak(process) < without + (limit() - without) // PART
