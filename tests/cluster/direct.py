"""Answers kubectl's plain commands by one request on a connection that is kept, without a process for each.

Tests poll objects all the time. A `kubectl get` costs some 100 ms of CPU, the request that it makes 2 ms.
Commands and options that are not known here are left to kubectl itself.
"""

import json
import ssl
from base64 import b64decode
from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.parse import urlencode

import urllib3
import yaml

from admitter.sandbox.cluster import KubectlError
from admitter.sandbox.control_plane import ControlPlane

Json = dict[str, Any]

_GROUPS = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_AS_APPLIED = {"fieldManager": "kubectl-client-side-apply", "fieldValidation": "Strict"}
_SWITCHES = {"--all-namespaces", "--ignore-not-found", "--overwrite", "--wait=false"}
_VALUES = {
    "--namespace",
    "--selector",
    "--field-selector",
    "--output",
    "--type",
    "--patch",
    "-p",
    "--filename",
}


class RefusedError(Exception):
    """The API server refuses a request.

    Attributes:
        reason: such as `NotFound`.
    """

    def __init__(self, status: Json) -> None:
        self.reason = status.get("reason", "")
        super().__init__(f"Error from server ({self.reason}): {status.get('message', '')}")


class Command(NamedTuple):
    """A command line.

    Attributes:
        verb: such as `get`.
        words: what follows it and is no option.
        options: the options by name, with their values.
    """

    verb: str
    words: list[str]
    options: dict[str, str]

    @classmethod
    def parse(cls, arguments: tuple[str, ...]) -> "Command | None":
        """The command; None if it has options that only kubectl knows."""
        options: dict[str, str] = {}
        for argument in arguments:
            name, _, value = argument.partition("=")
            if argument in _SWITCHES or (name in _VALUES and value):
                options["--patch" if name == "-p" else name] = value
            elif argument.startswith("-"):
                return None
        verb, *words = [each for each in arguments if not each.startswith("-")]
        return cls(verb, words, options)

    @property
    def namespace(self) -> str:
        """The namespace of objects that have one."""
        return self.options.get("--namespace", "default")


_LATER = urllib3.Retry(
    10, connect=0, read=0, redirect=0, other=0, allowed_methods=None, raise_on_status=False
)
"""As kubectl does, ask again what the server is too busy for, when it says: first of all for a new kind."""


class Server:
    """The API server of a kubeconfig with a client certificate."""

    def __init__(self, kubeconfig: Path) -> None:
        content = yaml.safe_load(kubeconfig.read_text())
        cluster, user = content["clusters"][0]["cluster"], content["users"][0]["user"]
        context = ssl.create_default_context(cadata=b64decode(cluster["certificate-authority-data"]).decode())
        with TemporaryDirectory() as folder:
            certificate, key = Path(folder, "certificate"), Path(folder, "key")
            certificate.write_bytes(b64decode(user["client-certificate-data"]))
            key.write_bytes(b64decode(user["client-key-data"]))
            context.load_cert_chain(certificate, key)
        self._url = cluster["server"]
        self._pool = urllib3.PoolManager(ssl_context=context, retries=_LATER)

    def ask(
        self, method: str, path: str, body: Json | None = None, query: Mapping[str, str] | None = None
    ) -> Json:
        """The answer to a request.

        Raises:
            RefusedError: the API server refuses it.
            HTTPError: it does not answer.
        """
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {
            "Content-Type": kind,
            "Accept": _GROUPS if path in {"/api", "/apis"} else "application/json",
        }
        url = f"{self._url}{path}?{urlencode(query or {})}"
        data = None if body is None else json.dumps(body)
        answer = self._pool.request(method, url, body=data, headers=headers)
        content: Json = json.loads(answer.data)
        if answer.status >= 400:
            raise RefusedError(content)
        return content

    @cached_property
    def _resources(self) -> dict[str, tuple[str, bool]]:
        """The path of a resource and whether it has namespaces, by each name that kubectl takes."""
        found: dict[str, tuple[str, bool]] = {}
        for group in [*self.ask("GET", "/api")["items"], *self.ask("GET", "/apis")["items"]]:
            name, version = group["metadata"].get("name", ""), group["versions"][0]
            prefix = f"/apis/{name}/{version['version']}" if name else f"/api/{version['version']}"
            for resource in version.get("resources", ()):
                place = (f"{prefix}/{{}}{resource['resource']}", resource["scope"] == "Namespaced")
                kind = resource["responseKind"]["kind"].lower()
                for each in {resource["resource"], kind, *resource.get("shortNames", ())}:
                    found.setdefault(each, place)
                    found.setdefault(f"{each}.{name}", place)
        return found

    def path(self, kind: str, namespace: str = "") -> str | None:
        """The path of a resource's collection; None if there is none of that name."""
        if kind not in self._resources:
            del self._resources  # a definition may have come since
        if kind not in self._resources:
            return None
        path, namespaced = self._resources[kind]
        return path.format(f"namespaces/{namespace}/" if namespaced and namespace else "")


@cache
def server(kubeconfig: Path, _written: float) -> Server:
    """The server of a kubeconfig as it was written at some time."""
    return Server(kubeconfig)


class DirectPlane(ControlPlane):
    """A control plane of the sandbox that is asked without kubectl where that makes no difference."""

    def run_kubectl(self, *arguments: str, content: str | None = None) -> str:
        """What kubectl prints, but for lines that only repeat what was asked for."""
        command, answer = Command.parse(arguments), None
        if command:
            try:
                answer = self._answer(command, content)
            except (RefusedError, urllib3.exceptions.HTTPError) as error:
                raise KubectlError(f"kubectl {' '.join(arguments)}: {error}") from error
        return super().run_kubectl(*arguments, content=content) if answer is None else answer

    def _answer(self, command: Command, content: str | None) -> str | None:
        assert self.kubeconfig
        known = server(self.kubeconfig, self.kubeconfig.stat().st_mtime)
        if command.verb == "create" and command.words[:1] == ["namespace"]:
            known.ask("POST", "/api/v1/namespaces", {"metadata": {"name": command.words[1]}})
            return ""
        if command.verb == "apply" and command.options == {"--filename": "-"}:
            return _apply(known, content or "")
        by_verb = {"get": _get, "delete": _delete, "label": _mark, "annotate": _mark, "patch": _patch}
        return by_verb[command.verb](known, command) if command.verb in by_verb else None


def _get(known: Server, command: Command) -> str | None:
    kind, _, name = "/".join(command.words).partition("/")
    options = command.options
    path = known.path(kind, "" if "--all-namespaces" in options else command.namespace)
    if path is None or "/" in name or options.get("--output") != "json":
        return None
    if name:
        return json.dumps(known.ask("GET", f"{path}/{name}"))
    selectors = {"labelSelector": "--selector", "fieldSelector": "--field-selector"}
    query = {name: options[option] for name, option in selectors.items() if option in options}
    found = known.ask("GET", path, query=query)
    shared = {"kind": found["kind"].removesuffix("List"), "apiVersion": found["apiVersion"]}
    return json.dumps(found | {"items": [shared | item for item in found["items"]]})


def _mark(known: Server, command: Command) -> str | None:
    pairs = command.words[2:]
    field = "labels" if command.verb == "label" else "annotations"
    return _change(known, command, {"metadata": {field: dict(map(_pair, pairs))}})


def _pair(text: str) -> tuple[str, str | None]:
    name, equals, value = text.partition("=")
    return (name, value) if equals else (name.removesuffix("-"), None)


def _patch(known: Server, command: Command) -> str | None:
    if command.options.get("--type") != "merge" or command.options.get("--output", "json") != "json":
        return None
    return _change(known, command, json.loads(command.options["--patch"]))


def _change(known: Server, command: Command, patch: Json) -> str | None:
    kind, name = command.words[:2]
    path = known.path(kind, command.namespace)
    if path is None or "/" in kind or "--selector" in command.options:
        return None
    return json.dumps(known.ask("PATCH", f"{path}/{name}", patch))


def _delete(known: Server, command: Command) -> str | None:
    named = [tuple(word.split("/", 1)) for word in command.words if "/" in word]
    named = named or [(command.words[0], name) for name in command.words[1:]]
    paths = [(known.path(kind.lower(), command.namespace), name) for kind, name in named]
    waits = "--wait" not in command.options
    if waits or not paths or "--selector" in command.options or any(path is None for path, _ in paths):
        return None
    for path, name in paths:
        try:
            known.ask("DELETE", f"{path}/{name}", {"propagationPolicy": "Background"})
        except RefusedError as refused:
            if refused.reason != "NotFound" or "--ignore-not-found" not in command.options:
                raise
    return ""


def _apply(known: Server, content: str) -> str | None:
    """Create objects as kubectl would apply them; None if one is there, which kubectl has to merge."""
    if not content.startswith("{"):
        return None
    document = json.loads(content)
    for manifest in document.get("items", [document]):
        metadata, group = manifest["metadata"], manifest["apiVersion"].rpartition("/")[0]
        path = known.path(f"{manifest['kind'].lower()}.{group}", metadata.get("namespace", "default"))
        if path is None:
            return None
        annotations = metadata.get("annotations", {}) | {_APPLIED: json.dumps(manifest)}
        made = manifest | {"metadata": metadata | {"annotations": annotations}}
        try:
            known.ask("POST", path, made, _AS_APPLIED)
        except RefusedError as refused:
            if refused.reason == "AlreadyExists":
                return None
            raise
    return ""
