"""What must not end the process: a defect that one object brings out, where many are worked on."""

from collections.abc import Awaitable

import structlog

from admitter.engine.quota.tree import Node

log = structlog.get_logger(__name__)


async def guarded(work: Awaitable[None], what: str) -> None:
    """Do something about one object; a defect that comes of it is logged as `what`, and others go on."""
    try:
        await work
    except Exception:  # whatever one object brings out
        log.exception("a defect is passed over", what=what)


def tree_failed(root: Node, error: Exception) -> None:
    """Log that a tree can't be decided; it is tried again when something changes in it."""
    log.error("a tree can't be decided", kind=root[0], name=root[1], exc_info=error)
