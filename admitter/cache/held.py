"""What counts of a Workload that can't be read: the quota that it holds."""

from admitter.api.conditions import ConditionType, WorkloadState
from admitter.api.forms import is_admission
from admitter.cache.views import Json, WorkloadView, meta
from admitter.convert import workloads


def parse_held(raw: Json, old: WorkloadView | None) -> WorkloadView | None:
    """What counts of a Workload that can't be read: the quota that it holds; None if what is known says that.

    Args:
        raw: the Workload.
        old: what was known of it before; None: nothing.
    """
    status = raw.get("status") or {}
    over = ConditionType.FINISHED in _holding(status) or not is_admission(status.get("admission"))
    if over or (old is not None and old.admission is not None):
        return None
    return WorkloadView(
        *meta(raw["metadata"]),
        created=0.0,
        job=old.job if old is not None else None,
        spec={"queueName": "", "podSets": []},
        admission=workloads.admission(status["admission"]),
        status={"state": WorkloadState.ADMITTED},
        true=frozenset(),
        finished=False,
        size=0,
    )


def _holding(status: Json) -> frozenset[str]:
    """The types of the conditions that hold, as far as they can be read."""
    conditions = status.get("conditions")
    found = [c for c in conditions if isinstance(c, dict)] if isinstance(conditions, list) else []
    return frozenset(str(c.get("type")) for c in found if c.get("status") == "True")
