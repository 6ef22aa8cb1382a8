"""What is read of the API server: a collection, how its objects are parsed, and where they are kept.

Whoever follows it imports `admitter.client.informer`. Nothing here needs a network.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic

from admitter.client.store import Store, V

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Source(Generic[V]):
    """A collection of the API server, and the store for what is in it.

    Attributes:
        path: of the collection, such as `/apis/batch/v1/jobs`.
        parse: keeps the fields that are used.
        selector: a label selector, to watch less than everything.
        store: where the views go.
    """

    path: str
    parse: Callable[[Json], V]
    selector: str = ""
    store: Store[V] = field(default_factory=Store)


def parsed(parse: Callable[[Json], V], item: Json, path: str) -> V | None:
    """The view of an object; one that can't be read is left out and named, and harms no other."""
    try:
        return parse(item)
    except Exception:
        import structlog  # noqa: PLC0415  # slow to load, and hardly ever needed

        metadata: Json = item.get("metadata", {})
        log = structlog.get_logger(__name__)
        log.exception(
            "object left out: it can't be read",
            path=path,
            namespace=metadata.get("namespace", ""),
            name=metadata.get("name", ""),
        )
        return None
