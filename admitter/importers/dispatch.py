"""What importers share: a handler for each kind, metadata, and kinds that stay as they are."""

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from typing import Final

from admitter.documents import ManifestError, parsed
from admitter.importers.reading import Document
from admitter.importers.translation import Json, ManifestSource, Translation, below, said

Handler = Callable[[ManifestSource], None]

PLAIN: Final = {
    ("", "Namespace"),
    ("", "LimitRange"),
    ("", "ResourceQuota"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("node.k8s.io", "RuntimeClass"),
}
"""Kinds of Kubernetes itself that count here as they do anywhere."""

WRITTEN_BY_SERVERS: Final = (
    "apiVersion",
    "kind",
    "status",
    "metadata.uid",
    "metadata.resourceVersion",
    "metadata.generation",
    "metadata.creationTimestamp",
    "metadata.deletionTimestamp",
    "metadata.deletionGracePeriodSeconds",
    "metadata.managedFields",
    "metadata.selfLink",
    "metadata.finalizers",
    "metadata.ownerReferences",
    "metadata.annotations[kubectl.kubernetes.io/last-applied-configuration]",
)


def dispatch(
    documents: Iterable[Document],
    into: Translation,
    handlers: Mapping[tuple[str, str], Handler],
    finish: Callable[[], None] = lambda: None,
) -> None:
    """Have each object translated by the handler of its kind, and account for what is left of it.

    Older objects come first, as they do in queues; those without an age come last. Handlers are by group and
    kind, such as `("batch", "Job")`; both are empty for a document that is no Kubernetes object. Kinds in
    `PLAIN` need none; all others without one are refused. `finish` is called when all objects are known.
    """
    sources = [ManifestSource(document.raw, document.name, into) for document in sorted(documents, key=_age)]
    for source in sources:
        version, kind = source.text("apiVersion"), source.text("kind")
        for path in WRITTEN_BY_SERVERS:
            source.ignored(path)
        if source.text("metadata.generateName"):
            words = f"an API server would add five characters: its name is {source.text('metadata.name')}"
            source.approximated("metadata.generateName", words)
        key = (version.rpartition("/")[0], kind)
        handler = handlers.get(key, copied if key in PLAIN else None)
        if kind and not version:
            source.refused("", "apiVersion: is missing")
        elif handler is not None:
            handler(source)
        elif kind:
            source.refused("", f"{version} {kind} is not known to the importer")
        else:
            source.refused("", "is no Kubernetes object: it has no kind")
    finish()
    for source in sources:
        source.close()


def _age(document: Document) -> tuple[bool, str]:
    meta = document.raw.get("metadata")
    created = meta.get("creationTimestamp") if isinstance(meta, dict) else None
    return (False, created) if isinstance(created, str) else (True, "")


def copied(source: ManifestSource, but: str = "") -> None:
    """Take an object over as it is, without what an API server wrote; `but` says what was changed before."""
    manifest = deepcopy(source.raw)
    manifest.pop("status", None)
    namespace = source.value("metadata.namespace")
    if not isinstance(manifest.get("metadata"), dict) or not source.text("metadata.name"):
        source.refused("", "metadata.name: is missing")
        return
    if namespace is not None and not isinstance(namespace, str):
        source.refused("metadata.namespace", "must be a text")
        return
    manifest["metadata"] = {
        key: each for key, each in manifest["metadata"].items() if not source.known(below("metadata", key))
    }
    if "annotations" in manifest["metadata"]:
        manifest["metadata"]["annotations"] = _kept(source, "metadata.annotations", ())
    source.translated("", f"taken over as it is, but for {but}" if but else "taken over as it is")
    source.add(manifest)


def embedded(source: ManifestSource, path: str, must_be: str, *, fits: bool = True) -> ManifestSource | None:
    """The map that is written as YAML in a field of a ConfigMap; None if it is refused.

    It is refused in the words of `must_be` if it is anything else, or the field may not have it (`fits`).
    """
    place = f"{source.title} {path}"
    try:
        found = [raw for _, raw in parsed(place, source.text(path))]
    except ManifestError as error:
        source.refused(path, str(error))
        return None
    if not fits or len(found) != 1 or not isinstance(found[0], dict):
        source.refused(path, must_be)
        return None
    source.translated(path, "see there")
    return ManifestSource(found[0], place, source.into)


def metadata(source: ManifestSource, name: str, foreign: tuple[str, ...], namespace: str = "") -> Json:
    """The metadata of what an object becomes, with its labels and annotations but those of foreign domains.

    The object's name and namespace must have been accounted for.
    """
    made: Json = {"name": name, **said(namespace=namespace)}
    for part in ("labels", "annotations"):
        path = f"metadata.{part}"
        if kept := _kept(source, path, foreign):
            made[part] = kept
            for key in kept:
                source.translated(below(path, key), "taken over as it is")
    return made


def with_name(handler: Handler) -> Handler:
    """A handler that first names an object without a name after its kind."""

    def handle(source: ManifestSource) -> None:
        metadata = source.raw.setdefault("metadata", {})
        if isinstance(metadata, dict) and "name" not in metadata:
            metadata["name"] = source.text("kind").lower()
            source.approximated("metadata.generateName", f"without a name it becomes {metadata['name']}")
        handler(source)

    return handle


def belongs(key: str, domains: tuple[str, ...]) -> bool:
    """Whether a label, an annotation or a resource is of one of some domains, or of a domain below."""
    owner = key.partition("/")[0]
    return "/" in key and any(owner == domain or owner.endswith(f".{domain}") for domain in domains)


def _kept(source: ManifestSource, path: str, foreign: tuple[str, ...]) -> Json:
    """Labels or annotations that are not accounted for, without those of the other system."""
    return {
        key: each
        for key, each in source.mapping(path).items()
        if not source.known(below(path, key)) and not belongs(key, foreign)
    }
