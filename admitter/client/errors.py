"""What can go wrong between Admitter and the API server."""

import logging
from collections.abc import Mapping
from typing import Any, Final


class ClusterError(Exception):
    """Any failure of talking to the cluster."""


class ConfigurationError(ClusterError):
    """There is no configuration to reach a cluster with: no usable kubeconfig, or not the context in it."""


class UnreachableError(ClusterError):
    """The API server gave no answer, or too late; whether it acted on the request is unknown."""


class DeniedError(ClusterError):
    """The user may not read all that was asked for together."""


class UnreadableError(ClusterError):
    """What the API server has of an object can't be read; the words say which field is wrong, and why."""


class ApiError(ClusterError):
    """The API server refused a request.

    The reason is the server's own word, such as `Forbidden` or `Invalid`. It wants to be asked again
    `retry_after` seconds later, if it said so.
    """

    def __init__(self, status: int, reason: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after


class ConflictError(ApiError):
    """The object is not at the resource version that the request named, or exists already."""


class NotFoundError(ApiError):
    """The object, its namespace or its kind does not exist."""


class InvalidError(ApiError):
    """The object breaks a rule: asking again would change nothing."""


class GoneError(ApiError):
    """The resource version asked for is no longer in the server's history."""


FENCE: Final = "another controller leads"
"""Words of the policy on the status of Workloads."""

_BUSY: Final = frozenset({429, 503, 504})
"""Answers of a server that takes no requests, whatever they ask: too many, not available, too late."""
_UNKNOWN: Final = frozenset({500, 504})
"""Answers of a server that may be working on what was asked."""
_FAILED: Final = 500
"""From here on it is the server that failed, and not the request that was wrong."""


def is_busy(error: BaseException) -> bool:
    """Whether a failure is the server's state, and nothing about what was asked."""
    return isinstance(error, UnreachableError) or (isinstance(error, ApiError) and error.status in _BUSY)


def is_outcome_unknown(error: BaseException) -> bool:
    """Whether the API server may still carry out a write that has failed: `StatusWrites.resolve` asks."""
    return isinstance(error, UnreachableError) or (isinstance(error, ApiError) and error.status in _UNKNOWN)


def is_fenced(error: BaseException) -> bool:
    """Whether the API server refused a write since another process leads, as far as it knows."""
    return isinstance(error, ApiError) and FENCE in error.message


def is_too_late(error: BaseException) -> bool:
    """Whether a write was right once: its object has changed or is gone, or another process leads."""
    return isinstance(error, ConflictError | NotFoundError) or is_fenced(error)


def is_retryable(error: BaseException) -> bool:
    """Whether the same request may succeed later, though nothing has changed."""
    return is_busy(error) or (isinstance(error, ApiError) and error.status >= _FAILED)


def level_of(error: BaseException) -> int:
    """How loud a failure is logged where it is tried again.

    What is the state of the server is told once for all (`admitter.client.throttle`), and a conflict or an
    object that is gone is no fault at all; that one can't be read has been told.
    """
    quiet = is_busy(error) or isinstance(error, ConflictError | NotFoundError | UnreadableError)
    return logging.DEBUG if quiet else logging.WARNING


_BY_STATUS: Mapping[int, type[ApiError]] = {
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    422: InvalidError,
}


def api_error(status: int, body: Mapping[str, Any], retry_after: str | None = None) -> ApiError:
    """The exception for an answer, or an ERROR event of a watch, with a `Status` object that says why."""
    reason = str(body.get("reason") or "Unknown")
    message = str(body.get("message") or f"the API server answered {status}")
    seconds = float(retry_after) if retry_after and retry_after.isdigit() else None
    return _BY_STATUS.get(status, ApiError)(status, reason, message, seconds)
