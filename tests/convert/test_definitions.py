"""ClusterQueues and Cohorts become the engine's values, with every number exact."""

from fractions import Fraction

import pytest
from pydantic import ValidationError

from admitter.api.cluster_queue import ClusterQueueSpec
from admitter.api.cohort import CohortSpec
from admitter.convert import definitions
from admitter.engine.policy import (
    Cohort,
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
