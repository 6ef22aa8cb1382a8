"""What an API server lacks, as install, the controller and lint say it."""

import json
from pathlib import Path

import pytest

from admitter.client.policies import MUTATING, NOT_SERVED
from admitter.sandbox.control_plane import ControlPlane
from tests import commands
from tests.cluster.objects import elastic_quota, job
from tests.cluster.team import Team
from tests.cluster.test_run import answer, running_controller
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster


def admitter(bare: ControlPlane, *words: str, status: int = 0) -> str:
    ended = commands.admitter(*words, f"--kubeconfig={bare.kubeconfig}")
    assert ended.returncode == status, ended.stderr
    return ended.stdout


@pytest.mark.long
def test_what_the_api_server_lacks_is_said_once_in_one_line(bare: ControlPlane, tmp_path: Path) -> None:
    group = bare.run_kubectl("api-resources", "--api-group=admissionregistration.k8s.io", "--no-headers")
    lacks = "MutatingAdmissionPolicy" not in group
    printed = admitter(bare, "install", "--without-deployment")
    assert printed.count(f"\nT{NOT_SERVED[1:]}.\n") == lacks
    left_out = {line.split()[0] for line in printed.splitlines() if "left out" in line}
    assert left_out == (set(MUTATING) if lacks else set())

    # No controller runs yet, which lint calls an error.
    findings = json.loads(admitter(bare, "lint", "--live", "-o", "json", status=1))
    assert [each["message"] for each in findings if each["rule"] == "PoliciesLeftOut"] == [NOT_SERVED] * lacks

    with running_controller(bare, tmp_path):
        ready = f"leader\n{NOT_SERVED}\n" if lacks else "leader\n"
        eventually(lambda: answer(tmp_path, "/readyz") == ready, what="the controller to be ready")
        assert (tmp_path / "log").read_text().count(NOT_SERVED) == lacks

    admitter(bare, "uninstall", "--yes")
    assert "admitter" not in bare.run_kubectl("get", "validatingadmissionpolicies,crd", "--output=name")


def test_a_job_without_a_queue_gets_the_label_of_its_elastic_quota(team: Team) -> None:
    team.apply(elastic_quota(team.namespace, min={"cpu": "1"}, manageAllJobs=True))
    eventually(lambda: team.active("elasticquota", "quota").get("status") == "True", what="a quota")
    team.apply(job(team.namespace, "plain", queue=None, suspend=False, seconds=None))
    eventually(lambda: team.state("plain") == "Admitted", what="the Job to be admitted")
    team.runs("plain")
    assert team.read("job", "plain")["metadata"]["labels"]["admitter.dev/queue-name"] == "elastic-quota"
    team.kubectl("delete", "job", "plain")
    eventually(lambda: not team.read("workloads")["items"], what="an unused quota")
    team.kubectl("delete", "elasticquota", "quota")
