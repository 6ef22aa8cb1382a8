"""Fixtures of ring 2: Admitter installed once a test run, its controller, and a team for each test."""

import asyncio
import json
import os
import re
from collections.abc import Generator, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest
from filelock import FileLock
from rich.console import Console

from admitter.client.transport import HttpTransport
from admitter.install.apply import install, install_kinds
from admitter.install.kinds import chosen
from admitter.names import GROUP
from admitter.sandbox.cluster import Cluster, KubectlError
from admitter.sandbox.control_plane import ControlPlane
from admitter.sandbox.operators.definitions import chosen as chosen_operators
from admitter.sandbox.operators.running import run_operators
from tests.cluster import aftermath
from tests.cluster.abuse import Attacker
from tests.cluster.controller import Controller
from tests.cluster.described import leader_worker_set
from tests.cluster.direct import DirectCluster, DirectPlane
from tests.cluster.elastic import Tenants
from tests.cluster.emptied import leave
from tests.cluster.objects import cluster_queue, job
from tests.cluster.operated import ASKED, KINDS, Kind
from tests.cluster.people import may_create
from tests.cluster.policies import await_validation
from tests.cluster.team import Team
from tests.cluster.waiting import eventually
from tests.conftest import SHARING, group_of
from tests.programs import KUBERNETES


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of kinds with operators take long: what these and their kinds make keeps the API server busy."""
    for item in items:
        if "operators" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.long)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what is in the namespace of a test that fails; it is deleted after that."""
    report = yield
    given = getattr(item, "funcargs", {})
    if call.when == "call" and report.failed and {"installed", "namespace"} <= given.keys():
        found = aftermath.told(given["installed"], given["namespace"])
        report.sections.append(("What the namespace has", found))
    return report


@pytest.fixture(scope="session")
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of the test run share."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if hasattr(request.config, "workerinput") else folder


@pytest.fixture(scope="session")
def owner(request: pytest.FixtureRequest) -> int:
    """The number of the process with which the test run ends."""
    return os.getppid() if hasattr(request.config, "workerinput") else os.getpid()


@pytest.fixture(scope="session")
def installed(control_plane: Cluster, shared: Path) -> Cluster:
    """The cluster with Admitter installed, its controller left out."""
    with FileLock(shared / "installed.lock"):
        if not (shared / "installed").exists():
            asyncio.run(_install(control_plane))
            (shared / "installed").touch()
    return control_plane


async def _install(cluster: Cluster) -> None:
    async with await HttpTransport.connect(cluster.kubeconfig, cluster.context) as transport:
        await install(transport, deployment=False)
    eventually(lambda: _is_at_work(cluster), what="policies and roles that are at work")
    await_validation(cluster)


def _is_at_work(cluster: Cluster) -> bool:
    """Whether the API server acts by what has been installed: it takes it up a moment later."""
    rules = cluster.read("clusterrole", "edit")["rules"]
    if not any(GROUP in rule["apiGroups"] for rule in rules):
        return False
    command = ("create", "--dry-run=server", "--output=json", "--filename=-")
    with suppress(KubectlError):
        orders = {"cpu": {"a": "1", "b": "1"}, "memory": {"b": "1", "a": "1"}}
        cluster.run_kubectl(*command, content=json.dumps(cluster_queue("tried", orders)))
        return False
    kinds = cluster.run_kubectl("api-resources", "--api-group=admissionregistration.k8s.io", "--output=name")
    tried = job("default", "tried", suspend=False)
    made = json.loads(cluster.run_kubectl(*command, content=json.dumps(tried)))
    return bool(made["spec"]["suspend"]) or "mutatingadmissionpolicies" not in kinds


@pytest.fixture(scope="session")
def operators(installed: Cluster, shared: Path) -> Cluster:
    """The cluster with the operators of JobSets, RayClusters and TrainJobs, and those that are asked for."""
    if not isinstance(installed, ControlPlane):
        pytest.skip("operators run beside the sandbox only")
    with FileLock(shared / "operators.lock"):
        run_operators(installed, chosen_operators(["kuberay", "trainer", *ASKED]), Console(stderr=True))
    return installed


@pytest.fixture(scope="session")
def leader_worker_sets(installed: Cluster, shared: Path) -> Cluster:
    """The cluster with the operator of LeaderWorkerSets."""
    if not isinstance(installed, ControlPlane):
        pytest.skip("operators run beside the sandbox only")
    with FileLock(shared / "operators.lock"):
        run_operators(installed, chosen_operators(["lws"]), Console(stderr=True))
    eventually(partial(_can_be_made, installed), what="policies that know the new kind")
    return installed


def _can_be_made(cluster: Cluster) -> bool:
    """Whether a LeaderWorkerSet is: a policy that came before its kind looks for that twice a minute."""
    content = json.dumps(leader_worker_set("default", "any"))
    with suppress(KubectlError):
        cluster.run_kubectl("create", "--dry-run=server", "--filename=-", content=content)
        return True
    return False


@pytest.fixture(scope="session")
def described(operators: Cluster, shared: Path) -> Cluster:
    """The cluster with operators, and with the JobKinds of what they work on."""
    with FileLock(shared / "described.lock"):
        if not (shared / "described").exists():
            asyncio.run(_describe(operators))
            for kind in KINDS:
                eventually(partial(_is_suspended, operators, kind), what=f"policies for each {kind.resource}")
            await_validation(operators)
            (shared / "described").touch()
    return operators


async def _describe(cluster: Cluster) -> None:
    async with await HttpTransport.connect(cluster.kubeconfig, cluster.context) as transport:
        await install_kinds(transport, chosen(",".join(kind.job_kind or kind.resource for kind in KINDS)))


def _is_suspended(cluster: Cluster, kind: Kind) -> bool:
    """Whether a policy of the API server suspends an object when it is created."""
    options = ("--dry-run=server", "--output=json", "--filename=-")
    made = kind.alone("default", "any") if kind.alone else kind.made("default", "any")[-1]
    return kind.stopped(json.loads(cluster.run_kubectl("create", *options, content=json.dumps(made))))


@pytest.fixture(scope="session")
def shared_controller(installed: Cluster, shared: Path, owner: int) -> Controller:
    """The controller of the run."""
    folder = shared / "controller"
    with FileLock(shared / "controller.lock"):
        return Controller(folder) if folder.exists() else Controller.start(folder, installed, owner)


@pytest.fixture
def controller(shared_controller: Controller) -> Iterator[Controller]:
    """The controller, which all tests of the run share; whatever they do, only their killing ends it."""
    crashes = shared_controller.crashes
    yield shared_controller
    assert shared_controller.crashes == crashes, "the controller has ended by itself"


@pytest.fixture
def bare(tmp_path: Path, owner: int) -> Iterator[ControlPlane]:
    """A control plane of the test's own, with nodes and without Admitter."""
    with DirectPlane.start(tmp_path / "bare", owner=owner, kubernetes=KUBERNETES) as started:
        yield started


@pytest.fixture(scope="module")
def own(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, owner: int
) -> Iterator[ControlPlane]:
    """A cluster with Admitter installed and no controller, which the tests of a module share.

    Some modules share one, so that fewer control planes start; it ends with the last of them.
    """
    name = request.path.name
    group = group_of(name) or name
    if group not in _clusters:
        where = tmp_path_factory.mktemp("own") / "plane"
        _clusters[group] = DirectPlane.start(where, owner=owner, kubernetes=KUBERNETES)
    asyncio.run(_install(_clusters[group]))  # also if another module has removed parts of it
    yield _clusters[group]
    _done.add(name)
    asked = {item.path.name for item in request.session.items if "own" in getattr(item, "fixturenames", ())}
    if asked.intersection(SHARING.get(group, (name,))) <= _done:
        _clusters.pop(group).stop()


_clusters: dict[str, ControlPlane] = {}
"""Those that run, by the group of modules or the module that uses them."""
_done: set[str] = set()
"""Modules that need no cluster any more."""


@pytest.fixture(scope="module")
def vacant(tmp_path_factory: pytest.TempPathFactory, owner: int) -> Iterator[Cluster]:
    """A cluster, at first without Admitter, which the tests of a module share."""
    where = tmp_path_factory.mktemp("vacant") / "plane"
    with DirectPlane.start(where, owner=owner, kubernetes=KUBERNETES) as started:
        yield started


@pytest.fixture
def own_team(own: ControlPlane, tmp_path: Path) -> Iterator[Team]:
    """A team in the cluster of its module, without quota; the controller is the module's affair."""
    name = f"own-{uuid4().hex[:6]}"
    own.run_kubectl("create", "namespace", name)
    own.run_kubectl("label", "namespace", name, f"team={name}")
    made = Team(own, name, Controller(tmp_path / "controller"))
    yield made
    made.close()
    leave(own, name)


@pytest.fixture
def namespace(installed: Cluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of the test's own, with its name as the label `team`."""
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower())[:24].strip("-")
    name = f"{words}-{uuid4().hex[:6]}"
    installed.run_kubectl("create", "namespace", name)
    installed.run_kubectl("label", "namespace", name, f"team={name}")
    yield name
    leave(installed, name)


@pytest.fixture
def user(installed: Cluster, namespace: str, tmp_path: Path) -> Cluster:
    """The cluster as seen by a user that may edit the test's namespace."""
    scope = f"--namespace={namespace}"
    installed.run_kubectl("create", "serviceaccount", "user", scope)
    account = f"--serviceaccount={namespace}:user"
    installed.run_kubectl("create", "rolebinding", "user", "--clusterrole=edit", account, scope)
    kubeconfig = installed.service_account_kubeconfig(namespace, "user", tmp_path / "user")
    made = DirectCluster(kubectl=installed.kubectl, kubeconfig=kubeconfig)
    eventually(lambda: may_create(made, namespace, "jobs"), what="an API server that knows the role")
    return made


@pytest.fixture
def attacker(user: Cluster, namespace: str) -> Attacker:
    """The same user, up to no good."""
    return Attacker(user, namespace)


@pytest.fixture
def tenants(installed: Cluster, controller: Controller, shared: Path) -> Iterator[Tenants]:
    """Namespaces of the test's own; no other test uses GPUs by elastic quotas meanwhile."""
    with FileLock(shared / "elastic.lock"):
        made = Tenants(installed, controller, f"eq-{uuid4().hex[:6]}")
        yield made
        made.close()


@pytest.fixture
def team(installed: Cluster, controller: Controller, namespace: str) -> Iterator[Team]:
    """A team with the namespace of the test; what it makes is deleted in the end."""
    made = Team(installed, namespace, controller)
    yield made
    made.close()
