"""ClusterQueues and Cohorts become the engine's values, with every number exact."""

from fractions import Fraction

import pytest
from pydantic import ValidationError

from admitter.api.cluster_queue import ClusterQueueSpec
from admitter.api.cohort import CohortSpec
from admitter.convert import definitions
from admitter.engine.policy import (
    Cohort,
    EvictionLimit,
    Fungibility,
    Group,
    PreemptionPolicy,
    Queue,
    Quota,
    Reclaim,
    Strategy,
)

CPU = [{"name": "cpu", "flavors": [{"name": "f", "quota": {"min": "1500m", "max": 3, "lendingLimit": 0}}]}]


def test_a_cluster_queue() -> None:
    spec = {
        "cohort": "all",
        "queueingStrategy": "StrictFIFO",
        "resources": CPU,
        "flavorFungibility": {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "Preempt"},
        "preemption": {"reclaimWithinCohort": "Any"},
        "fairSharing": {"weight": "250m"},
    }
    assert definitions.queue("team", ClusterQueueSpec.model_validate(spec)) == Queue(
        "team",
        Strategy.STRICT_FIFO,
        (Group(("cpu",), ("f",)),),
        {("f", "cpu"): Quota(1500, 3000, 0)},
        "all",
        Fungibility(borrow=False, preempt=True),
        PreemptionPolicy(reclaim=Reclaim.ANY),
        weight=Fraction(1, 4),
    )


def test_a_cohort() -> None:
    spec = {"parent": "top", "resources": CPU, "fairSharing": {"enabled": True, "weight": 0}}
    expected = Cohort("all", "top", {("f", "cpu"): Quota(1500, 3000, 0)}, Fraction(0), fair=True)
    assert definitions.cohort("all", CohortSpec.model_validate(spec)) == expected


def test_what_is_not_said_counts_as_one() -> None:
    assert definitions.queue("team", ClusterQueueSpec()).weight == 1
    assert definitions.cohort("all", CohortSpec()) == Cohort("all")


@pytest.mark.parametrize("weight", ["-1", "much", "", 1.5])
def test_a_weight_is_a_quantity(weight: object) -> None:
    with pytest.raises(ValidationError, match="weight"):
        ClusterQueueSpec.model_validate({"fairSharing": {"weight": weight}})


def test_a_threshold_of_priority_is_refused_where_priority_is_ignored() -> None:
    borrowing = {"policy": "GuaranteedShare", "maxPriorityThreshold": 5}
    with pytest.raises(ValidationError, match="maxPriorityThreshold means nothing with GuaranteedShare"):
        ClusterQueueSpec.model_validate({"preemption": {"borrowWithinCohort": borrowing}})


def test_limits_on_evictions_of_a_queue_of_each_of_its_workloads_and_of_a_cohort() -> None:
    limits = {"maxEvictions": {"count": 100, "per": "1d"}}
    each = {"maxEvictionsPerWorkload": {"count": 10, "per": "90s"}}
    made = definitions.queue("team", ClusterQueueSpec.model_validate({"preemption": limits | each}))
    assert (made.max_evictions, made.eviction_limit) == (EvictionLimit(100, 86_400), EvictionLimit(10, 90))
    above = definitions.cohort("all", CohortSpec.model_validate({"preemption": limits}))
    assert above == Cohort("all", max_evictions=EvictionLimit(100, 86_400))


@pytest.mark.parametrize("spec", [ClusterQueueSpec, CohortSpec])
@pytest.mark.parametrize("limit", [{"count": 101, "per": "1h"}, {"count": -1, "per": "1h"}, {"count": 1}])
def test_no_more_evictions_are_counted_than_are_remembered(
    spec: type[ClusterQueueSpec | CohortSpec], limit: dict[str, object]
) -> None:
    with pytest.raises(ValidationError, match="maxEvictions"):
        spec.model_validate({"preemption": {"maxEvictions": limit}})
