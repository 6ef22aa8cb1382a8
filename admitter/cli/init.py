"""`admitter init`: flavors and queues for the nodes of a cluster, to be read before they are applied."""

import re
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer
import yaml

from admitter.api.shapes import shape_problem
from admitter.cli.complaints import CommandError
from admitter.cli.looking import ask
from admitter.cli.options import Context, Kubeconfig
from admitter.documents import ManifestError, documents, title
from admitter.insight.first_queues import first_queues
from admitter.insight.hardware import Hardware, hardware, system_use
from admitter.visible import visible

if TYPE_CHECKING:
    from admitter.client.transport import Transport

T = TypeVar("T")
Json = dict[str, Any]

KINDS: Final = {"Node": "nodes", "Pod": "pods", "Namespace": "namespaces"}
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SHARE: Final = re.compile(r"[0-9]{1,9}")


def init(
    files: Annotated[
        list[str] | None,
        typer.Option(
            "--filename",
            "-f",
            help="Files or folders with Nodes, and Pods if known, instead of a cluster; - is standard input.",
            metavar="PATH",
            show_default=False,
        ),
    ] = None,
    team: Annotated[
        list[str] | None,
        typer.Option(
            help="A team and its share; may be repeated. Without it the command asks.",
            metavar="NAME=SHARE",
            show_default=False,
        ),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            help="A node label that tells hardware, beside instance types, GPU products and the like; may be "
            "repeated.",
            metavar="KEY",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Where the manifests go. By default standard output.",
            metavar="FILE",
            show_default=False,
            dir_okay=False,
        ),
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Write flavors and queues for the nodes that a cluster has, divided among teams.

    Groups the nodes by hardware, subtracts what pods of DaemonSets and of kube-system request, and asks for
    teams and their shares. The result is a file to read, change and apply; nothing is changed in the cluster.

    Exits with 1 if standard input ends before the questions are answered.

    Examples:
    - `admitter init -o queues.yaml`: asks
    - `admitter init --team research=2 --team web=1 | kubectl apply --dry-run=server -f -`
    - `kubectl get nodes,pods -A -o json | admitter init -f - --team all=1`: without a connection of its own
    """
    shares = _shares(team or [])
    objects = _read(files) if files else ask(kubeconfig, context, _listed)
    found = hardware(objects["nodes"], system_use(objects["pods"]), label or [])
    if not found:
        raise CommandError(
            "there are no nodes for Jobs: none, or only nodes of the control plane or unusable ones"
        )
    if not shares:
        shares = _asked(found)
    namespaces = frozenset(each["metadata"]["name"] for each in objects["namespaces"])
    manifests = first_queues(found, shares, namespaces)
    known = not files or bool(objects["pods"])
    text = _comment(found, len(objects["nodes"]), shares, pods=known) + yaml.safe_dump_all(
        manifests, sort_keys=False
    )
    if output is None:
        sys.stdout.write(text)
        return
    try:
        output.write_text(text)
    except OSError as error:
        raise ManifestError(f"{output}: can't be written: {error.strerror}") from error


def _shares(texts: Iterable[str]) -> dict[str, int]:
    """The shares of teams.

    Raises:
        BadParameter: a text is no team with its share, or two are of one team.
    """
    shares: dict[str, int] = {}
    for name, share in map(_share, texts):
        if name in shares:
            raise typer.BadParameter(f"{name} has two shares: give one", param_hint="--team")
        shares[name] = share
    return shares


def _share(text: str) -> tuple[str, int]:
    """A team and its share.

    Raises:
        BadParameter: the text is no such thing.
    """
    name, _, share = text.partition("=")
    if not _NAME.fullmatch(name):
        words = "is no name for a namespace and a queue: small letters, digits and hyphens, such as web=2"
        raise typer.BadParameter(f"{visible(name)!r} {words}", param_hint="--team")
    if not _SHARE.fullmatch(share) or not int(share):
        raise typer.BadParameter(
            f"the share of {name} must be a whole number of at most nine digits, such as {name}=2",
            param_hint="--team",
        )
    return name, int(share)


def _read(paths: Iterable[str]) -> dict[str, list[Json]]:
    """Nodes, Pods and Namespaces in files; other objects do not matter.

    Raises:
        ManifestError: a file or an object can't be read.
    """
    found: dict[str, list[Json]] = {plural: [] for plural in KINDS.values()}
    for place, manifest in documents(paths):
        if isinstance(manifest, ManifestError):
            raise ManifestError(f"{place}: {manifest}")
        kind = (
            manifest.get("kind")
            if isinstance(manifest, dict) and manifest.get("apiVersion") == "v1"
            else None
        )
        if kind in KINDS:
            problem = shape_problem(manifest)
            if problem is not None:
                raise ManifestError(f"{title(manifest, place)}: {problem}")
            found[KINDS[kind]].append(manifest)
    return found


async def _listed(transport: "Transport") -> dict[str, list[Json]]:
    """The nodes, pods and namespaces of a cluster.

    Raises:
        ClusterError: they can't be read.
    """
    from admitter.insight.pages import listed  # noqa: PLC0415  # its client is slow to load

    return {
        plural: [each async for each in listed(transport, f"/api/v1/{plural}")] for plural in KINDS.values()
    }


def _asked(found: Iterable[Hardware]) -> dict[str, int]:
    """Ask for teams and shares, on standard error: standard output may be a file."""
    typer.echo("These nodes can be divided:", err=True)
    for each in sorted(found, key=lambda each: (each.scarce is None, each.name)):
        typer.echo(f"  {visible(each.name)}: {visible(each)}", err=True)
    names = _answer("Teams (names, for namespaces and queues)", "", _names)
    return {name: _answer(f"Share of {name} [1]", "1", partial(_answered, name)) for name in names}


def _answer(question: str, default: str, parsed: Callable[[str], T]) -> T:
    """The answer to a question, which is asked again if it is wrong.

    The library would write a space to standard output.

    Raises:
        Abort: standard input has ended.
    """
    while True:
        typer.echo(f"{question}: ", err=True, nl=False)
        line = sys.stdin.readline()
        if not line:
            raise typer.Abort
        try:
            return parsed(line.strip() or default)
        except typer.BadParameter as error:
            typer.echo(f"Error: {error.message}", err=True)


def _names(text: str) -> list[str]:
    """The names in an answer; if one is wrong, the question is asked again."""
    names = list(dict.fromkeys(text.replace(",", " ").split()))
    if not names:
        raise typer.BadParameter("name at least one team")
    for name in names:
        _answered(name, "1")
    return names


def _answered(name: str, share: str) -> int:
    return _share(f"{name}={share}")[1]


def _comment(found: list[Hardware], nodes: int, shares: dict[str, int], *, pods: bool) -> str:
    """What the manifests were made from, and what to look at before they are applied."""
    teams = ", ".join(f"{name} {share}" for name, share in shares.items())
    system = "is subtracted" if pods else "is not known, and not subtracted"
    lines = [
        "Flavors and queues for these nodes, by admitter init. Read, change, then: kubectl apply -f FILE",
        "",
        *(f"  {each.name}: {each}" for each in found),
        "",
        f"Shares: {teams}. What pods of DaemonSets and of kube-system request {system}.",
        *(f"{each.name}: {note}." for each in found for note in each.notes),
    ]
    if unused := nodes - sum(each.nodes for each in found):
        lines.append(f"{unused} of {nodes} nodes do not count: of the control plane, cordoned, or not ready.")
    tainted = [each.name for each in found if each.taints]
    if tainted:
        lines.append(f"Jobs get {', '.join(tainted)} only if they tolerate the taints.")
    return "".join(f"# {visible(line)}".rstrip() + "\n" for line in lines) + "---\n"
