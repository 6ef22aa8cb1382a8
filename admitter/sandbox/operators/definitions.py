"""What each operator is built from, and how it is started.

Next: `programs` builds them.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from admitter.sandbox.component_commands import LOCALHOST
from admitter.sandbox.errors import SandboxError

MODULES = Path(__file__).parent / "modules"
"""One Go module for each set of releases that build together."""

Config = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator, as its project publishes it.

    Attributes:
        name: of its program and its log.
        module: the folder in `MODULES` that it is built from.
        source: its Go module.
        package: its main package, below its Go module; empty for the root.
        folder: of its manifests, in its Go module.
        roots: the kustomizations in that folder with its definitions, rights and webhooks.
        samples: the kustomization with objects of its kinds that it offers to all; empty if there are none.
        main: the folder in `module` with a main package that replaces the project's; empty if none does.
        namespace: of its account.
        account: the name of its service account.
        options: of its command line, given the file with its configuration.
        config: its configuration, given the port of its webhooks and the folder with their certificate.
        started: words in its log once it works.
        needs: operators that have to run before.
        yields: definitions that are left as they are if another operator has brought them, and its name.
    """

    name: str
    module: str
    source: str
    package: str
    folder: str
    roots: tuple[str, ...]
    namespace: str
    account: str
    options: Callable[[Path], list[str]]
    config: Callable[[int, Path], Config]
    started: tuple[str, ...]
    samples: str = ""
    main: str = ""
    needs: tuple[str, ...] = ()
    yields: Mapping[str, str] = field(default_factory=dict)

    @property
    def user(self) -> str:
        """The user that the API server knows it as."""
        return f"system:serviceaccount:{self.namespace}:{self.account}"

    @property
    def built_from(self) -> str:
        """The main package, as `go build` takes it in the folder of its module."""
        return f"./{self.main}" if self.main else self.source + self.package


def _served(version: str, certificates: str) -> Callable[[int, Path], Config]:
    """The configuration file of an operator with webhooks; `certificates` makes some by itself, if on."""

    def configuration(port: int, _folder: Path) -> Config:
        return {
            "apiVersion": version,
            "kind": "Configuration",
            "leaderElection": {"leaderElect": False},
            certificates: {"enable": False},
            "webhook": {"host": LOCALHOST, "port": port},
            "metrics": {"bindAddress": "0"},
            "health": {"healthProbeBindAddress": "0"},
        }

    return configuration


def _lws(port: int, folder: Path) -> Config:
    """The configuration of LeaderWorkerSet, which looks for its certificate in /tmp if no folder is named."""
    config = _served("config.lws.x-k8s.io/v1alpha1", "internalCertManagement")(port, folder)
    return {**config, "webhook": {**config["webhook"], "certDir": str(folder)}}


def _training(port: int, _folder: Path) -> Config:
    """The configuration of the training operator, of which our main package reads no more."""
    return {"webhook": {"host": LOCALHOST, "port": port}}


def _by_file(config: Path) -> list[str]:
    return [f"--config={config}"]


def _kuberay(_config: Path) -> list[str]:
    return ["--enable-leader-election=false", "--metrics-addr=0", "--health-probe-bind-address=0"]


OPERATORS = {
    each.name: each
    for each in (
        Operator(
            name="appwrapper",
            module="mpi-appwrapper",
            source="github.com/project-codeflare/appwrapper",
            package="/cmd",
            main="appwrapper",
            folder="config",
            roots=("default",),
            namespace="appwrapper-system",
            account="appwrapper-controller-manager",
            options=lambda config: [str(config)],
            config=lambda port, _folder: {"host": LOCALHOST, "port": port},
            started=("Serving webhook server", 'Starting workers\t{"controller": "AppWrapper"'),
        ),
        Operator(
            name="jobset",
            module="kubeflow",
            source="sigs.k8s.io/jobset",
            package="",
            folder="config",
            roots=("default",),
            namespace="jobset-system",
            account="jobset-controller-manager",
            options=_by_file,
            config=_served("config.jobset.x-k8s.io/v1alpha1", "internalCertManagement"),
            started=("Serving webhook server", 'Starting workers\t{"controller": "jobset"'),
        ),
        Operator(
            name="kuberay",
            module="kuberay",
            source="github.com/ray-project/kuberay/ray-operator",
            package="",
            folder="config",
            roots=("default",),
            namespace="default",
            account="kuberay-operator",
            options=_kuberay,
            config=lambda _port, _folder: {},
            started=('RayCluster","msg":"Starting workers"',),
        ),
        Operator(
            name="lws",
            module="lws",
            source="sigs.k8s.io/lws",
            package="/cmd",
            folder="config",
            roots=("default",),
            namespace="lws-system",
            account="lws-controller-manager",
            options=_by_file,
            config=_lws,
            started=(
                "Serving webhook server",
                'Starting workers\t{"controller": "leaderworkerset"',
                'Starting workers\t{"controller": "pod"',
            ),
        ),
        Operator(
            name="mpi",
            module="mpi-appwrapper",
            source="github.com/kubeflow/mpi-operator",
            package="/cmd/mpi-operator",
            main="mpi",
            folder="manifests",
            roots=("overlays/standalone",),
            namespace="mpi-operator",
            account="mpi-operator",
            options=lambda _config: [],
            config=lambda _port, _folder: {},
            started=("Started workers",),
        ),
        Operator(
            name="trainer",
            module="kubeflow",
            source="github.com/kubeflow/trainer/v2",
            package="/cmd/trainer-controller-manager",
            folder="manifests",
            roots=("base/crds", "base/rbac", "base/webhook"),
            namespace="kubeflow-system",
            account="kubeflow-trainer-controller-manager",
            options=_by_file,
            config=_served("config.trainer.kubeflow.org/v1alpha1", "certManagement"),
            started=("Serving webhook server", '"Starting workers","controller":"trainjob_controller"'),
            samples="base/runtimes",
            needs=("jobset",),
        ),
        Operator(
            name="training",
            module="training",
            source="github.com/kubeflow/training-operator",
            package="/cmd/training-operator.v1",
            main="training",
            folder="manifests",
            roots=("overlays/standalone",),
            namespace="kubeflow",
            account="training-operator",
            options=_by_file,
            config=_training,
            started=(
                "Serving webhook server",
                '"Starting workers","controller":"pytorchjob-controller"',
                '"Starting workers","controller":"tfjob-controller"',
                '"Starting workers","controller":"xgboostjob-controller"',
            ),
            yields={"mpijobs.kubeflow.org": "mpi"},
        ),
    )
}
"""The operators by name."""


def chosen(names: Iterable[str]) -> list[Operator]:
    """The operators of these names and those that they need, in the order in which they start.

    One that leaves a definition to another starts after it.

    Raises:
        SandboxError: there is none of a name.
    """
    found: dict[str, Operator] = {}
    for name in names:
        if name not in OPERATORS:
            raise SandboxError(f"--with {name!r}: there are {', '.join(OPERATORS)}")
        for each in chosen(OPERATORS[name].needs):
            found.setdefault(each.name, each)
        found.setdefault(name, OPERATORS[name])
    return sorted(found.values(), key=lambda each: not found.keys().isdisjoint(each.yields.values()))
