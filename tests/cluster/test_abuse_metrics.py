"""A tenant's pod that asks the controller for its metrics, which name everybody's queues."""

import re
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from admitter.sandbox.cluster import Cluster
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


@pytest.mark.timeout(300)
def test_metrics_are_for_users_that_may_get_them(
    installed: Cluster, user: Cluster, namespace: str, tmp_path: Path
) -> None:
    scope = f"--namespace={namespace}"
    installed.run_kubectl("create", "serviceaccount", "scraper", scope)
    tokens = {
        name: installed.run_kubectl("create", "token", name, scope).strip() for name in ("user", "scraper")
    }
    assert user.run_kubectl("auth", "can-i", "create", "jobs", scope).strip() == "yes"
    with running_controller(installed, tmp_path, *EVERYWHERE):
        eventually(lambda: port(tmp_path), what="a controller that answers")
        assert [status(tmp_path, path) for path in ("/healthz", "/metrics")] == [200, 401]
        assert status(tmp_path, token="of-mine") == 401
        assert status(tmp_path, token=tokens["user"]) == status(tmp_path, token=tokens["scraper"]) == 403
        binding = f"{namespace}-scraper"
        role, account = "--clusterrole=admitter-metrics-reader", f"--serviceaccount={namespace}:scraper"
        installed.run_kubectl("create", "clusterrolebinding", binding, role, account)
        try:
            eventually(
                lambda: status(tmp_path, token=tokens["scraper"]) == 200, what="a scraper that may by now"
            )
            assert status(tmp_path, token=tokens["user"]) == 403
        finally:
            installed.run_kubectl("delete", "clusterrolebinding", binding)
