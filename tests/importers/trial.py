"""What came of an import, looked up and tried out."""

from pathlib import Path

from admitter.importers.reading import Document
from admitter.importers.translation import Fidelity, Json, Translation
from tests.cluster.objects import job
from tests.simulate.test_simulate import simulate


def by_name(into: Translation, kind: str) -> dict[str, Json]:
    """The manifests of a kind by their names."""
    return {each["metadata"]["name"]: each for each in into.manifests if each["kind"] == kind}


def specs(into: Translation, kind: str) -> dict[str, Json]:
    return {name: each["spec"] for name, each in by_name(into, kind).items()}


def quotas(spec: Json) -> dict[str, Json]:
    """The quota by resource of a spec of which the resources come in the flavor of any node."""
    resources = spec.get("resources", [])
    assert all([flavor["name"] for flavor in each["flavors"]] == ["default"] for each in resources)
    return {each["name"]: each["flavors"][0].get("quota", {}) for each in resources}


def account(into: Translation) -> dict[str, Fidelity]:
    """What became of each field; the worst if it was told more than once."""
    found: dict[str, Fidelity] = {}
    for finding in into.findings:
        known = found.get(finding.field, Fidelity.TRANSLATED)
        found[finding.field] = max(known, finding.outcome, key=lambda outcome: outcome.severity)
    return found


def words(into: Translation, field: str) -> str:
    """What the report says of a field."""
    return "; ".join(finding.words for finding in into.findings if finding.field == field)


def from_last_to_first(given: list[Document]) -> list[Document]:
    """Some objects as if the last were the oldest."""
    backward = given[::-1]
    for day, each in enumerate(backward, start=1):
        if "metadata" in each.raw:
            each.raw["metadata"]["creationTimestamp"] = f"2026-01-{day:02}T00:00:00Z"
    return backward


def node(name: str, **allocatable: str) -> Json:
    """A node that is ready, with some cpu and memory."""
    status = {
        "allocatable": {"pods": "110", **allocatable},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def one_cpu_jobs(namespace: str, queue: str | None, count: int, cpu: str = "1") -> list[Json]:
    """Jobs of a queue, one as old as the other."""
    jobs = [
        job(
            namespace,
            f"{namespace}-{queue or 'none'}-{number}",
            requests={"cpu": cpu},
            seconds=None,
            queue=queue,
        )
        for number in range(count)
    ]
    for each in jobs:
        each["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    return jobs


def cpu_in_use(result: Json) -> dict[str, int]:
    """The whole CPUs in use by queue."""
    return {
        queue["name"]: sum(
            int(resources["cpu"]["used"]) for resources in queue["usage"].values() if "cpu" in resources
        )
        for queue in result["clusterQueues"]
    }


def run(tmp_path: Path, into: Translation, *more: Json) -> Json:
    """What a simulation makes of what was imported, with something more."""
    result: Json = simulate(tmp_path, *into.in_order(), *more)
    assert result["errors"] == []
    return result
