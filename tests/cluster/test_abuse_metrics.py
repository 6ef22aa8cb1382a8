"""A tenant's pod that asks the controller for its metrics, which name everybody's queues."""

import re
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from admitter.sandbox.control_plane import ControlPlane
from tests.cluster.direct import DirectCluster
from tests.cluster.people import may_create
from tests.cluster.team import Team
from tests.cluster.test_run import running_controller
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

EVERYWHERE = ("--bind", "0.0.0.0:0")
"""As in the Deployment: every pod reaches it."""


def port(folder: Path) -> str:
    """The port at which it answers; empty until it does."""
    found = re.search(r'"probes":\s*"[0-9.]+:([0-9]+)"', (folder / "log").read_text())
    return found[1] if found else ""


def status(folder: Path, path: str = "/metrics", token: str = "") -> int:
    """The status of its answer."""
    asked = Request(f"http://127.0.0.1:{port(folder)}{path}")  # this machine's
    if token:
        asked.add_header("Authorization", f"Bearer {token}")
    try:
        with urlopen(asked) as answer:  # noqa: S310  # as above
            return int(answer.status)
    except HTTPError as error:
        return error.code


@pytest.mark.timeout(600)
def test_metrics_are_for_users_that_may_get_them(own: ControlPlane, own_team: Team, tmp_path: Path) -> None:
    """In a cluster of its own: beside another controller it would lead as soon as that is killed."""
    namespace = own_team.namespace
    scope = f"--namespace={namespace}"
    for name in ("user", "scraper"):
        own.run_kubectl("create", "serviceaccount", name, scope)
    edits = ("--clusterrole=edit", f"--serviceaccount={namespace}:user")
    own.run_kubectl("create", "rolebinding", "user", *edits, scope)
    user = own.service_account_kubeconfig(namespace, "user", tmp_path / "user")
    tokens = {name: own.run_kubectl("create", "token", name, scope).strip() for name in ("user", "scraper")}
    asking = DirectCluster(kubectl=own.kubectl, kubeconfig=user)
    eventually(lambda: may_create(asking, namespace, "jobs"), what="a user that may make Jobs")
    with running_controller(own, tmp_path, *EVERYWHERE):
        eventually(lambda: port(tmp_path), what="a controller that answers")
        assert [status(tmp_path, path) for path in ("/healthz", "/metrics")] == [200, 401]
        assert status(tmp_path, token="of-mine") == 401
        assert status(tmp_path, token=tokens["user"]) == status(tmp_path, token=tokens["scraper"]) == 403
        binding = f"{namespace}-scraper"
        role, account = "--clusterrole=admitter-metrics-reader", f"--serviceaccount={namespace}:scraper"
        own.run_kubectl("create", "clusterrolebinding", binding, role, account)
        try:
            eventually(
                lambda: status(tmp_path, token=tokens["scraper"]) == 200, what="a scraper that may by now"
            )
            assert status(tmp_path, token=tokens["user"]) == 403
        finally:
            own.run_kubectl("delete", "clusterrolebinding", binding)
