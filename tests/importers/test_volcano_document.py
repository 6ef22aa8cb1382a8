"""Volcano's page on namespaces that share a queue, imported, and simulated to do what it says (004)."""

from tests.importers.importing import imported
from tests.importers.trial import by_name

WEIGHT = """
apiVersion: v1
kind: ResourceQuota
metadata:
  namespace: default
spec:
  hard:
    limits.memory: 2Gi
    volcano.sh/namespace.weight: 1
"""


def test_the_quota_of_the_page_gets_a_name_and_keeps_its_weight() -> None:
    (quota,) = by_name(imported("volcano", WEIGHT), "ResourceQuota").values()
    assert quota["metadata"] == {"namespace": "default", "name": "resourcequota"}
    assert quota["spec"]["hard"] == {"limits.memory": "2Gi", "admitter.dev/namespace.weight": "1"}


def test_a_remark_behind_the_weight_is_no_weight() -> None:
    text = WEIGHT.rstrip() + "  <- this field represent the weight of this namespace\n"
    (quota,) = by_name(imported("volcano", text), "ResourceQuota").values()
    assert quota["spec"]["hard"]["admitter.dev/namespace.weight"] == "1"
