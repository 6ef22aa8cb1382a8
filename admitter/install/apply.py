"""The manifests that come with the package: their server-side apply, and their removal."""

import asyncio
import operator
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from tenacity import AsyncRetrying, retry_if_result, wait_fixed

from admitter.api.kinds import KINDS
from admitter.client.errors import ApiError, ClusterError, NotFoundError
from admitter.client.policies import GROUP as ADMISSION
from admitter.client.policies import MUTATING, VERSIONS, mutating_version
from admitter.client.transport import Json, Transport
from admitter.documents import bundled, parsed
from admitter.install.kinds import COLLECTIONS, installed_for
from admitter.names import API_VERSION, GROUP, JOB_KIND_LABEL, KIND_POLICY, QUEUE_LABEL

LEFT_OUT: Final = "left out: this API server does not have the kind"

_RUNNING: Final = {
    *("ConfigMap", "ResourceQuota", "Service", "NetworkPolicy", "PodDisruptionBudget", "Deployment")
}
"""The kinds of what runs the controller in the cluster."""
WAIT_SECONDS: Final = 60
LOOK_SECONDS: Final = 0.2


def manifests(*, deployment: bool, image: str | None = None) -> Iterator[Json]:
    """Everything to apply, in order.

    With a deployment the controller is to run in the cluster, of an image of its own if one is given.
    """
    for folder in ("crds", "manifests"):
        for path in sorted(bundled(folder).glob("*.yaml")):
            for _, document in parsed(path.name, path.read_text()):
                if image and document["kind"] == "Deployment":
                    document["spec"]["template"]["spec"]["containers"][0]["image"] = image
                if deployment or document["kind"] not in _RUNNING:
                    yield document


class InstallError(ClusterError):
    """The cluster did not take what was applied."""


@dataclass(frozen=True, slots=True)
class ApplyOutcome:
    """What became of one object: its kind, its name, and a word or a sentence."""

    kind: str
    name: str
    result: str


def object_path(manifest: Json) -> str:
    version, metadata = manifest["apiVersion"], manifest["metadata"]
    root = f"/api/{version}" if "/" not in version else f"/apis/{version}"
    namespace = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    kind = manifest["kind"].lower()
    plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"
    return f"{root}{namespace}/{plural}/{metadata['name']}"


async def install(
    transport: Transport,
    *,
    deployment: bool,
    image: str | None = None,
    report: Callable[[ApplyOutcome], None] = lambda _: None,
) -> list[ApplyOutcome]:
    """Apply the bundle as an administrator, and wait until the cluster works with it.

    With a deployment the controller is to run in the cluster, of an image of its own if one is given. Each
    outcome is reported as it comes.

    Raises:
        ClusterError: the cluster refuses an object, or does not take it up within a minute.
    """
    return await _apply_all(transport, list(manifests(deployment=deployment, image=image)), report)


async def install_kinds(
    transport: Transport,
    kinds: Mapping[str, Json],
    report: Callable[[ApplyOutcome], None] = lambda _: None,
) -> list[ApplyOutcome]:
    """Apply JobKinds with their rights and policies, once the bundle is there.

    What an earlier description of one of them needed, and this one does not, is deleted.

    Raises:
        ClusterError: one of them is wrong, or as for the bundle.
    """
    bundle = list(installed_for(kinds))
    outcomes = await _apply_all(transport, bundle, report)
    needed = {(each["kind"], each["metadata"]["name"]) for each in bundle}
    for each in reversed(await _of_kinds(transport, await mutating_version(transport))):
        what = (each["kind"], each["metadata"]["name"])
        if what not in needed and each["metadata"]["labels"][JOB_KIND_LABEL] in kinds:
            await transport.delete(object_path(each), {"propagationPolicy": "Background"})
            outcomes.append(ApplyOutcome(*what, "deleted: its JobKind needs it no more"))
            report(outcomes[-1])
    return outcomes


async def _apply_all(
    transport: Transport, bundle: list[Json], report: Callable[[ApplyOutcome], None]
) -> list[ApplyOutcome]:
    outcomes = []
    version = await mutating_version(transport)
    for manifest in _in_version(version, bundle):
        left_out = manifest["kind"] in MUTATING and version is None
        result = LEFT_OUT if left_out else await _apply(transport, manifest)
        outcome = ApplyOutcome(manifest["kind"], manifest["metadata"]["name"], result)
        outcomes.append(outcome)
        report(outcome)
    changing = {each["metadata"]["name"] for each in bundle if each["kind"] in MUTATING and version}
    for manifest in bundle:
        if manifest["kind"] in _READY:
            await _wait(transport, manifest)
        elif manifest["kind"] == "JobKind" and f"{KIND_POLICY}{manifest['metadata']['name']}" in changing:
            await _wait_for_suspension(transport, manifest)
    return outcomes


def _in_version(version: str | None, bundle: Iterable[Json]) -> Iterator[Json]:
    """The bundle, with the policies that change objects in a version that the API server has."""
    for manifest in bundle:
        changes = manifest["kind"] in MUTATING
        yield manifest | {"apiVersion": f"{ADMISSION}/{version or VERSIONS[0]}"} if changes else manifest


async def _apply(transport: Transport, manifest: Json) -> str:
    path = object_path(manifest)
    before = await _present(transport, manifest)
    if "deletionTimestamp" in before.get("metadata", {}):  # it would take what is applied with it
        await _gone(transport, manifest)
        before = {}
    if before and manifest["kind"] == "ConfigMap":  # an administrator's, once it is there
        same = before.get("data") == manifest["data"]
        return "unchanged" if same else "kept: what it says is yours to change"
    try:
        after = await transport.apply(path, manifest)
    except ClusterError as error:
        raise InstallError(f"{_named(manifest)}: {error}") from error
    if not before:
        return "created"
    return "unchanged" if _content(before) == _content(after) else "configured"


def _content(found: Json) -> Json:
    """What of an object an administrator decides; the rest changes by itself."""
    kept = {"name", "namespace", "labels", "annotations"}
    metadata = {name: value for name, value in found["metadata"].items() if name in kept}
    return {name: value for name, value in found.items() if name != "status"} | {"metadata": metadata}


def _established(found: Json) -> bool:
    conditions: list[Any] = found.get("status", {}).get("conditions") or []
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


def _type_checked(found: Json) -> bool:
    status = found.get("status", {})
    if status.get("observedGeneration") != found["metadata"].get("generation"):
        return False
    warnings = (status.get("typeChecking") or {}).get("expressionWarnings")
    if warnings:
        raise InstallError("; ".join(f"{w['fieldRef']}: {w['warning'].splitlines()[0]}" for w in warnings))
    return True


_READY: Final[dict[str, Callable[[Json], bool]]] = {
    "CustomResourceDefinition": _established,
    "ValidatingAdmissionPolicy": _type_checked,
}


async def _wait(transport: Transport, manifest: Json) -> None:
    async def is_ready() -> bool:
        found = await transport.get(object_path(manifest))
        return _READY[manifest["kind"]](found)

    await _until(is_ready, f"{_named(manifest)} is not taken up")


async def _wait_for_suspension(transport: Transport, job_kind: Json) -> None:
    """Wait until the policy that stops objects of a kind acts, which no status tells.

    The API server takes it up a second later, and up to half a minute later if the definition is new: until
    then it refuses every object. One that the policy can't change tells: the refusal names the policy.
    """
    resource, policy = job_kind["spec"]["resource"], f"{KIND_POLICY}{job_kind['metadata']['name']}"
    version = f"{resource['group']}/{resource['version']}"
    head = {"apiVersion": version, "kind": resource["kind"]}
    tried = {**head, "metadata": {"name": policy, "labels": {QUEUE_LABEL: policy}}, "spec": ""}

    async def acts() -> bool:
        path = f"/apis/{version}/namespaces/default/{resource['plural']}"
        try:
            await transport.create(path, tried, {"dryRun": "All"})
        except NotFoundError:
            return True  # there is no such definition yet
        except ApiError as error:
            return f"'{policy}'" in error.message
        return False

    await _until(acts, f"{_named(job_kind)}: its policy does not act")


async def _gone(transport: Transport, manifest: Json) -> None:
    async def is_gone() -> bool:
        found = await _present(transport, manifest)
        if found and manifest["kind"] == "CustomResourceDefinition":
            await _remind(transport, manifest, found)
        return not found

    await _until(is_gone, f"{_named(manifest)} is being deleted, and still there")


async def _remind(transport: Transport, manifest: Json, found: Json) -> None:
    """Let the API server go on with the deletion of a definition.

    If its store is not ready at the first attempt it may forget about the next for minutes, until the
    definition changes.
    """
    conditions: list[Any] = (found.get("status") or {}).get("conditions") or []
    if any(each.get("reason") == "InstanceDeletionFailed" for each in conditions):
        metadata = {"annotations": {f"{GROUP}/deletion-tried-at": found["metadata"]["resourceVersion"]}}
        with suppress(NotFoundError):
            await transport.patch(object_path(manifest), {"metadata": metadata})


async def _until(holds: Callable[[], Awaitable[bool]], otherwise: str) -> None:
    looking = AsyncRetrying(retry=retry_if_result(operator.not_), wait=wait_fixed(LOOK_SECONDS))
    try:
        async with asyncio.timeout(WAIT_SECONDS):  # a call may take long itself
            await looking(holds)
    except TimeoutError as error:
        raise InstallError(f"{otherwise} after {WAIT_SECONDS} s") from error


async def _present(transport: Transport, manifest: Json) -> Json:
    try:
        return await transport.get(object_path(manifest))
    except NotFoundError:
        return {}


def _named(manifest: Json) -> str:
    return f"{manifest['kind']} {manifest['metadata']['name']}"


async def _of_kinds(transport: Transport, version: str | None) -> list[Json]:
    """What was installed for JobKinds; they themselves go with their definition."""
    found: list[Json] = []
    mutating = {kind: f"{ADMISSION}/{version}" for kind in MUTATING if version is not None}
    for kind, api in (COLLECTIONS | mutating).items():
        path = object_path({"apiVersion": api, "kind": kind, "metadata": {"name": ""}})
        listed = await transport.get(path.removesuffix("/"), {"labelSelector": JOB_KIND_LABEL})
        found += ({**each, "apiVersion": api, "kind": kind} for each in listed["items"])
    return found


async def counted(transport: Transport) -> dict[str, int]:
    counts = {}
    for plural in (kind.plural for kind in KINDS):
        try:
            listed = await transport.get(f"/apis/{API_VERSION}/{plural}", {"limit": "1"})
        except NotFoundError:
            continue
        rest = listed["metadata"].get("remainingItemCount", 0)
        counts[plural] = len(listed["items"]) + rest
    return counts


async def uninstall(transport: Transport, report: Callable[[ApplyOutcome], None] = lambda _: None) -> None:
    """Delete the bundle, controller and policies first, definitions last, and wait until all is gone.

    Raises:
        ClusterError: the cluster refuses, or has not removed an object after a minute.
    """
    deleted = []
    version = await mutating_version(transport)
    bundle = [*manifests(deployment=True), *await _of_kinds(transport, version)]
    for manifest in reversed(list(_in_version(version, bundle))):
        try:
            await transport.delete(object_path(manifest), {"propagationPolicy": "Background"})
        except NotFoundError:
            continue
        deleted.append(manifest)
        report(ApplyOutcome(manifest["kind"], manifest["metadata"]["name"], "deleted"))
    for manifest in deleted:
        await _gone(transport, manifest)
