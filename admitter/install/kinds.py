"""What JobKinds need in a cluster: rights of the controller and of their operators, and policies."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from admitter.api.base import checked
from admitter.api.job_kind import JobKind
from admitter.client.errors import ClusterError, NotFoundError
from admitter.client.transport import Json, Transport
from admitter.documents import bundled, documents
from admitter.kinds.compiled import CompiledKind, InvalidKindError
from admitter.kinds.policies import is_job, operated, policies
from admitter.names import (
    API_VERSION,
    GROUP,
    JOB_KIND_LABEL,
    KIND_POLICY,
    NAMESPACE,
    OPERATE_VERB,
    READER_LABEL,
    SERVICE_ACCOUNT,
)

AUTO, ALL, NONE = "auto", "all", "none"
PART_OF: Final = {"app.kubernetes.io/part-of": "admitter"}
COLLECTIONS: Final = {
    "ClusterRole": "rbac.authorization.k8s.io/v1",
    "ClusterRoleBinding": "rbac.authorization.k8s.io/v1",
    "ValidatingAdmissionPolicy": "admissionregistration.k8s.io/v1",
    "ValidatingAdmissionPolicyBinding": "admissionregistration.k8s.io/v1",
}
"""Kinds of what is installed for JobKinds, without the policies that change objects, and their versions."""
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_RBAC: Final = "rbac.authorization.k8s.io"
_ACCOUNT: Final = "system:serviceaccount:"
WEB_ACCOUNT: Final = "admitter-web"
"""The ServiceAccount of the page, where the Helm chart has brought it."""


class KindChoiceError(ClusterError):
    """A choice of kinds that can't be installed."""


def shipped() -> dict[str, Json]:
    """The JobKinds that come with Admitter, by name."""
    found = (each for _, each in documents([str(bundled("manifests") / "kinds")]))
    return {each["metadata"]["name"]: each for each in found}


def chosen(choice: str) -> dict[str, Json]:
    """The JobKinds of a choice that needs no cluster, by name: all, none, names with commas, and files.

    Raises:
        KindChoiceError: there is no such JobKind.
        ManifestError: a file can't be read.
    """
    known = shipped()
    if choice in {ALL, NONE}:
        return known if choice == ALL else {}
    found: dict[str, Json] = {}
    for word in filter(None, (each.strip() for each in choice.split(","))):
        if word in known:
            found[word] = known[word]
        elif "/" in word or word.endswith((".yaml", ".yml", ".json")):
            found |= dict(_named(each) for _, each in documents([word]))
        else:
            raise KindChoiceError(f"there is no JobKind {word}: these are {', '.join(known)}, or name a file")
    return _with_job(found)


def _named(manifest: object) -> tuple[str, Json]:
    if not isinstance(manifest, dict) or (manifest.get("apiVersion"), manifest.get("kind")) != (
        API_VERSION,
        "JobKind",
    ):
        raise KindChoiceError(
            f"{manifest if isinstance(manifest, Exception) else 'a document'}: is no JobKind"
        )
    return str((manifest.get("metadata") or {}).get("name")), manifest


def _with_job(found: dict[str, Json]) -> dict[str, Json]:
    """With the Job of Kubernetes, which objects of other kinds may have within."""
    return {**found, "job": shipped()["job"]} if found else {}


async def chosen_for(transport: Transport, choice: str) -> dict[str, Json]:
    """The JobKinds of a choice for a cluster: `auto` are those of which the definition is there.

    Those that were installed before belong to it, so that their policies are those of this release. The
    operators of a kind stay those that the cluster has for it.

    Raises:
        ClusterError: the cluster does not answer, or there is no such JobKind.
        ManifestError: a file can't be read.
    """
    there = {each["metadata"]["name"]: each for each in await _installed(transport)}
    if choice == AUTO:
        found = {name: each for name, each in shipped().items() if await _is_there(transport, each)}
        found = _with_job({**there, **found})
    else:
        found = chosen(choice)
    for name, each in found.items():
        operators = (there.get(name) or {}).get("spec", {}).get("operators")
        found[name] = with_operators(each, operators) if operators else each
    return found


async def _installed(transport: Transport) -> list[Json]:
    try:
        listed = await transport.get(
            f"/apis/{API_VERSION}/jobkinds", {"labelSelector": "app.kubernetes.io/part-of"}
        )
    except NotFoundError:
        return []
    found: list[Json] = [
        {
            "apiVersion": API_VERSION,
            "kind": "JobKind",
            "metadata": {"name": each["metadata"]["name"]},
            "spec": each["spec"],
        }
        for each in listed["items"]
    ]
    return found


async def _is_there(transport: Transport, manifest: Json) -> bool:
    resource = manifest["spec"]["resource"]
    if "." not in resource["group"]:
        return False
    try:
        found = await transport.get(f"{DEFINITIONS}/{resource['plural']}.{resource['group']}")
    except NotFoundError:
        return False
    return any(each["name"] == resource["version"] and each["served"] for each in found["spec"]["versions"])


def with_operators(manifest: Json, operators: Iterable[str]) -> Json:
    """A JobKind with other accounts of its operator; NAMESPACE:NAME stands for a ServiceAccount."""
    full = [each if each.count(":") != 1 else f"{_ACCOUNT}{each}" for each in operators]
    return {**manifest, "spec": {**manifest["spec"], "operators": full}}


def installed_for(kinds: Mapping[str, Json]) -> Iterator[Json]:
    """All that is applied for JobKinds, each with its rights and policies.

    Raises:
        KindChoiceError: one is wrong; the words name the fields.
    """
    read = {name: _read(name, each) for name, each in kinds.items()}
    every = [_read(name, each) for name, each in shipped().items() if name not in read] + list(read.values())
    for name, kind in read.items():
        manifest = kinds[name]
        labels = {**manifest["metadata"].get("labels", {}), **PART_OF}
        if not is_job(kind.spec.resource):  # they come first: the controller begins once the JobKind is there
            yield from _rights(kind)
            yield from policies(kind, every)
        yield {**manifest, "metadata": {**manifest["metadata"], "labels": labels}}


def _read(name: str, manifest: Json) -> JobKind:
    kind, problems = checked(JobKind, manifest)
    try:
        if kind is not None:
            CompiledKind(kind)
    except InvalidKindError as error:
        problems = error.problems
    if kind is None or problems:
        raise KindChoiceError(f"JobKind {name}: {'; '.join(map(str, problems))}")
    return kind


def _rights(kind: JobKind) -> Iterator[Json]:
    """What the controller and readers may do with the objects, and that the operator is the operator."""
    spec, resource = kind.spec, kind.spec.resource
    name = f"{KIND_POLICY}{kind.metadata.name}"
    verbs = ["get", "list", "watch", "patch"]
    rules: list[Json] = [{"apiGroups": [resource.group], "resources": [resource.plural], "verbs": verbs}]
    groups = sorted({each.api_version.rpartition("/")[0] for each in spec.related})
    rules += ({"apiGroups": [each], "resources": ["*"], "verbs": verbs[:3]} for each in groups)
    account = {"kind": "ServiceAccount", "name": SERVICE_ACCOUNT, "namespace": NAMESPACE}
    yield from _role(kind, name, rules, [account])
    readable = [{**each, "verbs": verbs[:3]} for each in rules]
    page = account | {"name": WEB_ACCOUNT}
    yield from _role(kind, f"{name}-reader", readable, [page], **{READER_LABEL: "true"})
    operates: Json = {"apiGroups": [GROUP], "resources": ["jobkinds"], "verbs": [OPERATE_VERB]}
    yield from _role(
        kind,
        f"{name}-operator",
        [operates | {"resourceNames": [operated(resource)]}],
        [_subject(each) for each in spec.operators],
    )


def _role(kind: JobKind, name: str, rules: list[Json], subjects: list[Json], **labels: str) -> Iterator[Json]:
    labels = {**PART_OF, JOB_KIND_LABEL: kind.metadata.name, **labels}
    head = {"apiVersion": f"{_RBAC}/v1", "metadata": {"name": name, "labels": labels}}
    yield {**head, "kind": "ClusterRole", "rules": rules}
    if subjects:
        reference = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name}
        yield {**head, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": subjects}


def _subject(account: str) -> Json:
    namespace, _, name = account.removeprefix(_ACCOUNT).partition(":")
    if account.startswith(_ACCOUNT) and name:
        return {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    return {"apiGroup": _RBAC, "kind": "User", "name": account}
