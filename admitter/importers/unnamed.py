"""Objects that an API server would have named, or that stand without a name in a document."""

from admitter.importers.dispatch import Handler
from admitter.importers.translation import ManifestSource


def with_name(handler: Handler) -> Handler:
    """A handler that gives an object without a name one first: of its generateName, or of its kind."""

    def handle(source: ManifestSource) -> None:
        metadata = source.raw.setdefault("metadata", {})
        if isinstance(metadata, dict) and "name" not in metadata:
            name = source.text("metadata.generateName").rstrip("-.") or source.text("kind").lower()
            source.approximated("metadata.generateName", f"without a name it becomes {name}")
            metadata["name"] = name
        handler(source)

    return handle
