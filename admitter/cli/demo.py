"""`admitter demo`: a control plane of its own, a queue, a dozen Jobs, and how they are admitted."""

import asyncio
import os
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from admitter.cli.complaints import CommandError
from admitter.cli.options import Context, Kubeconfig
from admitter.client.transport import HttpTransport
from admitter.documents import bundled
from admitter.install.apply import install
from admitter.names import NAMESPACE, SERVICE_ACCOUNT, WORKLOAD_LABEL
from admitter.sandbox.build import ensure_programs
from admitter.sandbox.cluster import Cluster
from admitter.sandbox.control_plane import ControlPlane
from admitter.sandbox.folders import state_folder
from admitter.sandbox.processes import start_child

TEAM: Final = "team-a"
LOOK_SECONDS: Final = 0.5
LONGEST_SECONDS: Final = 180.0


def demo(
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep everything running afterwards, to try things by hand.")
    ] = False,
) -> None:
    """Show a dozen Jobs being admitted on a local control plane.

    The Jobs ask for more than their queue's quota together. The real scheduler places their pods on
    simulated nodes, and the demo checks that each ran on a node of the flavors it was admitted to. The
    first run builds the control plane, which takes about ten minutes on two cores.

    With --kubeconfig or --context it runs on a cluster of yours instead. KWOK must simulate its nodes; the
    objects that the demo creates there stay.

    Examples:
    - `admitter demo`
    - `admitter demo --keep`: to try things by hand afterwards
    """
    console = Console()
    with _cluster(kubeconfig, context, console) as (plane, folder):
        console.rule("2. Admitter: its definitions, its policies, and the controller", align="left")
        asyncio.run(_install(plane, console))
        with _controller(plane, folder) as log:
            console.print(
                f"The controller runs under its own service account. Its log: {log}", soft_wrap=True
            )
            console.rule("3. An administrator defines flavors and queues", align="left")
            _apply(plane, console, "queues.yaml")
            console.rule("4. A user submits a dozen suspended Jobs", align="left")
            _apply(plane, console, "jobs.yaml")
            console.rule("5. kubectl get workloads, as it changes", align="left")
            _follow_until_finished(plane, console)
            console.rule("6. Where the pods ran", align="left")
            _check_placement(plane, console)
            _end(console, keep=keep)


@contextmanager
def _cluster(
    kubeconfig: Path | None, context: str | None, console: Console
) -> Iterator[tuple[Cluster, Path]]:
    """The cluster to show it on, and a folder for the controller's files."""
    if kubeconfig is None and context is None:
        console.rule("1. A local control plane with six simulated nodes", align="left")
        with ControlPlane.start(state_folder("demo"), owner=os.getpid(), console=console) as plane:
            yield plane, plane.folder
        return
    console.rule("1. Your cluster", align="left")
    found = shutil.which("kubectl")
    kubectl = Path(found) if found else ensure_programs(console, ["kubectl"])["kubectl"]
    cluster = Cluster(kubectl=kubectl, kubeconfig=kubeconfig, context=context)
    if not cluster.simulated:
        raise CommandError(
            "this cluster has no simulated nodes: the demo's Jobs have no images that could run"
        )
    with TemporaryDirectory() as folder:
        yield cluster, Path(folder)


async def _install(plane: Cluster, console: Console) -> None:
    async with await HttpTransport.connect(plane.kubeconfig, plane.context) as transport:
        applied = await install(transport, deployment=False)
    console.print(f"admitter install --without-deployment: {len(applied)} objects applied")


@contextmanager
def _controller(plane: Cluster, folder: Path) -> Iterator[Path]:
    """Run the controller under its own account; yields its log."""
    kubeconfig = plane.service_account_kubeconfig(
        NAMESPACE, SERVICE_ACCOUNT, folder / "controller.kubeconfig"
    )
    path = folder / "controller.log"
    options = ["--kubeconfig", str(kubeconfig), "--bind", "127.0.0.1:0"]
    command = [sys.executable, "-m", "admitter", "run", *options]
    with path.open("w") as log, start_child(command, signal.SIGTERM, stderr=log) as process:
        try:
            yield path
        finally:
            process.send_signal(signal.SIGTERM)


def _apply(plane: Cluster, console: Console, example: str) -> None:
    path = bundled("manifests") / "examples" / example
    console.print(f"[bold]kubectl apply -f manifests/examples/{example}[/bold]")
    console.print(plane.run_kubectl("apply", "-f", str(path)), end="", highlight=False)


def _follow_until_finished(plane: Cluster, console: Console) -> None:
    """Show the table whenever it changes, until every Workload has finished."""
    began = time.monotonic()
    shown = ""
    with Live(console=console, transient=False, auto_refresh=False) as live:
        while True:
            table = plane.run_kubectl("get", "workloads", "-n", TEAM)
            rows = [line.split() for line in table.splitlines()[1:]]
            words = "\n".join(" ".join(row[:-1]) for row in rows)  # without the age, which always changes
            if words != shown:
                shown = words
                passed = f"after {time.monotonic() - began:.0f} s"
                if console.is_terminal:
                    live.update(Text(f"{passed}\n{table}", no_wrap=True, overflow="crop"), refresh=True)
                else:
                    console.print(f"{passed}\n{table}", highlight=False, soft_wrap=True)
            jobs = plane.read("jobs", "-n", TEAM)["items"]
            if len(rows) == len(jobs) and all("Finished" in row for row in rows):
                return
            if time.monotonic() - began > LONGEST_SECONDS:
                raise CommandError(f"not all Jobs have finished after {LONGEST_SECONDS:.0f} s")
            time.sleep(LOOK_SECONDS)


def _check_placement(plane: Cluster, console: Console) -> None:
    """Show each Workload's flavors and nodes, and compare the nodes' labels with the flavors'."""
    flavors = {f["metadata"]["name"]: f["spec"].get("nodeLabels", {}) for f in plane.read("rf")["items"]}
    labels = {n["metadata"]["name"]: n["metadata"]["labels"] for n in plane.read("nodes")["items"]}
    pods = plane.read("pods", "-n", TEAM, "-l", WORKLOAD_LABEL)["items"]
    table = Table(box=None)
    for heading in ("Job", "Flavors", "Nodes of its pods", "As admitted"):
        table.add_column(heading, no_wrap=heading in {"Job", "Flavors"})
    wrong = 0
    for workload in plane.read("workloads", "-n", TEAM)["items"]:
        name = workload["metadata"]["name"]
        pod_set = workload["status"]["admission"]["podSets"][0]
        nodes = [p["spec"]["nodeName"] for p in pods if p["metadata"]["labels"][WORKLOAD_LABEL] == name]
        wanted = {k: v for flavor in pod_set["flavors"].values() for k, v in flavors[flavor].items()}
        right = len(nodes) == pod_set["count"] and all(wanted.items() <= labels[n].items() for n in nodes)
        wrong += not right
        table.add_row(
            workload["metadata"]["ownerReferences"][0]["name"],
            ", ".join(dict.fromkeys(pod_set["flavors"].values())),
            ", ".join(f"{count} x {node}" for node, count in sorted(Counter(nodes).items())),
            "yes" if right else "NO",
        )
    console.print(table)
    if wrong:
        raise CommandError(f"{wrong} Workloads did not run where they were admitted to")
    words = (
        f"All {len(pods)} pods ran on nodes with the labels of the flavors that their Jobs were admitted to."
    )
    console.print(words, highlight=False)


def _end(console: Console, *, keep: bool) -> None:
    if not keep:
        console.print(
            "To try things by hand, with all of this kept running: [bold]make demo KEEP=1[/bold], "
            "or [bold]admitter demo --keep[/bold]",
            highlight=False,
        )
        return
    console.print("Kept running until you press Ctrl-C. In another terminal:", style="bold")
    console.print('  eval "$(.venv/bin/admitter sandbox env --name demo)"', highlight=False)
    console.print("  kubectl get workloads -A", highlight=False)
    with suppress(KeyboardInterrupt):
        signal.pause()
