"""The controller's permissions are what it uses, and no more: said by the API server's audit log."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from admitter.client.policies import GROUP as ADMISSION
from admitter.client.policies import VERSIONS
from admitter.documents import bundled
from admitter.names import CONTROLLER_USER, JOB_KIND_LABEL, NAMESPACE, SERVICE_ACCOUNT
from admitter.sandbox.cluster import Cluster
from admitter.sandbox.control_plane import ControlPlane
from tests.cluster.controller import Controller
from tests.cluster.objects import ADMITTER, Json, elastic_quota, job
from tests.cluster.people import JOBS, Person
from tests.cluster.pods import maker
from tests.cluster.queued_pods import group_workload, pod_named, pods_of, queued_pod, runs
from tests.cluster.team import Team
from tests.cluster.test_abuse_metrics import EVERYWHERE, status
from tests.cluster.test_run import running_controller
from tests.cluster.waiting import eventually
from tests.commands import admitter
from tests.kinds.described import definition, experiment, trial

pytestmark = pytest.mark.cluster

Right = tuple[str, str, str]
"""Verb, API group, and resource with its subresource."""

NOT_SHOWN = {
    # asked only after an answer that was lost, of which tests/cluster/test_back_pressure.py makes some
    ("get", "admitter.dev", "workloads"),
    # asked of Jobs without a mark, made when their namespace's labels were new and its policy was not
    ("get", "admissionregistration.k8s.io", "mutatingadmissionpolicybindings"),
    # asked by those that share the cohort trees, of which tests/cluster/test_shards.py has some
    ("delete", "coordination.k8s.io", "leases"),
    # asked only after a renewal without an answer: on a busy machine
    ("get", "coordination.k8s.io", "leases"),
    # what a Job controller of 1.36 does itself when it suspends a Job
    ("patch", "batch", "jobs/status"),
}
"""Granted, and justified, though nothing here need make the controller use it."""


@dataclass
class Audited:
    """A cluster with an API server that records every request with its client, and a controller in it."""

    cluster: ControlPlane
    controller: Controller

    def team(self, name: str) -> Team:
        """A namespace of this name."""
        self.cluster.run_kubectl("create", "namespace", name)
        self.cluster.run_kubectl("label", "namespace", name, f"team={name}")
        return Team(self.cluster, name, self.controller)

    def asked(self) -> list[Json]:
        """All that the controller has asked for, as the API server logged it."""
        lines = self.cluster.audit_log.read_text().splitlines()
        events = [json.loads(line) for line in lines if CONTROLLER_USER in line and line.endswith("}")]
        return [event for event in events if event["user"]["username"] == CONTROLLER_USER]


@pytest.fixture
def audited(tmp_path: Path, owner: int) -> Iterator[Audited]:
    """A cluster with an audit log and Admitter."""
    with ControlPlane.start(tmp_path / "audited", owner=owner, audit=True) as cluster:
        done = admitter("install", "--without-deployment", f"--kubeconfig={cluster.kubeconfig}")
        assert done.returncode == 0, done.stderr
        with running_controller(cluster, tmp_path, *EVERYWHERE):
            yield Audited(cluster, Controller(tmp_path))


def jobs_run_pause_and_leave(team: Team) -> None:
    """Workloads of Jobs, the Jobs' start, stop and second start; one leaves its queue."""
    team.cohort("all")
    team.offers({"cpu": {"on-demand": "1"}}, cohort=f"{team.namespace}-all")
    team.apply(job(team.namespace, "runs", seconds=None))
    team.runs("runs")
    team.apply(job(team.namespace, "leaves"))
    eventually(lambda: team.reason("leaves") == "InsufficientQuota", what="reason to wait")
    team.kubectl("label", "job", "leaves", "admitter.dev/queue-name-")
    eventually(lambda: not team.workload("leaves"), what="end of its Workload")
    name = team.workload("runs")["metadata"]["name"]
    team.patch("wl", name, {"spec": {"active": False}})
    eventually(lambda: team.reason("runs") == "Inactive", what="paused Workload")
    team.patch("wl", name, {"spec": {"active": True}})
    team.runs("runs")
    before = team.workload("runs")["metadata"]["uid"]
    team.kubectl("delete", "wl", name)
    eventually(
        lambda: team.workload("runs").get("metadata", {}).get("uid", before) != before,
        what="another Workload in the place of one that a user deleted",
    )
    team.runs("runs")


def a_namespace_brings_its_quota(team: Team) -> None:
    """Its queues come, are set right, change and go."""
    bring(team, {"cpu": "2"})
    eventually(lambda: team.read("localqueues")["items"], what="a LocalQueue")
    team.patch("localqueue", team.namespace, {"spec": {"stopPolicy": "Hold"}})
    eventually(
        lambda: team.read("localqueue", team.namespace)["spec"].get("stopPolicy", "None") == "None",
        what="a LocalQueue set right",
    )
    bring(team, {"cpu": "3"})
    bring(team, None)
    eventually(lambda: not team.read("localqueues")["items"], what="no LocalQueue")


def bring(team: Team, quota: Json | None) -> None:
    """Annotate the namespace, and wait until its ClusterQueue follows."""
    annotations = {"admitter.dev/namespace.quota": json.dumps(quota) if quota else None}
    team.patch("namespace", team.namespace, {"metadata": {"annotations": annotations}})
    eventually(lambda: limits(team, team.namespace) == quota, what=f"a queue that limits {quota}")


def limits(team: Team, queue: str) -> Json | None:
    found = team.read("clusterqueues", f"--field-selector=metadata.name={queue}")["items"]
    return dict(found[0]["spec"]["limits"]) if found else None


def a_rule_makes_a_queue(team: Team) -> None:
    """The queue of a user, and the Cohort above it."""
    person = Person(team.cluster, team.namespace, "bob").may(JOBS).submits_to()
    rule = {"from": "User", "create": True, "createParent": True, "parent": "root.users"}
    selector = {"matchLabels": {"team": team.namespace}}
    team.apply(
        {
            "apiVersion": ADMITTER,
            "kind": "PlacementPolicy",
            "metadata": {"name": "people"},
            "spec": {"namespaceSelector": selector, "rules": [rule]},
        }
    )
    plain = job(team.namespace, "work", queue=None)
    eventually(
        lambda: (
            "annotations" in person.makes(plain, "--dry-run=server")["metadata"]
            and person.makes(plain, "--dry-run=server")["spec"]["suspend"]
        ),
        what="API server that knows the policy",
    )
    person.makes(plain)
    eventually(lambda: team.state("work") == "Finished", what="Job in its user's queue")


def elastic_quotas_mark_pods(team: Team, other: Team) -> None:
    """Pods over quota carry a label that follows the quota; a Job without queue is queued."""
    team.apply(
        elastic_quota(team.namespace, min={"cpu": "1"}, manageAllJobs=True),
        elastic_quota(other.namespace, "both", min={"cpu": "1"}, namespaces=[other.namespace]),
    )
    eventually(lambda: team.active("elasticquota", "quota").get("status") == "True", what="quota")
    eventually(lambda: other.active("ceq", "both").get("status") == "True", what="composite quota")
    team.apply(job(team.namespace, "large", requests={"cpu": "2"}, queue="elastic-quota", seconds=None))
    team.runs("large")
    team.patch("elasticquota", "quota", {"spec": {"min": {"cpu": "2"}}})
    eventually(
        lambda: (
            [p["metadata"]["labels"].get("admitter.dev/capacity") for p in team.pods("large")] == ["in-quota"]
        ),
        what="pod in quota",
    )


def a_kind_is_described(audited: Audited, team: Team, file: Path) -> None:
    """An object of a kind of one's own is started; its rights come with its JobKind."""
    audited.cluster.run_kubectl("create", "-f-", content=json.dumps(definition()))
    file.write_text(json.dumps(experiment()))
    to = f"--kubeconfig={audited.cluster.kubeconfig}"
    done = admitter("install", "--only-kinds", f"--kinds={file}", to)
    assert done.returncode == 0, done.stderr
    eventually(lambda: team.active("jobkind", "experiment").get("reason") == "Ready", what="a kind")
    team.offers({"cpu": {"on-demand": "5"}})
    made = trial()
    made["metadata"]["namespace"] = team.namespace
    team.apply(made)
    started = ["experiment", "trial", f"--namespace={team.namespace}"]
    eventually(lambda: audited.cluster.read(*started)["spec"].get("paused") is False, what="a start")


def pods_run_and_are_evicted(team: Team) -> None:
    """A pod takes the place of one that failed, and another is one too many; then their group is evicted."""
    team.offers({"cpu": {"on-demand": "2"}})
    made = [queued_pod(team.namespace, f"tune-{n}", group="tune", size=2) for n in range(3)]
    team.apply(*made[:2])
    runs(team, "tune", 2)
    team.apply(made[2])
    eventually(lambda: pod_named(team, "tune-2") == {}, what="the pod too many to be deleted")
    team.patch("wl", group_workload(team, "tune")["metadata"]["name"], {"spec": {"active": False}})
    eventually(lambda: pods_of(team, "tune") == {}, what="the group to be evicted")


def a_deployment_waits(team: Team) -> None:
    """It is told why its pods do."""
    team.offers({"cpu": {"on-demand": "1"}})
    made = maker(team.namespace, "Deployment", "web", None)
    made["metadata"]["labels"] = {"admitter.dev/queue-name": "main"}
    made["spec"]["replicas"] = 2
    team.apply(made)
    eventually(lambda: "InsufficientQuota" in team.events("web"), what="an event on the Deployment")


def granted() -> set[Right]:
    """What manifests/10-permissions.yaml gives the controller."""
    documents = list(yaml.safe_load_all((bundled("manifests") / "10-permissions.yaml").read_text()))
    bound = {
        document["roleRef"]["name"]
        for document in documents
        if document["kind"].endswith("RoleBinding")
        and any(subject["name"] == SERVICE_ACCOUNT for subject in document["subjects"])
    }
    rules = [
        rule
        for document in documents
        if document["kind"] in {"ClusterRole", "Role"} and document["metadata"]["name"] in bound
        for rule in document["rules"]
    ]
    return {
        (verb, group, resource)
        for rule in rules
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def right(event: Json) -> Right:
    """What was asked for."""
    what = event["objectRef"]
    resource = "/".join(part for part in (what["resource"], what.get("subresource", "")) if part)
    return event["verb"], what.get("apiGroup", ""), resource


def used(audited: Audited) -> set[Right]:
    """What the controller has asked for up to now."""
    return {right(event) for event in audited.asked() if "resource" in event.get("objectRef", {})}


@pytest.mark.long
def test_the_controller_uses_what_it_is_granted_and_is_refused_nothing(
    audited: Audited, tmp_path: Path
) -> None:
    a_kind_is_described(audited, audited.team("described"), tmp_path / "kind.yaml")
    jobs_run_pause_and_leave(audited.team("queued"))
    a_namespace_brings_its_quota(audited.team("brings"))
    a_rule_makes_a_queue(audited.team("placed"))
    elastic_quotas_mark_pods(audited.team("elastic"), audited.team("composite"))
    pods_run_and_are_evicted(audited.team("pods"))
    a_deployment_waits(audited.team("serving"))
    token = audited.cluster.run_kubectl("create", "token", "default", "--namespace=default").strip()
    assert status(audited.controller.folder, token=token) == 403, "the API server was asked about it"
    assert granted(), "there are permissions to compare with"

    statuses = {r for r in granted() if r[1] == "admitter.dev" and r[2].endswith("/status")}
    eventually(lambda: statuses <= used(audited), what="a status of each kind to be written")
    eventually(lambda: granted() - used(audited) <= NOT_SHOWN, what="all that it is granted to be used")
    assert granted() >= NOT_SHOWN
    events = [event for event in audited.asked() if "resource" in event.get("objectRef", {})]
    described = {(verb, "lab.example.com", "experiments") for verb in ("get", "list", "watch", "patch")}
    assert {right(event) for event in events} <= granted() | described
    assert [right(e) for e in events if e.get("responseStatus", {}).get("code") == 403] == []
    paths = {e["requestURI"] for e in audited.asked() if "resource" not in e.get("objectRef", {})}
    assert paths <= {"/apis/kueue.x-k8s.io", *(f"/apis/{ADMISSION}/{version}" for version in VERSIONS)}


QUOTA_KINDS = {
    *("clusterqueues", "cohorts", "resourceflavors", "placementpolicies", "localqueues"),
    *("elasticquotas", "compositeelasticquotas", "jobkinds", "workloadpriorityclasses"),
}
READABLE = {"localqueues", "elasticquotas", "compositeelasticquotas", "workloads"}
READS = {"get", "list", "watch"}


@pytest.mark.parametrize("role", ["edit", "admin", "view"])
def test_roles_of_a_namespace_are_whole_and_write_no_quota(
    installed: Cluster, namespace: str, role: str
) -> None:
    """No kinds of quota, no weights in ResourceQuotas, and no annotations or labels of the Namespace."""
    rights = rights_of(installed, namespace, role)
    own = {(verb, resource) for verb, group, resource in rights if group == "admitter.dev"}
    reads = {(verb, resource) for verb in READS for resource in READABLE}
    writes = {(verb, "workloads") for verb in ("create", "update", "patch", "delete")}
    assert own == (reads if role == "view" else reads | writes | {("submit", "localqueues")})
    kubernetes = {
        ("", "resourcequotas"),
        ("", "namespaces"),
        ("", "pods/resize"),
        ("batch", "jobs/status"),
        ("scheduling.k8s.io", "priorityclasses"),
    }
    kept_away = {("admitter.dev", kind) for kind in QUOTA_KINDS} | kubernetes
    written = {right[1:] for right in rights if right[0] not in READS | {"submit"}}
    assert written & kept_away == set()


def test_an_administrator_of_quota_may_do_all_with_admitters_kinds(
    installed: Cluster, namespace: str
) -> None:
    rights = {right for right in rights_of(installed, namespace, "admitter-admin") if right[1]}
    kinds = QUOTA_KINDS | {"workloads"}
    assert {right for right in rights if right[1] == "admitter.dev"} == {
        ("*", "admitter.dev", kind) for kind in kinds
    }


def rights_of(cluster: Cluster, namespace: str, role: str) -> set[Right]:
    """What a user with a role in a namespace may do there."""
    person = Person(cluster, namespace, f"{namespace}-{role}")
    command = ["create", "rolebinding", "person", f"--clusterrole={role}", f"--user={person.name}"]
    cluster.run_kubectl(*command, f"--namespace={namespace}")
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace},
    }
    found: set[Right] = set()

    def is_known() -> bool:
        rules = person.makes(review, "--validate=false")["status"]["resourceRules"]
        found.update(
            (verb, group, resource)
            for rule in rules
            for verb in rule["verbs"]
            for group in rule.get("apiGroups") or [""]
            for resource in rule.get("resources") or ()
        )
        return any(group == "admitter.dev" for _, group, _ in found)

    eventually(is_known, what="API server that knows the binding")
    return found


def test_the_controllers_account_is_bound_to_its_own_role_alone(installed: Cluster) -> None:
    bound = {
        (binding["kind"], binding["metadata"].get("namespace"), binding["roleRef"]["name"])
        for kind in ("clusterrolebindings", "rolebindings")
        for binding in installed.read(kind, "--all-namespaces")["items"]
        for subject in binding.get("subjects") or ()
        if (subject.get("namespace"), subject["name"]) == (NAMESPACE, SERVICE_ACCOUNT)
        and JOB_KIND_LABEL not in binding["metadata"].get("labels", {})
    }
    role = SERVICE_ACCOUNT
    assert bound == {("ClusterRoleBinding", None, role), ("RoleBinding", NAMESPACE, role)}
