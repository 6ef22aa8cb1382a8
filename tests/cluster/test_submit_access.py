"""Which users may submit to a queue, and how the maker of a Job is known."""

import json

import pytest

from admitter.names import CONTROLLER_USER
from admitter.sandbox.cluster import Cluster, KubectlError
from tests.cluster.objects import ADMITTER, Json, elastic_quota, job, local_queue
from tests.cluster.people import JOBS, Person
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

QUEUE, ALIAS = "admitter.dev/queue-name", "kueue.x-k8s.io/queue-name"
USER, GROUPS, PLACEMENT = "admitter.dev/user", "admitter.dev/groups", "admitter.dev/placement"
PLACED = "admitter.dev/placed-in"
REFUSED = "user bob may not submit to queue gold in namespace {}: ask an administrator"


@pytest.fixture
def bob(installed: Cluster, namespace: str) -> Person:
    """A user that may make Jobs and CronJobs, and submit to `iron` alone."""
    return Person(installed, namespace, "bob", ("data", 'odd"\\name')).may(JOBS).submits_to("iron")


def cron_job(namespace: str, name: str = "nightly", **labels: str) -> Json:
    """A CronJob that starts nothing by itself."""
    spec = job(namespace, name, queue=None)["spec"]
    template = {"metadata": {"labels": labels}, "spec": spec}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": template},
    }


def template_of(cron_job: Json) -> Json:
    """Metadata of the Jobs that a CronJob makes."""
    metadata: Json = cron_job["spec"]["jobTemplate"]["metadata"]
    return metadata


def test_a_job_goes_only_to_a_queue_that_its_maker_may_submit_to(bob: Person) -> None:
    bob.makes(job(bob.namespace, "good", queue="iron"))
    with pytest.raises(KubectlError, match=REFUSED.format(bob.namespace)):
        bob.makes(job(bob.namespace, "bad", queue="gold"))
    bob.makes(job(bob.namespace, "free", queue=None))


def test_a_job_does_not_change_to_such_a_queue_either(bob: Person) -> None:
    bob.makes(job(bob.namespace, "work", queue="iron"))

    def changes(labels: Json) -> None:
        bob.patches("job", "work", {"metadata": {"labels": labels}})

    with pytest.raises(KubectlError, match=REFUSED.format(bob.namespace)):
        changes({QUEUE: "gold"})
    changes({QUEUE: "elastic-quota"})
    changes({QUEUE: "iron", "more": "yes"})
    changes({QUEUE: None})
    with pytest.raises(KubectlError, match=REFUSED.format(bob.namespace)):
        changes({QUEUE: "gold"})


def test_a_job_that_another_user_has_queued_may_be_changed(installed: Cluster, bob: Person) -> None:
    content = json.dumps(job(bob.namespace, "work", queue="gold"))
    installed.run_kubectl("create", "--filename=-", content=content)
    changed = bob.patches("job", "work", {"metadata": {"labels": {"more": "yes"}}})
    assert changed["metadata"]["labels"][QUEUE] == "gold"


def test_a_cron_job_is_asked_about_when_it_is_written(bob: Person) -> None:
    with pytest.raises(KubectlError, match=REFUSED.format(bob.namespace)):
        bob.makes(cron_job(bob.namespace, **{QUEUE: "gold"}))
    bob.makes(cron_job(bob.namespace, **{QUEUE: "iron"}))
    bob.patches("cronjob", "nightly", {"spec": {"schedule": "1 1 1 1 *"}})
    change = {"spec": {"jobTemplate": {"metadata": {"labels": {QUEUE: "gold"}}}}}
    with pytest.raises(KubectlError, match=REFUSED.format(bob.namespace)):
        bob.patches("cronjob", "nightly", change)


def test_a_cron_job_of_kueue_is_asked_about_only_where_the_queue_is_ours(
    installed: Cluster, bob: Person
) -> None:
    kueues = cron_job(bob.namespace, **{ALIAS: "gold"})
    assert QUEUE not in template_of(bob.makes(kueues))["labels"]
    for queue in ("gold", "iron"):
        installed.run_kubectl("create", "-f-", content=json.dumps(local_queue(bob.namespace, "any", queue)))

    def refused() -> bool:
        try:
            bob.makes(cron_job(bob.namespace, "tried", **{ALIAS: "gold"}), "--dry-run=server")
        except KubectlError as error:
            return REFUSED.format(bob.namespace) in str(error)
        return False

    def names(queue: str) -> Json:
        return {"spec": {"jobTemplate": {"metadata": {"labels": {ALIAS: queue}}}}}

    eventually(refused, what="policy that knows the queue")
    ours = template_of(bob.patches("cronjob", "nightly", names("iron")))
    assert ours["labels"][QUEUE] == "iron"
    with pytest.raises(KubectlError, match=REFUSED.format(bob.namespace)):
        bob.patches("cronjob", "nightly", names("gold"))
    carol = Person(installed, bob.namespace, "carol").may(JOBS).submits_to("gold")
    theirs = template_of(carol.patches("cronjob", "nightly", names("gold")))
    assert theirs["labels"][QUEUE] == "gold"


def test_a_change_of_what_a_queued_cron_job_starts_needs_the_right_to_submit(bob: Person) -> None:
    carol = Person(bob.cluster, bob.namespace, "carol").may(JOBS).submits_to("gold")
    carol.makes(cron_job(bob.namespace, **{QUEUE: "gold"}))
    inner = {"spec": {"parallelism": 7}}, {"metadata": {"labels": {"more": "yes"}}}
    for change in inner:
        with pytest.raises(KubectlError, match=REFUSED.format(bob.namespace)):
            bob.patches("cronjob", "nightly", {"spec": {"jobTemplate": change, "suspend": False}})
        carol.patches("cronjob", "nightly", {"spec": {"jobTemplate": change}})
    stopped = bob.patches("cronjob", "nightly", {"spec": {"suspend": True}})
    assert template_of(stopped)["annotations"][USER] == "carol"
    freed = bob.patches(
        "cronjob", "nightly", {"spec": {"jobTemplate": {"metadata": {"labels": {QUEUE: None}}}}}
    )
    assert template_of(freed)["annotations"][USER] == "bob"


def test_jobs_of_a_cron_job_pass(installed: Cluster, bob: Person) -> None:
    bob.makes(cron_job(bob.namespace, **{QUEUE: "iron"}))
    every_minute = {"spec": {"schedule": "* * * * *", "suspend": False}}
    bob.patches("cronjob", "nightly", every_minute)

    def jobs() -> list[Json]:
        return list(installed.read("jobs", f"--namespace={bob.namespace}")["items"])

    eventually(jobs, what="a Job of the CronJob", timeout=200)
    made = jobs()[0]["metadata"]
    assert (made["labels"][QUEUE], made["annotations"][USER]) == ("iron", "bob")


def test_a_user_may_not_pass_for_a_cron_job(bob: Person) -> None:
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "x", "uid": "x", "controller": True}
    forged = job(bob.namespace, "forged", queue="gold")
    forged["metadata"]["ownerReferences"] = [owner]
    with pytest.raises(KubectlError, match=REFUSED.format(bob.namespace)):
        bob.makes(forged)


def test_a_workload_by_hand_takes_quota_only_where_its_maker_may_submit(bob: Person) -> None:
    bob.may({"apiGroups": ["admitter.dev"], "resources": ["workloads"], "verbs": ["*"]})
    for queue, taken in (("iron", True), ("gold", False)):
        metadata = {"name": queue, "namespace": bob.namespace}
        spec = {"queueName": queue, "podSets": [{"name": "main", "count": 1}]}
        workload = {"apiVersion": ADMITTER, "kind": "Workload", "metadata": metadata, "spec": spec}
        if taken:
            bob.makes(workload)
        else:
            with pytest.raises(KubectlError, match=REFUSED.format(bob.namespace)):
                bob.makes(workload)


def test_an_elastic_quota_is_for_all_users_of_its_namespace(bob: Person) -> None:
    bob.makes(job(bob.namespace, "work", queue="elastic-quota"))


def test_an_editor_of_a_namespace_submits_to_every_queue(installed: Cluster, namespace: str) -> None:
    alice = Person(installed, namespace, "alice").edits()
    alice.makes(job(namespace, "work", queue="gold"))
    alice.makes(cron_job(namespace, **{QUEUE: "gold"}))


def test_a_job_names_the_user_that_made_it(bob: Person) -> None:
    forged = job(bob.namespace, "work", queue=None)
    forged["metadata"]["annotations"] = {USER: "alice", GROUPS: '["admins"]', "mine": "too"}
    noted = bob.makes(forged)["metadata"]["annotations"]
    assert (noted[USER], noted["mine"]) == ("bob", "too")
    assert json.loads(noted[GROUPS]) == ["data", 'odd"\\name', "system:authenticated"]


def test_a_job_that_names_its_queue_bears_its_makers_name_only_once_a_rule_may_ask(bob: Person) -> None:
    made = bob.makes(job(bob.namespace, "work", queue="iron"))
    assert USER not in made["metadata"].get("annotations", {})
    dropped = bob.patches(
        "job", "work", {"metadata": {"labels": {QUEUE: None}, "annotations": {USER: "alice"}}}
    )
    assert dropped["metadata"]["annotations"][USER] == "bob", (
        "the user that removes the name answers for the Job"
    )
    forged = job(bob.namespace, "forged", queue="iron")
    forged["metadata"]["annotations"] = {USER: "alice", GROUPS: '["admins"]'}
    assert bob.makes(forged)["metadata"]["annotations"][USER] == "bob"
    placed = bob.patches("job", "forged", {"metadata": {"annotations": {USER: "alice", PLACED: "iron"}}})
    assert placed["metadata"]["annotations"][USER] == "bob"


def test_a_user_may_not_mark_its_own_job_for_placement(bob: Person) -> None:
    forged = job(bob.namespace, "work", queue=None)
    forged["metadata"]["annotations"] = {PLACEMENT: "mine", "mine": "too"}
    noted = bob.makes(forged)["metadata"]["annotations"]
    assert PLACEMENT not in noted
    assert noted["mine"] == "too"
    nightly = cron_job(bob.namespace)
    template_of(nightly)["annotations"] = {PLACEMENT: "mine"}
    assert PLACEMENT not in template_of(bob.makes(nightly))["annotations"]
    change = {"spec": {"jobTemplate": {"metadata": {"annotations": {PLACEMENT: "mine"}}}}}
    assert PLACEMENT not in template_of(bob.patches("cronjob", "nightly", change))["annotations"]


def test_a_user_may_not_change_the_recorded_maker_of_a_job(installed: Cluster, bob: Person) -> None:
    before = bob.makes(job(bob.namespace, "work", queue=None))["metadata"]["annotations"]
    for annotations in ({USER: "alice", PLACEMENT: "mine"}, {USER: None, GROUPS: None}, None):
        changed = bob.patches("job", "work", {"metadata": {"annotations": annotations}})
        assert changed["metadata"]["annotations"] == before
    administrators = ["annotate", "job", "work", f"--namespace={bob.namespace}", f"{USER}=x", "--overwrite"]
    installed.run_kubectl(*administrators)
    assert bob.patches("job", "work", {})["metadata"]["annotations"] == before


def test_a_user_that_changes_what_a_cron_job_starts_answers_for_it(installed: Cluster, bob: Person) -> None:
    alice = Person(installed, bob.namespace, "alice").edits()
    assert template_of(alice.makes(cron_job(bob.namespace)))["annotations"][USER] == "alice"
    forged = {"jobTemplate": {"metadata": {"annotations": {USER: "root", "mine": "too"}}}}
    kept = bob.patches("cronjob", "nightly", {"spec": {"schedule": "1 1 1 1 *", **forged}})
    assert (
        template_of(kept)["annotations"] | {USER: "alice", "mine": "too"} == template_of(kept)["annotations"]
    )
    other = {"spec": {"jobTemplate": {"spec": {"backoffLimit": 3}}}}
    changed = template_of(bob.patches("cronjob", "nightly", other))["annotations"]
    assert changed[USER] == "bob"
    assert "data" in json.loads(changed[GROUPS])
    labelled = alice.patches(
        "cronjob", "nightly", {"spec": {"jobTemplate": {"metadata": {"labels": {"a": "b"}}}}}
    )
    assert template_of(labelled)["annotations"][USER] == "alice"


def test_a_user_that_changes_an_unstamped_cron_job_answers_for_it(bob: Person) -> None:
    unstamped = Person(bob.cluster, bob.namespace, CONTROLLER_USER).may(JOBS).makes(cron_job(bob.namespace))
    assert "annotations" not in template_of(unstamped)
    told = {"yunikorn.apache.org/user.info": '{"user": "root"}'}
    changed = bob.patches(
        "cronjob", "nightly", {"spec": {"jobTemplate": {"metadata": {"annotations": told}}}}
    )
    assert template_of(changed)["annotations"][USER] == "bob"


def test_the_label_of_kueue_leads_to_the_queue_of_that_name(installed: Cluster, bob: Person) -> None:
    alias = job(bob.namespace, "work", queue=None, suspend=False)
    alias["metadata"]["labels"] = {ALIAS: "gold"}
    untouched = bob.makes(alias, "--dry-run=server")
    assert QUEUE not in untouched["metadata"]["labels"]
    assert untouched["spec"]["suspend"] is False
    installed.run_kubectl("create", "-f-", content=json.dumps(local_queue(bob.namespace, "any", "gold")))

    def refused() -> bool:
        try:
            bob.makes(alias, "--dry-run=server")
        except KubectlError as error:
            return REFUSED.format(bob.namespace) in str(error)
        return False

    eventually(refused, what="policy that knows the queue")
    bob.submits_to("gold")
    eventually(lambda: not refused(), what="role that is known")
    made = bob.makes(alias)
    assert made["metadata"]["labels"][QUEUE] == "gold"
    assert made["spec"]["suspend"] is True


def test_the_label_of_kueue_comes_before_an_elastic_quota_that_manages_all(
    installed: Cluster, bob: Person
) -> None:
    for manifest in (
        elastic_quota(bob.namespace, manageAllJobs=True),
        local_queue(bob.namespace, "any", "iron"),
    ):
        installed.run_kubectl("create", "-f-", content=json.dumps(manifest))
    plain, alias = (job(bob.namespace, "work", queue=None) for _ in range(2))
    alias["metadata"]["labels"] = {ALIAS: "iron"}

    def queue(manifest: Json) -> str:
        return str(bob.makes(manifest, "--dry-run=server")["metadata"].get("labels", {}).get(QUEUE))

    eventually(lambda: queue(plain) == "elastic-quota", what="policy that knows the quota")
    eventually(lambda: queue(alias) == "iron", what="policy that knows the queue")
