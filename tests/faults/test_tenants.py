"""The ledger of fault tests and the watcher of tenants share out what there is."""

from tests.cluster.objects import elastic_quota, job
from tests.faults.plan import plan
from tests.faults.tenants import OTHERS


def test_the_ledger_is_not_told_what_tenants_run_but_of_their_quotas() -> None:
    for namespace, told in (("managed-a", False), ("elastic-a", True)):
        made = job(namespace, "work")
        made["metadata"] |= {"uid": "1", "creationTimestamp": "1"}
        assert (OTHERS.parse("jobs", made) is not None) is told
        quota = elastic_quota(namespace, min={"cpu": "1"})
        quota["metadata"] |= {"uid": "2", "generation": 1}
        assert OTHERS.parse("elasticquotas", quota) is not None


def test_tenants_are_part_of_a_plan() -> None:
    assert plan(1, 75.0, 300, 28, 2).operations == 450
