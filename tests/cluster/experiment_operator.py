"""The operator of Experiments (`tests.apiserver.experiments`): it knows nothing of Admitter.

`python -m tests.cluster.experiment_operator KUBECONFIG` makes the pods of Experiments that may have them,
from their templates as they are then, and deletes those of others, until it is ended.
"""

import asyncio
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from admitter.client.errors import ApiError
from admitter.client.transport import HttpTransport
from tests.apiserver.experiments import GROUP, templates

Json = dict[str, Any]

LOOK_SECONDS = 0.2


async def operate(kubeconfig: Path) -> None:
    """Look at all Experiments again and again."""
    async with await HttpTransport.connect(kubeconfig) as transport:
        while True:
            try:
                await _look_at_all(transport)
            except ApiError as error:  # the definition may be gone
                print(error, file=sys.stderr, flush=True)
            await asyncio.sleep(LOOK_SECONDS)


async def _look_at_all(transport: HttpTransport) -> None:
    pods: defaultdict[str, list[Json]] = defaultdict(list)
    for pod in (await transport.get("/api/v1/pods"))["items"]:
        for owner in pod["metadata"].get("ownerReferences") or ():
            pods[owner["uid"]].append(pod)
    found = (await transport.get(f"/apis/{GROUP}/v1/experiments"))["items"]
    looks = (_look(transport, each, pods[each["metadata"]["uid"]]) for each in found)
    for outcome in await asyncio.gather(*looks, return_exceptions=True):
        if isinstance(outcome, ApiError):  # what it would make is refused, or has changed meanwhile
            print(outcome, file=sys.stderr, flush=True)
        elif outcome is not None:
            raise outcome


async def _look(transport: HttpTransport, experiment: Json, pods: list[Json]) -> None:
    metadata, status = experiment["metadata"], experiment.get("status") or {}
    if status.get("phase"):
        return
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods"
    if experiment["spec"].get("state") == "Stopped":
        for pod in pods:
            if "deletionTimestamp" not in pod["metadata"]:
                await transport.delete(f"{path}/{pod['metadata']['name']}")
    else:
        there = {pod["metadata"]["name"] for pod in pods}
        for number, template in enumerate(templates(experiment)):
            name = f"{metadata['name']}-{metadata['generation']}-{number}"
            if not there:
                await transport.create(path, _pod(experiment, template, name))
    now: Json = {"pods": len(pods)}
    if pods and all(pod["status"].get("phase") == "Succeeded" for pod in pods):
        now = {"pods": 0, "phase": "Done", "words": "all probes have come back"}
    if now != status:
        where = f"/apis/{GROUP}/v1/namespaces/{metadata['namespace']}/experiments/{metadata['name']}"
        await transport.patch(f"{where}/status", {"status": now})


def _pod(experiment: Json, template: Json, name: str) -> Json:
    owned = {"apiVersion": f"{GROUP}/v1", "kind": "Experiment", "controller": True}
    owner = {**owned, **{key: experiment["metadata"][key] for key in ("name", "uid")}}
    metadata = {**(template.get("metadata") or {}), "name": name, "ownerReferences": [owner]}
    return {"metadata": metadata, "spec": template["spec"]}


if __name__ == "__main__":
    asyncio.run(operate(Path(sys.argv[1])))
