"""Where manifests of other systems come from: files, standard input, or a cluster."""

from collections.abc import Iterable
from dataclasses import dataclass

from admitter.client.errors import NotFoundError
from admitter.client.pages import pages
from admitter.client.transport import Transport
from admitter.documents import ManifestError, documents, flat, title, without_nulls
from admitter.importers.translation import Fidelity, Json, Translation


@dataclass(frozen=True, slots=True)
class Document:
    """An object to translate, and how the report names it: by kind and name, or where it was found."""

    name: str
    raw: Json

    @property
    def group(self) -> str:
        """The group of its API; empty for the core, and for what is no Kubernetes object."""
        version = str(self.raw.get("apiVersion", ""))
        return version.rpartition("/")[0]

    @property
    def kind(self) -> str:
        """Its kind; empty for what is no Kubernetes object."""
        return str(self.raw.get("kind", ""))

    @property
    def namespace(self) -> str:
        """Its namespace; `default` if it names none, as for an object that is applied so."""
        metadata = self.raw.get("metadata")
        given = metadata.get("namespace") if isinstance(metadata, dict) else None
        return given if isinstance(given, str) and given else "default"


@dataclass(frozen=True, slots=True)
class Collection:
    """Objects of a kind in a cluster.

    Of the paths, such as `/apis/batch/v1/jobs`, the first that the server knows is read.
    """

    paths: tuple[str, ...]
    labels: str = ""


def from_paths(paths: Iterable[str], into: Translation) -> list[Document]:
    """All documents in files and folders; `-` is standard input. What is no map, or no YAML, is refused.

    Raises:
        ManifestError: a file can't be read; with its name and the reason.
    """
    found: list[Document] = []
    for place, raw in documents(paths):
        if isinstance(raw, dict):
            found.append(document(place, raw))
        else:
            words = str(raw) if isinstance(raw, ManifestError) else "must be a map of fields"
            into.find(place, "", Fidelity.REFUSED, words)
    return found


async def from_cluster(transport: Transport, collections: Iterable[Collection]) -> list[Document]:
    """All objects of some collections; what the server does not know is absent."""
    found: list[Document] = []
    for collection in collections:
        for path in collection.paths:
            try:
                found += await _read(transport, path, collection.labels)
            except NotFoundError:
                continue
            break
    return found


def document(place: str, raw: Json) -> Document:
    name = title(raw, place)
    kind = raw.get("kind")
    return Document(f"{kind} of {place}" if kind and name == place else name, raw)


async def _read(transport: Transport, path: str, labels: str) -> list[Document]:
    selector = {"labelSelector": labels} if labels else {}
    found: list[Document] = []
    async for page in pages(transport, path, selector):
        found += [document(path, raw) for raw in flat(without_nulls(page)) if isinstance(raw, dict)]
    return found
