"""The cluster that the tests of ring 2 run on: the sandbox, or any other one that the environment names."""

import gc
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from rich.console import Console
from xdist.remote import Producer
from xdist.scheduler.loadscope import LoadScopeScheduling

from admitter.cli import estimating
from admitter.sandbox.build import ensure_programs
from admitter.sandbox.cluster import Cluster
from admitter.sandbox.control_plane import ControlPlane
from admitter.sandbox.errors import SandboxError
from tests.chart.helm import Helm, ensure_helm
from tests.cluster.direct import DirectPlane
from tests.programs import KUBERNETES, build
from tests.scale import THOROUGH

settings.register_profile(  # how long an example takes is not what is tested
    "admitter", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=not THOROUGH
)
settings.load_profile("admitter")

_KUBECONFIG = "ADMITTER_TEST_KUBECONFIG"
_CONTEXT = "ADMITTER_TEST_CONTEXT"
RING_1 = "not cluster"
"""How `-m` begins for the tests that need no cluster."""
RING_2 = {"chart", "cluster", "sandbox"}
"""Folders of the tests that need a cluster: `run.sh` collects ring 2 from these alone."""
ONLY_RING_2 = "cluster"
"""The one of these in which all tests need a cluster: to load it takes as long as to load all of ring 1."""
LONGEST = {"test_abuse_mutated.py", "test_abuse_sizes.py", "test_faults.py"}
"""Files of tests that keep both cores busy: one worker runs them, one after another."""

_FOLDER = Path(__file__).parent

SHARING = {
    "policies": (
        "test_lint.py",
        "test_shipped_kind_policies.py",
        "test_kind_policies.py",
        "test_leader_worker_set_policies.py",
        "test_loose_kinds.py",
        "test_manage_all_policies.py",
        "test_pods_without_mutation.py",
    ),
    "one controller": (
        "test_abuse_metrics.py",
        "test_operations.py",
        "test_without_controller.py",
        "test_definitions.py",
        "test_without_mutation.py",
        "test_run.py",
    ),
    "replicas": ("test_high_availability.py", "test_described_kinds.py"),
    "shards": ("test_back_pressure.py", "test_shards.py"),
    "elastic quotas": ("test_gentle_preemption.py", "test_elastic_quota.py", "test_elastic_deletions.py"),
}
"""Files of tests that share a cluster, in the order in which one worker runs them.

Those of policies have kinds of their own. Those of elastic quotas use the cluster of all tests, but its GPUs
one after another: more workers would wait for each other. The others start the only controllers that their
cluster has.
"""
ALONE = ("own: ControlPlane", "vacant: Cluster")
"""Arguments of tests that share a cluster with the rest of their file."""
MADE_ONCE = 'fixture(scope="module")'
"""What a file of ring 1 has that makes something for all of its tests: it takes seconds."""


def _fixtures(item: pytest.Item) -> set[str]:
    return set(getattr(item, "fixturenames", ()))


def _needs_sandbox(item: pytest.Item) -> bool:
    elsewhere = os.environ.get(_KUBECONFIG) and "control_plane" in _fixtures(item)
    return item.get_closest_marker("cluster") is not None and not elsewhere


def _seconds(item: pytest.Item) -> float:
    """What the test's marker `timeout` gives it."""
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0]) if marker else 0.0


def group_of(file: str) -> str:
    """The name of those that a file of tests shares a cluster with; empty if there are none."""
    return next((group for group, files in SHARING.items() if file in files), "")


def in_browser(path: Path) -> bool:
    """Whether a file has tests in a browser, which a worker starts once for all of its tests."""
    return path.parent.name == "web" and path.stem.endswith("_browser")


def _in_turn(items: list[pytest.Item]) -> Callable[[pytest.Item], tuple[float, int, float]]:
    """What tests are sorted by: the longest come first, and files that share a cluster one after another."""
    longest: dict[str, float] = {}
    for item in items:
        group = group_of(item.path.name)
        longest[group] = max(longest.get(group, 0.0), _seconds(item))

    def turn(item: pytest.Item) -> tuple[float, int, float]:
        file, seconds = item.path.name, _seconds(item)
        group = group_of(file)
        return (-longest[group], SHARING[group].index(file), -seconds) if group else (-seconds, 0, 0)

    return turn


class Together(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Gives workers one test after another, and all of a file at once if they share what is made for it."""

    @cache  # noqa: B019 (there is one of it)
    def _scope(self, file: str) -> str:
        path = self.config.rootpath / file
        text = path.read_text()
        if path.parent.name not in RING_2:
            return file if MADE_ONCE in text or in_browser(path) else ""
        if path.name in LONGEST:
            return "longest"
        return group_of(path.name) or (file if any(each in text for each in ALONE) else "")

    def _split_scope(self, nodeid: str) -> str:
        return self._scope(nodeid.partition("::")[0]) or nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    """`--dist loadscope` is `Together`."""
    return Together(config, log) if config.getvalue("dist") == "loadscope" else None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Load nothing of which ring 1 runs nothing."""
    asked = config.option.markexpr.startswith(RING_1)
    return True if asked and collection_path == _FOLDER / ONLY_RING_2 else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests that take longest, and refuse a control plane if only ring 1 was asked for.

    Tests of half a minute and more have a marker `timeout`.
    """
    items.sort(key=_in_turn(items))
    for item in items:
        if item.path.parent.name == ONLY_RING_2 and not item.get_closest_marker("cluster"):
            raise pytest.UsageError(f"{item.nodeid} needs the marker `cluster`: ring 1 does not look there")
        if item.get_closest_marker("cluster") and item.path.parent.name not in RING_2:
            raise pytest.UsageError(f"{item.nodeid} has the marker `cluster`: only {sorted(RING_2)} may")
        needed = {"control_plane", "sandbox"} & _fixtures(item)
        if needed and not item.get_closest_marker("cluster"):
            raise pytest.UsageError(f"{item.nodeid} needs the marker `cluster`: it uses {', '.join(needed)}")


def pytest_runtest_teardown() -> None:
    """Look for garbage again: commands that read a cluster do not, since they end with their process."""
    gc.enable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what the cluster tests need before any test's time runs: the first time it takes minutes.

    What is loaded stays: each look for garbage would go through all of it.
    """
    gc.collect()
    gc.freeze()
    if session.config.option.collectonly or not any(_needs_sandbox(item) for item in session.items):
        return
    capture = session.config.pluginmanager.getplugin("capturemanager")
    # What can't be built fails the tests that need it: their fixture tries again and tells why.
    with capture.global_and_fixture_disabled(), suppress(SandboxError):
        used = {fixture for item in session.items for fixture in _fixtures(item)}
        build(helm="helm" in used, operators="operators" in used)


@pytest.fixture(scope="session")
def sandbox(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """The sandbox of this test run, shared by all its workers."""
    folder = tmp_path_factory.getbasetemp()
    if hasattr(request.config, "workerinput"):
        # The first worker starts it; it ends with the process that started the workers.
        where, owner = folder.parent / "control-plane", os.getppid()
        yield DirectPlane.start(where, owner=owner, kubernetes=KUBERNETES)
    else:
        where, owner = folder / "control-plane", os.getpid()
        with DirectPlane.start(where, owner=owner, kubernetes=KUBERNETES) as started:
            yield started


@pytest.fixture(scope="session", autouse=True)
def _nothing_is_slow() -> Iterator[None]:
    """What commands say does not depend on how busy the machine is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(estimating, "SOON", 3600.0)
        yield


@pytest.fixture(scope="session")
def control_plane(request: pytest.FixtureRequest) -> Cluster:
    """The cluster to test on; each test uses namespaces and queues of its own in it."""
    kubeconfig = os.environ.get(_KUBECONFIG)
    if not kubeconfig:
        started: ControlPlane = request.getfixturevalue("sandbox")
        return started
    found = shutil.which("kubectl")
    kubectl = Path(found) if found else ensure_programs(Console(stderr=True), ["kubectl"])["kubectl"]
    return Cluster(kubectl=kubectl, kubeconfig=Path(kubeconfig), context=os.environ.get(_CONTEXT))


@pytest.fixture
def helm(tmp_path: Path) -> Helm:
    """Helm, with no cluster to talk to until it is given one."""
    return Helm(ensure_helm(Console(stderr=True)), tmp_path / "helm")
