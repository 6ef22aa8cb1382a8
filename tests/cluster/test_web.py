"""The page on a real cluster: its own account, real tokens, and the rights that they have there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.objects import Json, job
from tests.cluster.pages import Web, served, token_of
from tests.cluster.team import Team
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster


@pytest.fixture
def web(team: Team, tmp_path: Path) -> Iterator[Web]:
    """The page, under the account of its manifest."""
    with served(team.cluster, tmp_path) as made:
        yield made


@pytest.mark.usefixtures("user")
def test_a_user_sees_what_it_may_list(team: Team, web: Web) -> None:
    """The tenant by the rights that `edit` gives; the operator by a role that lists ClusterQueues."""
    team.offers({"cpu": {"spot": "2"}})

    team.apply(job(team.namespace, "first", requests={"cpu": "2"}, seconds=None))
    eventually(lambda: team.state("first") == "Admitted", what="the first one to be admitted")
    team.apply(job(team.namespace, "second", requests={"cpu": "2"}, seconds=None))
    tenant = token_of(team.cluster, team.namespace, "user")

    def rows() -> dict[str, Json]:
        status, answer = web.ask("/api/workloads", tenant, namespace=team.namespace)
        return {row["name"]: row for row in answer["rows"]} if status == 200 else {}

    eventually(lambda: rows().get("first", {}).get("state") == "Admitted", what="the page's news")
    eventually(lambda: rows().get("second", {}).get("position") == 1, what="the other one's place in line")

    def explained(path: str) -> Json:
        status, answer = web.ask(path, tenant, namespace=team.namespace, name="second")
        return answer if status == 200 else {}

    # On a busy machine what its status says comes first.
    eventually(lambda: "short" in str(explained("/api/workload")), what="the reason in full")
    eventually(lambda: "Start: " in str(explained("/api/outlook")), what="an outlook")
    assert web.ask("/api/mine", tenant, namespace="default")[0] == 403
    assert web.ask("/api/tree", tenant)[0] == 403
    assert web.ask("/api/tree", "nonsense")[0] == 401

    operator = operator_of(team)
    eventually(lambda: web.ask("/api/tree", operator)[0] == 200, what="a role that is known")
    lines = web.ask("/api/tree", operator)[1]["lines"]
    line = next(each for each in lines if each["name"] == team.cluster_queue)
    assert (line["waiting"], line["admitted"]) == (1, 1)


def operator_of(team: Team) -> str:
    """The token of an account that may list ClusterQueues."""
    scope = f"--namespace={team.namespace}"
    team.cluster.run_kubectl("create", "serviceaccount", "operator", scope)
    binding = f"{team.namespace}-operator"
    account = f"--serviceaccount={team.namespace}:operator"
    team.cluster.run_kubectl("create", "clusterrolebinding", binding, "--clusterrole=admitter-admin", account)
    team.made.append(f"clusterrolebinding/{binding}")
    return token_of(team.cluster, team.namespace, "operator")


def test_a_restarted_page_goes_on_with_its_history(team: Team, tmp_path: Path) -> None:
    """It is ended without notice: what it has sampled is in its file."""
    team.offers({"cpu": {"spot": "2"}})
    team.apply(job(team.namespace, "runs", requests={"cpu": "2"}, seconds=None))
    eventually(lambda: team.state("runs") == "Admitted", what="an admission")
    operator, file = operator_of(team), f"--history={tmp_path / 'history'}"

    def looked_at() -> Json:
        """Use of the queue over time, once a page that is then ended has seen the Workload."""
        found: list[Json] = []

        def charted(page: Web) -> bool:
            status, answer = page.ask("/api/queue", operator, name=team.cluster_queue)
            course = answer["course"] if status == 200 else {"used": []}
            used = [each["used"] for each in course["used"]]
            found.append({"times": course.get("times"), "used": used})
            return any(values and values[-1] == 2 for values in used)

        with served(team.cluster, tmp_path, file) as page:
            eventually(lambda: charted(page), what="use over time")
        return found[-1]

    before, after = looked_at(), looked_at()
    assert after["times"][: len(before["times"])] == before["times"]
    assert after["used"][0][: len(before["times"])] == before["used"][0]
