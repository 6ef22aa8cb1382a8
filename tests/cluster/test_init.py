"""`admitter init` of real nodes: the API server takes what it writes."""

import pytest
import yaml

from tests.cluster.commands import admitter
from tests.cluster.team import Team

pytestmark = pytest.mark.cluster


def test_the_api_server_takes_the_queues_for_its_nodes(team: Team) -> None:
    done = admitter("init", f"--kubeconfig={team.cluster.kubeconfig}", f"--team={team.namespace}=1")
    assert done.returncode == 0, done.stderr
    made = list(yaml.safe_load_all(done.stdout))
    (queue,) = [each for each in made if each["kind"] == "ClusterQueue"]
    assert [each["metadata"]["namespace"] for each in made if each["kind"] == "LocalQueue"] == [
        team.namespace
    ]
    assert not [each for each in made if each["kind"] == "Namespace"], "it exists"
    by_resource = {each["name"]: each["flavors"] for each in queue["spec"]["resources"]}
    assert {"cpu", "memory", "nvidia.com/gpu"} <= by_resource.keys()
    flavors = {each["metadata"]["name"] for each in made if each["kind"] == "ResourceFlavor"}
    assert {each["name"] for each in by_resource["cpu"]} == flavors
    # Flavors of other tests may have the same names, and are in use.
    new = [
        {**each, "metadata": {**each["metadata"], "name": f"{team.namespace}-{each['metadata']['name']}"}}
        for each in made
    ]
    answer = team.cluster.run_kubectl(
        "apply", "--dry-run=server", "--filename=-", content=yaml.safe_dump_all(new)
    )
    assert answer.count("created (server dry run)") == len(made)
