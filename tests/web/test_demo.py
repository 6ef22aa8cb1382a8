"""The made-up cluster: it follows from its seed, keeps to the rules, goes on, and has all that views show."""

from collections import Counter
from typing import Any

import pytest

from admitter.api.base import problems
from admitter.api.workload import Workload
from admitter.cache.views import WorkloadView
from admitter.insight.listing import Row
from admitter.policy.snapshot import Facts, Snapshot
from admitter.web.demo import special
from admitter.web.demo.cluster import KEPT_SECONDS, PAST_SECONDS, DemoCluster
from admitter.web.demo.hardware import ACCELERATOR, CORDONED, GPU, NOT_READY
from admitter.web.demo.teams import BROKEN, STUDENT_QUEUE, TEAMS, namespaces
from tests.scale import scaled
from tests.web.demos import NOW, Frozen

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]
SHORT = 3600.0


@pytest.fixture(scope="module")
def demo() -> Frozen:
    return Frozen()


@pytest.fixture(scope="module")
def known(demo: Frozen) -> Facts:
    return demo.scene.known


def row(demo: Frozen, key: tuple[str, str]) -> Row:
    return next(each for each in demo.scene.rows if (each.workload.namespace, each.job) == key)


def workloads(known: Facts) -> list[WorkloadView]:
    return list(known.views["workloads"].values())


def short(seed: int, *, seconds: float = SHORT, every: float = SHORT) -> Facts:
    """The facts of a cluster with a short past, told to go on so often."""
    cluster = DemoCluster(seed, NOW, SHORT)
    while cluster.now < NOW - SHORT + seconds:
        cluster.advance(min(NOW - SHORT + seconds, cluster.now + every))
    return cluster.facts()


def test_everything_follows_from_the_seed_and_the_start() -> None:
    first = short(1)
    assert first.views == short(1).views
    assert first.views["workloads"].keys() != short(2).views["workloads"].keys()


def test_what_happens_does_not_depend_on_how_often_it_is_looked_at() -> None:
    often = short(3, every=7.3)
    assert {(w.key, w.status.get("state"), w.since) for w in workloads(often)} == {
        (w.key, w.status.get("state"), w.since) for w in workloads(short(3))
    }
    assert often.views["pods"].keys() == short(3).views["pods"].keys()


@pytest.mark.parametrize("seed", range(scaled(1, 20)))
def test_no_queue_and_no_tree_uses_more_than_it_may(seed: int) -> None:
    moments = 0

    def watch(snapshot: Snapshot) -> None:
        nonlocal moments
        moments += 1
        check_quotas(snapshot)

    cluster = DemoCluster(seed, NOW, 2 * SHORT)
    cluster.advance(NOW + SHORT, watch)
    assert moments == 180


def check_quotas(snapshot: Snapshot) -> None:
    tree, book = snapshot.engine.tree, snapshot.engine.ledger.real
    parents = tree.parents()
    for node, parent in parents.items():
        for key, cell in book.cells(node).items():
            assert cell.limit is None or cell.total <= cell.limit, (node, key)
            if parent is None:
                assert cell.total <= cell.subtree_quota, (node, key)


def test_a_snapshot_of_the_facts_holds_what_the_simulation_holds(demo: Frozen) -> None:
    check_quotas(demo.scene.snapshot)
    simulated = demo.cluster.snapshot.engine.ledger
    found = demo.scene.snapshot.engine.ledger
    for queue in demo.cluster.snapshot.engine.tree.queues:
        assert found.used(queue) == simulated.used(queue), queue


def test_each_status_is_one_that_the_api_server_takes(known: Facts) -> None:
    for view in workloads(known):
        metadata = {"namespace": view.namespace, "name": view.name}
        manifest = {"metadata": metadata, "spec": view.spec, "status": view.status}
        kind = {"apiVersion": "admitter.dev/v1alpha1", "kind": "Workload"}
        assert problems(Workload, kind | manifest) == [], view.key


def test_pods_are_on_nodes_that_are_ready_have_room_and_are_of_their_flavor(known: Facts) -> None:
    used = Counter[tuple[str, str]]()
    for pod in known.views["pods"].values():
        if not pod.node:
            continue
        node = known.views["nodes"]["", pod.node].node
        assert node.schedulable
        for (flavor, resource), amount in pod.usage.usage:
            assert node.labels[ACCELERATOR] == flavor
            used[pod.node, resource] += amount
    assert used
    for (name, resource), amount in used.items():
        assert amount <= known.views["nodes"]["", name].node.allocatable[resource], name
    lost = [pod for pod in known.views["pods"].values() if not pod.node]
    assert len(lost) <= 10


def test_each_admitted_workload_has_its_pods_and_others_have_none(known: Facts) -> None:
    pods = Counter(pod.workload_uid for pod in known.views["pods"].values())
    for view in workloads(known):
        if view.admission is None:
            assert not pods[view.uid]
        else:
            least = sum(each.count for each in view.admission.pod_sets)
            granted = (view.status.get("resize") or {}).get("granted", least)
            assert pods[view.uid] == granted, view.key


def test_it_is_busy(demo: Frozen, known: Facts) -> None:
    states = Counter(each.state for each in demo.scene.rows)
    assert 200 <= states["Admitted"] <= 600
    assert 250 <= states["Pending"] <= 600
    assert len(known.views["nodes"]) == 240
    waiting = Counter(each.queue for each in demo.scene.rows if each.state == "Pending")
    running = Counter(each.queue for each in demo.scene.rows if each.state == "Admitted")
    for team in TEAMS:
        assert waiting[team.name], team.name
        assert running[team.name] >= 5, team.name
        of_it = {each.workload.namespace for each in demo.scene.rows if each.queue == team.name}
        assert of_it == set(namespaces(team))
    assert waiting[STUDENT_QUEUE]
    assert running[STUDENT_QUEUE]


def test_users_and_stated_runtimes_are_known(known: Facts) -> None:
    makers = {
        job.submission.maker.user
        for job in known.views["jobs"].values()
        if job.submission is not None and job.submission.maker is not None
    }
    assert makers == {user for team in TEAMS for user in team.users}
    said = sum("expected" in job.spec for job in known.views["jobs"].values())
    assert 0.1 < said / len(known.views["jobs"]) < 0.7


def test_some_queues_borrow_and_lend_and_one_does_not_work(demo: Frozen) -> None:
    lines = {line.node: line for line in demo.scene.lines}
    uses = [use for line in demo.scene.lines if line.depth == 2 for use in line.uses]
    assert sum(use.borrowed > 0 for use in uses) >= 3
    assert sum(use.lent > 0 for use in uses) >= 3
    assert "l4" in lines["queue", BROKEN].problem
    assert [line.node for line in demo.scene.lines if line.problem] == [("queue", BROKEN)]
    assert lines["queue", BROKEN].waiting == 3
    assert {line.depth for line in demo.scene.lines} == {0, 1, 2}


def test_two_nodes_are_not_ready_and_one_is_cordoned(known: Facts) -> None:
    nodes = {view.name: view for view in known.views["nodes"].values()}
    unready = {name for name, view in nodes.items() if not view.ready}
    assert unready == set(NOT_READY)
    assert len(unready) == 2
    assert [name for name, view in nodes.items() if view.cordoned] == [CORDONED]
    assert all(nodes[name].trouble and NOW - nodes[name].since > 0 for name in unready)


def test_a_job_without_an_image_backs_off(demo: Frozen) -> None:
    found = row(demo, special.NEVER_READY)
    assert (found.state, found.reason) == ("Pending", "PodsNotReady")
    assert found.workload.readiness.attempts >= 2
    assert "ImagePullBackOff" in found.workload.status["message"]


def test_a_job_can_never_fit_and_three_wait_in_a_broken_queue(demo: Frozen) -> None:
    found = row(demo, special.NEVER_FITS)
    assert (found.state, found.reason) == ("Pending", "NeverFits")
    assert "the largest node of h100 has 8" in found.workload.status["message"]
    broken = [each for each in demo.scene.rows if each.workload.namespace == special.IN_BROKEN[0]]
    assert [each.reason for each in broken] == ["ClusterQueueInactive"] * 3


def test_a_job_grows_on_idle_quota(demo: Frozen) -> None:
    found = row(demo, special.GROWING)
    assert found.workload.status["resize"]["granted"] > 4
    assert "of them extra" in found.workload.status["message"]


def test_there_is_a_past_with_evictions_and_all_kinds_of_ends(demo: Frozen) -> None:
    history = demo.stage.history
    spans = history.spans(NOW - PAST_SECONDS)
    assert {str(span.how) for span in spans} >= {"running", "succeeded", "failed", "evicted"}
    assert len(spans) > 1000
    reasons = Counter(each.reason for each in history.evictions(NOW - PAST_SECONDS))
    assert reasons["Preempted"] >= 20
    assert reasons["PodsNotReady"] >= 2
    use = history.use("h100", GPU)
    assert len(use.times) > 200
    assert use.times[0] <= NOW - PAST_SECONDS + 600
    counts = history.counts()
    assert all(count is not None and count > 100 for count in counts.waiting[10:])


@pytest.fixture
def later() -> dict[str, Any]:
    cluster = DemoCluster(5, NOW, SHORT)
    cluster.advance(NOW)
    before, revision = cluster.facts(), cluster.revision
    cluster.advance(NOW + SHORT)
    return {"before": before, "after": cluster.facts(), "news": cluster.revision - revision}


def test_time_goes_on(later: dict[str, Any]) -> None:
    before, after = later["before"], later["after"]
    assert after.taken == before.taken + SHORT
    assert later["news"] > 100
    came = after.views["jobs"].keys() - before.views["jobs"].keys()
    assert len(came) > 50
    ended = [view for view in workloads(after) if view.finished and view.uid not in _finished(before)]
    assert len(ended) > 50
    admitted = [view for view in workloads(after) if view.admission is not None and view.since > NOW]
    assert len(admitted) > 50


def _finished(known: Facts) -> set[str]:
    return {view.uid for view in workloads(known) if view.finished}


def test_jobs_are_deleted_some_hours_after_their_end() -> None:
    cluster = DemoCluster(6, NOW, SHORT)
    cluster.advance(NOW - SHORT / 2)
    early = _finished(cluster.facts())
    assert early
    cluster.advance(NOW - SHORT / 2 + KEPT_SECONDS)
    there = {view.uid for view in workloads(cluster.facts())}
    assert not early & there
    assert {view.uid for view in cluster.facts().views["jobs"].values()} == there
