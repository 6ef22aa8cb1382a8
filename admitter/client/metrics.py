"""What is counted of the way to the API server: calls, failed writes, watches that broke off, pressure."""

from functools import lru_cache, partial
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge

from admitter.client.errors import ApiError, ClusterError
from admitter.client.throttle import Throttle

NO_ANSWER: Final = "none"
"""Stands in the place of an HTTP status where there was no answer."""

_VERBS: Final = {"POST": "create", "PATCH": "patch", "DELETE": "delete"}


class CallMetrics:
    """Counts what one process asks of its API server."""

    def __init__(self, registry: CollectorRegistry) -> None:
        gauge, counter = partial(Gauge, registry=registry), partial(Counter, registry=registry)
        self._calls = counter(
            "admitter_api_calls",
            "Calls to the API server, each attempt of those that were repeated too.",
            ("verb", "resource", "code"),
        )
        self._counts: dict[tuple[str, str, str], Counter] = {}  # by labels: to find one takes long
        self._write_errors = counter(
            "admitter_api_write_errors",
            "Writes that failed, repeated as often as they are; 409 is a conflict, which is ordinary.",
            ("resource", "code"),
        )
        self._watch_errors = counter(
            "admitter_watch_errors", "Lists and watches that failed or broke off.", ("resource",)
        )
        self._watch_restarts = counter(
            "admitter_watch_restarts",
            "Watches that were opened again, after errors and after their ordinary end.",
            ("resource",),
        )
        self._credit = gauge(
            "admitter_api_credit",
            "How many calls may be under way at a time; less than the most while the API server is busy.",
        )
        self._waiting = gauge(
            "admitter_api_waiting_calls", "Calls that are held back until the API server takes more."
        )

    def called(self, method: str, path: str, code: str) -> None:
        """A call was made; `code` is the HTTP status, or `NO_ANSWER`."""
        labels = (*request_of(method, path), code)
        count = self._counts.get(labels)
        if count is None:
            count = self._counts[labels] = self._calls.labels(*labels)
        count.inc()

    def watched(self, path: str, code: str) -> None:
        """A watch was opened, or that failed."""
        self._calls.labels("watch", resource_of(path)[0], code).inc()

    def write_failed(self, path: str, error: ClusterError) -> None:
        """A write failed for good; the caller gets the error."""
        code = str(error.status) if isinstance(error, ApiError) else NO_ANSWER
        self._write_errors.labels(resource_of(path)[0], code).inc()

    def watch_failed(self, path: str) -> None:
        """A list or a watch failed, or a watch broke off."""
        self._watch_errors.labels(resource_of(path)[0]).inc()

    def watch_restarted(self, path: str) -> None:
        """A watch is opened that is not the first one."""
        self._watch_restarts.labels(resource_of(path)[0]).inc()

    def follow(self, throttle: Throttle) -> None:
        """Show from now on how much a throttle lets through, in place of an earlier one."""
        self._credit.set_function(lambda: throttle.credit)
        self._waiting.set_function(lambda: throttle.waiting)


def request_of(method: str, path: str) -> tuple[str, str]:
    """The verb of a request as RBAC names it, and its resource."""
    resource, named = resource_of(path)
    return _VERBS.get(method) or ("get" if named else "list"), resource


def resource_of(path: str) -> tuple[str, bool]:
    """The resource that a path leads to, with its subresource, and whether one object of it is named.

    Paths that lead to no resource, such as that of an API group, are `other`: labels stay few.
    """
    parts = path.partition("?")[0].strip("/").split("/")
    begin = {"api": 2, "apis": 3}.get(parts[0], len(parts))
    rest = parts[begin:]
    if len(rest) > 2 and rest[0] == "namespaces":
        rest = rest[2:]
    return (_title(rest[0], *rest[2:3]), len(rest) > 1) if rest else ("other", True)


@lru_cache(maxsize=256)
def _title(resource: str, subresource: str = "") -> str:
    return f"{resource}/{subresource}" if subresource else resource
