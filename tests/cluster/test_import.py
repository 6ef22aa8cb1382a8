"""What is imported is what the API server takes."""

import json

import pytest

from admitter.importers.systems import SystemName
from admitter.sandbox.cluster import Cluster
from tests.importers.importing import imported
from tests.importers.samples import SAMPLES
from tests.importers.test_scheduler_plugins_document import HIGH, deployment, quota

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("system", SAMPLES)
def test_the_api_server_takes_all_that_is_imported(
    installed: Cluster, namespace: str, system: SystemName
) -> None:
    quotas = [quota(1, 0), quota(2, 0), quota(3, 1), HIGH, deployment(1), deployment(2, replicas=2)]
    more = quotas if system is SystemName.SCHEDULER_PLUGINS else []
    into = imported(system, *SAMPLES[system], *more)
    manifests = [m for m in into.in_order() if m["kind"] != "Namespace"]
    assert len(manifests) >= 5
    for manifest in manifests:
        if "namespace" in manifest["metadata"]:  # which must be there, even for a trial
            manifest["metadata"]["namespace"] = namespace
    installed.run_kubectl(
        "apply",
        "--server-side",
        "--dry-run=server",
        "--validate=strict",
        "--force-conflicts",
        "--filename=-",
        content=json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}),
    )
