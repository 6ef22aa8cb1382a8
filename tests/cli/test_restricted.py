"""What users learn that may read one namespace alone, on an API server in memory."""

import json
from collections.abc import Mapping

import pytest

from admitter.cache.world import OWN
from admitter.cli import looking
from admitter.cli.complaints import CommandError
from admitter.client.errors import api_error
from tests.apiserver.server import Json, place
from tests.cli.test_stops import Desk


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    """The desk of a user without rights in the whole cluster."""
    made = Desk()
    get = made.server.get

    async def restricted(path: str, query: Mapping[str, str] | None = None) -> Json:
        if not place(path).namespace:
            raise api_error(403, {"reason": "Forbidden"})
        return await get(path, query)

    monkeypatch.setattr(made.server, "get", restricted)
    monkeypatch.setattr(looking, "ask_beside", made.ask)
    return made


def test_a_job_is_explained_and_not_a_workload_of_its_name(desk: Desk) -> None:
    pod_sets = [{"name": "main", "count": 1}]
    by_hand = f"{OWN}/namespaces/blue/workloads/train-7"
    desk.make(by_hand, spec={"queueName": "main", "podSets": pod_sets}, status={})
    for name, found in (("job/train-7", "job-train-7"), ("wl/train-7", "train-7"), ("train-7", "train-7")):
        answer = json.loads("".join(desk.say("explain", name, "-o", "json")))
        assert answer["workload"] == found
    with pytest.raises(CommandError, match="there is no Workload of a Job job-train-7 in namespace blue"):
        desk.say("explain", "job/job-train-7")
