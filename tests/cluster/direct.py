"""Answers kubectl's plain commands by one request on a connection that is kept, without a process for each.

Tests poll objects all the time. A `kubectl get` costs some 50 ms of CPU, the request that it makes 2 ms.
Commands and options that are not known here are left to kubectl itself.
"""

import json
import ssl
from base64 import b64decode
from collections.abc import Mapping
from functools import cache, cached_property, partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.parse import urlencode

import urllib3
import yaml

from admitter.sandbox.cluster import Cluster, KubectlError, token_kubeconfig, write_kubeconfig
from admitter.sandbox.control_plane import ControlPlane
from tests.cluster.answers import RefusedError, said
from tests.cluster.jsonpath import UnknownPathError, rendered
from tests.cluster.waiting import eventually

Json = dict[str, Any]

_GROUPS = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_AS_APPLIED = {"fieldManager": "kubectl-client-side-apply", "fieldValidation": "Strict"}
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_RBAC = "rbac.authorization.k8s.io"
_PATCHES = {"merge": "application/merge-patch+json", "json": "application/json-patch+json"}
_SWITCHES = {
    "--all-namespaces",
    "--dry-run=server",
    "--ignore-not-found",
    "--overwrite",
    "--validate=false",
    "--wait=false",
}
_VALUES = {
    "--namespace",
    "--selector",
    "--field-selector",
    "--output",
    "--type",
    "--patch",
    "-p",
    "--filename",
    "--as",
    "--as-group",
    "--clusterrole",
    "--duration",
    "--role",
    "--serviceaccount",
    "--subresource",
    "--user",
}
_SHORT = {"-p": "--patch", "-n": "--namespace", "-o": "--output"}
_ANY = {"--namespace", "--as", "--as-group"}
"""Options that all commands have."""


class Command(NamedTuple):
    """A command line.

    Attributes:
        verb: such as `get`.
        words: what follows it and is no option.
        options: the options by name, with their values.
        home: the namespace, if no option says another.
    """

    verb: str
    words: list[str]
    options: dict[str, str]
    home: str = "default"

    @classmethod
    def parse(cls, arguments: tuple[str, ...]) -> "Command | None":
        """The command; None if it has options that only kubectl knows."""
        options: dict[str, str] = {}
        for argument in ("--filename=-" if each == "-f-" else each for each in arguments):
            name, _, value = argument.partition("=")
            name = _SHORT.get(name, name)
            if argument in _SWITCHES or (name in _VALUES and value):
                more = f"{options[name]}\n" if name == "--as-group" and name in options else ""
                options[name] = more + value
            elif argument.startswith("-"):
                return None
        verb, *words = [each for each in arguments if not each.startswith("-")]
        return cls(verb, words, options)

    @property
    def namespace(self) -> str:
        """The namespace of objects that have one."""
        return self.options.get("--namespace", self.home)

    @property
    def apart(self) -> list[str]:
        """The words, with the kind and the name of an object as two of them."""
        return [*self.words[0].split("/"), *self.words[1:]]

    @property
    def impersonation(self) -> dict[str, str]:
        """Headers that name the user that the question is asked as."""
        headers = {"Impersonate_User": "--as", "Impersonate_Group": "--as-group"}
        return {name: self.options[option] for name, option in headers.items() if option in self.options}

    def query(self, manager: str) -> dict[str, str]:
        """What a request that writes says beside the object."""
        checked = "Ignore" if "--validate" in self.options else "Strict"
        dry = {"dryRun": "All"} if "--dry-run" in self.options else {}
        return {"fieldManager": manager, "fieldValidation": checked, **dry}


_LATER = urllib3.Retry(
    10, connect=0, read=0, redirect=0, other=0, allowed_methods=None, raise_on_status=False
)
"""As kubectl does, ask again what the server is too busy for, when it says: first of all for a new kind."""

TRIES = 3
STALLED = "etcdserver: request timed out"
"""What is asked again too: the disk of a loaded machine may stand still. The request may have been done."""


class Server:
    """The API server of a kubeconfig with a client certificate or a token."""

    def __init__(self, kubeconfig: Path) -> None:
        content = yaml.load(kubeconfig.read_text(), yaml.CSafeLoader)
        self.cluster, user = content["clusters"][0]["cluster"], content["users"][0]["user"]
        self.namespace = content["contexts"][0]["context"].get("namespace", "default")
        authority = b64decode(self.cluster["certificate-authority-data"]).decode()
        context = ssl.create_default_context(cadata=authority)
        self._headers = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}
        if "token" not in user:
            with TemporaryDirectory() as folder:
                certificate, key = Path(folder, "certificate"), Path(folder, "key")
                certificate.write_bytes(b64decode(user["client-certificate-data"]))
                key.write_bytes(b64decode(user["client-key-data"]))
                context.load_cert_chain(certificate, key)
        self._pool = urllib3.PoolManager(ssl_context=context, retries=_LATER)

    def ask(self, method: str, path: str, *, query: Mapping[str, str], body: Any, **headers: str) -> Json:
        """The answer to a request."""
        accepted = _GROUPS if path in {"/api", "/apis"} else "application/json"
        sent = urllib3.HTTPHeaderDict({"Accept": accepted, **self._headers})
        for name, values in headers.items():
            for value in values.splitlines():
                sent.add(name.replace("_", "-"), value)
        url = f"{self.cluster['server']}{path}?{urlencode(query)}"
        data = None if body is None else json.dumps(body)
        for tries_left in range(TRIES)[::-1]:
            answer = self._pool.request(method, url, body=data, headers=sent)
            content = said(answer)
            if answer.status < 400:
                break
            if method == "POST" and tries_left < TRIES - 1 and content.get("reason") == "AlreadyExists":
                return self.ask("GET", f"{path}/{body['metadata']['name']}", query={}, body=None, **headers)
            if not tries_left or STALLED not in content.get("message", ""):
                raise RefusedError(content)
        return content

    @cached_property
    def resources(self) -> dict[str, tuple[str, bool]]:
        """The path of a resource and whether it has namespaces, by each name that kubectl takes."""
        found: dict[str, tuple[str, bool]] = {}
        groups = [self.ask("GET", path, query={}, body=None)["items"] for path in ("/api", "/apis")]
        for group in chain(*groups):
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
        if kind not in self.resources:
            del self.resources  # a definition may have come since
        if kind not in self.resources:
            return None
        path, namespaced = self.resources[kind]
        return path.format(f"namespaces/{namespace}/" if namespaced and namespace else "")


@cache
def server(kubeconfig: Path, _written: float) -> Server:
    """The server of a kubeconfig as it was written at some time."""
    return Server(kubeconfig)


class User(NamedTuple):
    """A user of a server, played by impersonation if there are headers for that."""

    server: Server
    headers: dict[str, str]

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: Mapping[str, str] | None = None,
        kind: str = "application/json",
    ) -> Json:
        """The answer to a request.

        Raises:
            RefusedError: the API server refuses it.
            HTTPError: it does not answer.
        """
        return self.server.ask(method, path, query=query or {}, body=body, Content_Type=kind, **self.headers)

    def path(self, kind: str, namespace: str = "") -> str | None:
        """The path of a resource's collection; None if there is none of that name."""
        return self.server.path(kind, namespace)


class DirectCluster(Cluster):
    """A cluster that is asked without kubectl where that makes no difference."""

    def run_kubectl(self, *arguments: str, content: str | None = None) -> str:
        """What kubectl prints, but for lines that only repeat what was asked for."""
        answer = self._direct(arguments, content)
        if answer is None:
            return super().run_kubectl(*arguments, content=content)
        return answer if isinstance(answer, str) else json.dumps(answer)

    def read(self, *arguments: str) -> Json:
        """The object, or the list of them, as it was sent: much of what tests read is large."""
        answer = self._direct(("get", *arguments, "--output=json"), None)
        return answer if isinstance(answer, dict) else super().read(*arguments)

    def service_account_kubeconfig(self, namespace: str, name: str, path: Path) -> Path:
        """As the cluster writes it, of the only entry of this kubeconfig."""
        token = self.run_kubectl("create", "token", name, f"--namespace={namespace}", "--duration=24h")
        write_kubeconfig(path, token_kubeconfig(self.user.server.cluster, token))
        return path

    @property
    def user(self) -> User:
        """The user of its kubeconfig."""
        assert self.kubeconfig
        return User(server(self.kubeconfig, self.kubeconfig.stat().st_mtime), {})

    def _direct(self, arguments: tuple[str, ...], content: str | None) -> Json | str | None:
        """The answer, an empty text if there is nothing to say; None if it takes kubectl to answer."""
        command = Command.parse(arguments)
        if command is None or command.verb not in _COMMANDS:
            return None
        if command.options.keys() - _ANY - _KNOWN.get(command.verb, set()):
            return None
        known = self.user._replace(headers=command.impersonation)
        command = command._replace(home=known.server.namespace)
        try:
            return _COMMANDS[command.verb](known, command, content or "")
        except (RefusedError, urllib3.exceptions.HTTPError) as error:
            raise KubectlError(f"kubectl {' '.join(arguments)}: {error}") from error


class DirectPlane(DirectCluster, ControlPlane):
    """A control plane of the sandbox that is asked so."""


def _get(known: User, command: Command, _content: str) -> Json | str | None:
    kind, _, name = "/".join(command.words).partition("/")
    options = command.options
    output, _, template = options.get("--output", "").partition("=")
    path = known.path(kind, "" if "--all-namespaces" in options else command.namespace)
    if path is None or "/" in name or output not in {"json", "jsonpath"}:
        return None
    if name:
        found = known.ask("GET", f"{path}/{name}")
    else:
        selectors = {"labelSelector": "--selector", "fieldSelector": "--field-selector"}
        query = {name: options[option] for name, option in selectors.items() if option in options}
        found = known.ask("GET", path, query=query)
        shared = {"kind": found["kind"].removesuffix("List"), "apiVersion": found["apiVersion"]}
        found |= {"items": [shared | item for item in found["items"]]}
    try:
        return rendered(template, found) if output == "jsonpath" else found
    except UnknownPathError:
        return None


def _mark(known: User, command: Command, _content: str) -> Json | None:
    pairs = command.apart[2:]
    field = "labels" if command.verb == "label" else "annotations"
    return _change(known, command, {"metadata": {field: dict(map(_pair, pairs))}})


def _pair(text: str) -> tuple[str, str | None]:
    name, equals, value = text.partition("=")
    return (name, value) if equals else (name.removesuffix("-"), None)


def _patch(known: User, command: Command, _content: str) -> Json | None:
    kind = _PATCHES.get(command.options.get("--type", ""))
    if kind is None or command.options.get("--output", "json") != "json":
        return None
    return _change(known, command, json.loads(command.options["--patch"]), kind)


def _change(known: User, command: Command, patch: Any, kind: str = _PATCHES["merge"]) -> Json | None:
    kind_of_object, name, *_ = command.apart
    path = known.path(kind_of_object.lower(), command.namespace)
    if path is None:
        return None
    part = command.options.get("--subresource")
    place = f"{path}/{name}" + (f"/{part}" if part else "")
    return known.ask("PATCH", place, patch, command.query("kubectl-patch"), kind)


def _delete(known: User, command: Command, content: str) -> str | None:
    for place in (places := _named(known, command, content)) or ():
        try:
            gone = known.ask("DELETE", place, {"propagationPolicy": "Background"})
        except RefusedError as refused:
            if refused.reason != "NotFound" or "--ignore-not-found" not in command.options:
                raise
            continue
        if "--wait" not in command.options:
            uid = (gone.get("details") or gone["metadata"])["uid"]
            eventually(partial(_is_gone, known, place, uid), what=f"the end of {place}")
    return "" if places else None


def _named(known: User, command: Command, content: str) -> list[str] | None:
    """The paths of what a command or its document names; None if it takes kubectl to find them."""
    if "--filename" in command.options:
        placed = _placed(known, command, content)
        return [f"{path}/{manifest['metadata']['name']}" for path, manifest in placed] if placed else None
    named = [tuple(word.split("/", 1)) for word in command.words if "/" in word]
    named = named or [(command.words[0], name) for name in command.words[1:]]
    paths = [(known.path(kind.lower(), command.namespace), name) for kind, name in named]
    return None if any(path is None for path, _ in paths) else [f"{path}/{name}" for path, name in paths]


def _is_gone(known: User, place: str, uid: str) -> bool:
    """Whether an object is no more, or another has its name."""
    try:
        return bool(known.ask("GET", place)["metadata"]["uid"] != uid)
    except RefusedError as refused:
        if refused.reason != "NotFound":
            raise
        return True


def _placed(known: User, command: Command, content: str) -> list[tuple[str, Json]] | None:
    """The manifests in a document of JSON, each with the path where it is made; None if one has none."""
    if command.options.get("--filename") != "-" or not content.startswith("{"):
        return None
    document = json.loads(content)
    found = []
    for manifest in document["items"] if document.get("kind") == "List" else [document]:
        group = manifest["apiVersion"].rpartition("/")[0]
        inside = manifest.get("metadata", {}).get("namespace")  # what is only asked has none
        path = known.path(f"{manifest['kind'].lower()}.{group}", inside or command.namespace)
        if path is None or (inside and command.options.get("--namespace", inside) != inside):
            return None
        found.append((path, manifest))
    return found


def _apply(known: User, command: Command, content: str) -> str | None:
    """Create objects as kubectl would apply them; None if one is there, which kubectl has to merge."""
    for path, manifest in (placed := _placed(known, command, content)) or ():
        metadata = manifest["metadata"]
        annotations = metadata.get("annotations", {}) | {_APPLIED: json.dumps(manifest)}
        made = manifest | {"metadata": metadata | {"annotations": annotations}}
        try:
            known.ask("POST", path, made, _AS_APPLIED)
        except RefusedError as refused:
            if refused.reason == "AlreadyExists":
                return None
            raise
    return None if placed is None else ""


def _create(known: User, command: Command, content: str) -> Json | str | None:
    if command.words:
        return _create_named(known, command)
    placed = _placed(known, command, content)
    if placed is None or command.options.get("--output", "json") != "json":
        return None
    made, refusals = [], []
    query = command.query("kubectl-create")
    for path, manifest in placed:
        try:
            made.append(known.ask("POST", path, manifest, query))
        except RefusedError as refused:
            refusals.append(refused)
    if refusals:
        raise RefusedError.of(refusals)
    if "--output" not in command.options:
        return "".join(f"{each['kind'].lower()}/{each['metadata']['name']} created\n" for each in made)
    return made[0] if len(made) == 1 else {"apiVersion": "v1", "kind": "List", "items": made}


def _create_named(known: User, command: Command) -> str | None:
    """Create what a command says without a manifest: one of the kinds that tests need most."""
    (kind, name, *more), options = command.words, command.options
    core = f"/api/v1/namespaces/{command.namespace}/serviceaccounts"
    if more or {"--filename", "--output", "--dry-run"} & options.keys():
        return None
    if kind == "namespace":
        known.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    elif kind == "serviceaccount":
        known.ask("POST", core, {"metadata": {"name": name}})
    elif kind == "token":
        seconds = int(options.get("--duration", "1h").removesuffix("h")) * 3600
        made = known.ask("POST", f"{core}/{name}/token", {"spec": {"expirationSeconds": seconds}})
        return str(made["status"]["token"])
    elif kind in {"rolebinding", "clusterrolebinding"}:
        known.ask("POST", str(known.path(f"{kind}.{_RBAC}", command.namespace)), _binding(name, options))
    else:
        return None
    return ""


def _binding(name: str, options: Mapping[str, str]) -> Json:
    role = {"kind": "ClusterRole", "name": options.get("--clusterrole")}
    if "--role" in options:
        role = {"kind": "Role", "name": options["--role"]}
    subject = {"apiGroup": _RBAC, "kind": "User", "name": options.get("--user")}
    if "--serviceaccount" in options:
        namespace, _, account = options["--serviceaccount"].partition(":")
        subject = {"kind": "ServiceAccount", "namespace": namespace, "name": account}
    return {"metadata": {"name": name}, "roleRef": {"apiGroup": _RBAC, **role}, "subjects": [subject]}


def _can_i(known: User, command: Command, _content: str) -> str | None:
    """Whether the user may do what is asked for; if not, kubectl says so and fails."""
    word, verb, what = (*command.words, "", "", "")[:3]
    resource, _, name = what.partition("/")
    path = known.path(resource)
    if word != "can-i" or path is None:
        return None
    *group, _version, plural = path.split("/")[2:]
    asked = {"namespace": command.namespace, "verb": verb, "group": "".join(group), "resource": plural}
    asked |= {"name": name, "subresource": command.options.get("--subresource", "")}
    review = known.ask("POST", _REVIEWS, {"spec": {"resourceAttributes": asked}})
    return "yes" if review["status"]["allowed"] else "no"


_KNOWN: dict[str, set[str]] = {
    "get": {"--output", "--selector", "--field-selector", "--all-namespaces"},
    "label": {"--overwrite"},
    "annotate": {"--overwrite"},
    "patch": {"--type", "--patch", "--output", "--subresource", "--dry-run"},
    "delete": {"--filename", "--wait", "--ignore-not-found"},
    "apply": {"--filename"},
    "create": {
        *("--filename", "--output", "--dry-run", "--validate"),
        *("--duration", "--role", "--clusterrole", "--serviceaccount", "--user"),
    },
    "auth": {"--subresource"},
}
"""The options that are known here, by command."""
_COMMANDS = {
    "get": _get,
    "label": _mark,
    "annotate": _mark,
    "patch": _patch,
    "delete": _delete,
    "apply": _apply,
    "create": _create,
    "auth": _can_i,
}
