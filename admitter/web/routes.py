"""Which view answers which request; each is a module of `admitter.web.views`."""

from collections.abc import Mapping
from typing import Final

from admitter.web.asked import Answering
from admitter.web.views import (
    cluster_map,
    mine,
    overview,
    queue,
    quota_tree,
    timeline,
    try_change,
    workload,
)

GET: Final[Mapping[str, Answering]] = {
    "/api/overview": overview.answer,
    "/api/map": cluster_map.answer,
    "/api/map/node": cluster_map.node,
    "/api/tree": quota_tree.answer,
    "/api/sparks": quota_tree.sparks,
    "/api/lending": quota_tree.lending,
    "/api/try": try_change.answer,
    "/api/queue": queue.answer,
    "/api/starts": queue.starts,
    "/api/workloads": queue.rows,
    "/api/mine": mine.answer,
    "/api/mine/starts": mine.starts,
    "/api/workload": workload.answer,
    "/api/outlook": workload.outlook,
    "/api/timeline": timeline.answer,
}
POST: Final[Mapping[str, Answering]] = {
    "/api/try": try_change.tried,
}
