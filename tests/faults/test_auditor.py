"""The auditor of the fault tests finds each kind of violation, and none in histories that are right."""

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from tests.faults.facts import Admission, JobFact, PodFact, QuotaFact, WorkloadFact, parse
from tests.faults.ledger import RESTART_SECONDS, Ledger
from tests.faults.limits import GRACE_SECONDS, UNSEEN_SECONDS
from tests.faults.timeline import Timeline

CPU = ("default", "cpu")


class History:
    """Writes what an API server would tell, one version after the other, and has it checked."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.timeline = Timeline(self.ledger, ("all",))
        self.now = 0.0
        self._versions = count(1)
        self.version = 0

    def tell(self, uid: str, fact: Any) -> None:
        self.version = next(self._versions)
        self.timeline.event(self.version, uid, fact, self.now)
        self.timeline.progress("all", self.version)

    def queue(self, name: str = "queue", *, least: int = 4, generation: int = 1, **more: Any) -> None:
        """A ClusterQueue of so many CPUs, with a status that names the generation unless told otherwise."""
        fields: dict[str, Any] = {"cohort": "", "strict": False, "observed": generation, "most": least} | more
        most = () if fields["most"] is None else ((CPU, fields["most"] * 1000),)
        made = QuotaFact(
            f"uid-{name}",
            name,
            fields["cohort"],
            fields["strict"],
            generation,
            fields["observed"],
            ((CPU, least * 1000),),
            most,
        )
        self.tell(name, made)

    def job(self, name: str, **more: Any) -> None:
        fields: dict[str, Any] = {
            "suspended": True,
            "finished": False,
            "active": 0,
            "parallelism": 1,
            "created": "1",
        } | more
        made = JobFact(
            name,
            f"team/{name}",
            fields["created"],
            fields["suspended"],
            fields["finished"],
            fields["active"],
            fields["parallelism"],
        )
        self.tell(name, made)

    def workload(self, job: str, cpu: int = 0, *, queue: str = "queue", **more: Any) -> None:
        """The Workload of a Job, which holds so many CPUs."""
        fields: dict[str, Any] = {
            "finished": False,
            "told": False,
            "asks": cpu or 1,
            "uid": f"w-{job}",
        } | more
        holds = Admission(queue, ((CPU, cpu * 1000),)) if cpu else None
        asks = (("cpu", fields["asks"] * 1000),)
        made = WorkloadFact(
            fields["uid"], f"team/w-{job}", job, holds, fields["finished"], fields["told"], asks
        )
        self.tell(fields["uid"], made)

    def pod(self, name: str, job: str, *, live: bool = True, succeeded: bool = False, cpu: int = 1) -> None:
        use = Admission("queue", ((CPU, cpu * 1000),))
        self.tell(name, PodFact(name, f"team/w-{job}", job, live, succeeded, use))

    def runs(self, name: str, cpu: int, **more: Any) -> None:
        """A Job in order, from its creation to its start."""
        self.job(name)
        self.workload(name)
        self.workload(name, cpu, **more)
        self.job(name, suspended=False, active=1)

    def stops(self, name: str, cpu: int) -> None:
        """A Job in order that is evicted."""
        self.job(name, active=1)
        self.job(name)
        self.workload(name, asks=cpu)

    def ends(self, name: str, cpu: int) -> None:
        """A Job in order that comes to its end."""
        self.job(name, suspended=False, finished=True)
        self.workload(name, cpu, finished=True)

    def blind(self, happen: Callable[[], None]) -> None:
        """Some events of which only the differences are known."""
        after = self.version
        waiting, self.timeline.progress = self.timeline.progress, lambda *_: None  # type: ignore[method-assign]  # held back
        happen()
        self.timeline.progress = waiting  # type: ignore[method-assign]  # as it was
        self.timeline.gap(after, self.version)
        self.timeline.progress("all", self.version)

    @property
    def found(self) -> list[str]:
        return self.ledger.findings


@pytest.fixture
def history() -> History:
    made = History()
    made.queue()
    return made


def deleted_as_it_starts(history: History, seconds: float) -> None:
    """A Workload is deleted by hand, and the start of its Job arrives some seconds later."""
    history.job("a")
    history.workload("a", 3)
    history.tell("w-a", None)
    history.now += seconds
    history.job("a", suspended=False)


def test_a_start_that_was_on_its_way_when_its_workload_was_deleted_is_counted_and_no_fault(
    history: History,
) -> None:
    deleted_as_it_starts(history, 1)
    assert history.found == []
    assert history.ledger.counts["starts on an admission just deleted"] == 1
    assert history.ledger.use("queue") == {CPU: 3000}, "it counts all the same"
    history.job("a")
    history.job("a", suspended=False)
    assert ["without an admission" in found for found in history.found] == [True], (
        "no controller starts it again"
    )


def test_a_start_long_after_its_workload_was_deleted_is_a_fault(history: History) -> None:
    deleted_as_it_starts(history, GRACE_SECONDS + 1)
    assert ["without an admission" in found for found in history.found] == [True]


def test_a_history_that_is_right_is_found_right(history: History) -> None:
    history.runs("a", 3)
    history.stops("a", 3)
    history.runs("b", 4)
    history.ends("b", 4)
    history.workload("a", 3)
    history.job("a", suspended=False, active=1)
    history.ends("a", 3)
    history.ledger.close()
    assert history.found == []
    assert history.ledger.counts["admissions"] == 3


@pytest.mark.parametrize(
    ("happens", "words"),
    [
        pytest.param(
            lambda h: (h.runs("a", 3), h.runs("b", 2)), "5000, of 4000", id="more is admitted than there is"
        ),
        pytest.param(
            lambda h: (h.runs("a", 3), h.job("a", active=1), h.workload("a"), h.runs("b", 2)),
            "5000, of 4000",
            id="a suspended Job says that it has pods still",
        ),
        pytest.param(
            lambda h: (h.runs("a", 3), h.tell("w-a", None), h.runs("b", 2)),
            "5000, of 4000",
            id="a Job runs on though its Workload was deleted",
        ),
        pytest.param(
            lambda h: (
                h.runs("a", 3),
                h.pod("p", "a", cpu=3),
                h.tell("a", None),
                h.tell("w-a", None),
                h.runs("b", 2),
            ),
            "5000, of 4000",
            id="a pod outlives its deleted Job",
        ),
        pytest.param(
            lambda h: (h.job("a"), h.job("a", suspended=False)),
            "without an admission",
            id="started unadmitted",
        ),
        pytest.param(lambda h: h.job("a", suspended=False), "without an admission", id="made running"),
        pytest.param(
            lambda h: (h.runs("a", 1), h.stops("a", 1), h.job("a", suspended=False)),
            "without an admission",
            id="a start that arrives after its quota was released",
        ),
        pytest.param(
            lambda h: (h.runs("a", 1), h.job("a"), h.job("a", suspended=False)),
            "started twice on one admission",
            id="one admission, two starts",
        ),
        pytest.param(
            lambda h: (h.runs("a", 1), h.workload("a")),
            "released while its Job may run",
            id="released too early",
        ),
        pytest.param(
            lambda h: (h.runs("a", 1), h.workload("a", 2)),
            "without having been released",
            id="admitted twice",
        ),
        pytest.param(
            lambda h: (h.runs("a", 1), h.pod("p", "a"), h.pod("q", "a")),
            "2 pods of Job",
            id="pods of two starts",
        ),
        pytest.param(
            lambda h: (
                h.runs("a", 1),
                h.pod("p", "a", live=False, succeeded=True),
                h.pod("q", "a", live=False, succeeded=True),
            ),
            "ran twice",
            id="the work is done twice",
        ),
        pytest.param(lambda h: (h.runs("a", 1), h.tell("a", None)), "was lost", id="a Job that is gone"),
        pytest.param(
            lambda h: (h.job("a"), h.ledger.close()),
            "not finished in the end",
            id="a Job that waits for ever",
        ),
        pytest.param(
            lambda h: (h.runs("a", 1), h.ledger.close()), "still used in the end", id="quota that is lost"
        ),
    ],
)
def test_a_history_that_is_wrong_is_found_wrong(
    history: History, happens: Callable[[History], object], words: str
) -> None:
    happens(history)
    assert any(words in found for found in history.found), history.found


def test_work_that_was_done_while_its_job_was_evicted_may_be_done_anew(history: History) -> None:
    history.runs("a", 1)
    history.pod("p", "a")
    history.job("a", active=1)
    history.pod("p", "a", live=False, succeeded=True)
    history.stops("a", 1)
    history.runs("a", 1)
    history.pod("q", "a", live=False, succeeded=True)
    assert history.found == []


def test_pods_that_the_job_controller_makes_twice_as_its_api_server_restarts_are_counted_and_no_fault(
    history: History,
) -> None:
    history.runs("a", 1)
    history.ledger.server_starts.append(history.now)
    history.pod("p", "a")
    history.pod("q", "a")
    history.pod("p", "a", live=False, succeeded=True)
    history.pod("q", "a", live=False, succeeded=True)
    assert history.found == []
    assert history.ledger.counts["Jobs with pods made twice by the Job controller"] == 1
    history.pod("r", "a", live=False, succeeded=True)
    assert any("ran twice" in found for found in history.found)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(0, RESTART_SECONDS + 1, id="long after the restart"),
        pytest.param(1, 1, id="of a Job that was started after the restart"),
    ],
)
def test_pods_of_two_starts_are_a_fault_though_the_api_server_restarted(
    history: History, before: float, after: float
) -> None:
    history.ledger.server_starts.append(history.now)
    history.now += before
    history.runs("a", 1)
    history.now += after
    history.pod("p", "a")
    history.pod("q", "a")
    assert any("2 pods of Job" in found for found in history.found)


def test_more_pods_than_twice_as_many_are_a_fault_whatever_restarts(history: History) -> None:
    history.runs("a", 1)
    history.ledger.server_starts.append(history.now)
    for name in ("p", "q", "r"):
        history.pod(name, "a")
    assert any("3 pods of Job" in found for found in history.found)


def test_what_a_user_deletes_on_purpose_is_not_lost(history: History) -> None:
    history.ledger.expected_gone.add("team")
    history.runs("a", 1)
    history.tell("a", None)
    history.tell("w-a", None)
    history.ledger.close()
    assert history.found == []


def test_queues_of_a_cohort_share_what_they_bring_and_no_more() -> None:
    history = History()
    history.queue("left", least=4, most=7, cohort="all")
    history.queue("right", least=4, most=7, cohort="all")
    history.runs("a", 7, queue="left")
    history.runs("b", 1, queue="right")
    assert history.found == []
    history.runs("c", 1, queue="right")
    assert ["cohort all 9000, of 8000" in found for found in history.found] == [True]


def edited(history: History, *, observed: bool) -> None:
    """The quota is cut from 4 to 2 CPUs while 3 are in use; whether the controller has told that it knows."""
    history.runs("a", 3)
    history.job("b")
    history.workload("b")
    history.queue(least=2, generation=2, observed=2 if observed else 1)


def test_what_was_decided_before_an_edit_may_arrive_after_it(history: History) -> None:
    edited(history, observed=True)
    history.workload("b", 1)
    assert history.found == []


def test_a_workload_that_came_after_the_edit_was_seen_keeps_to_it_at_once(history: History) -> None:
    edited(history, observed=True)
    history.runs("c", 1)
    assert ["4000, of 2000" in found for found in history.found] == [True]


@pytest.mark.parametrize(("observed", "seconds"), [(True, GRACE_SECONDS), (False, UNSEEN_SECONDS)])
def test_after_a_while_every_admission_keeps_to_an_edit(
    history: History, *, observed: bool, seconds: float
) -> None:
    edited(history, observed=observed)
    history.now += seconds
    history.workload("b", 1)
    assert ["4000, of 2000" in found for found in history.found] == [True]


def test_excess_that_an_edit_made_may_stay(history: History) -> None:
    edited(history, observed=True)
    history.now += UNSEEN_SECONDS
    history.job("a", suspended=False, active=1)
    history.ends("a", 3)
    history.workload("b", 2)
    assert history.found == []


def strict() -> History:
    history = History()
    history.queue(strict=True)
    history.runs("first", 3)
    history.job("second", created="2")
    history.workload("second", asks=3, told=True)
    return history


def test_in_a_strict_queue_a_later_one_does_not_take_what_an_earlier_one_waits_for() -> None:
    history = strict()
    history.job("third", created="3")
    history.workload("third")
    history.workload("third", 1)
    assert ["team/w-third overtook" in found for found in history.found] == [True]


def test_a_workload_that_fits_beside_earlier_ones_has_overtaken_none() -> None:
    history = strict()
    history.ends("first", 3)
    history.job("third", created="3")
    history.workload("third")
    history.workload("third", 1)
    history.workload("second", 3)
    assert history.found == []


def test_a_workload_from_before_an_earlier_one_was_known_has_overtaken_none() -> None:
    history = History()
    history.queue(strict=True)
    history.runs("first", 3)
    history.job("second", created="2")
    history.job("third", created="3")
    history.workload("third")
    history.workload("second", asks=3, told=True)
    history.workload("third", 1)
    assert history.found == []


def test_a_workload_decided_with_one_that_lost_its_quota_to_an_earlier_one_has_overtaken_none() -> None:
    history = History()
    history.queue(strict=True)
    history.runs("running", 2)
    history.job("second", created="2")
    history.workload("second", asks=1, told=True)
    history.job("third", created="3")
    history.workload("third")
    history.job("first", created="1")
    history.workload("first")
    history.workload("first", 1)
    history.workload("third", 1)
    assert history.found == []


def test_where_only_the_differences_are_known_order_is_not_checked_but_sums_are(history: History) -> None:
    def unseen() -> None:
        history.job("a", suspended=False, active=1)
        history.workload("a", 3)

    history.blind(unseen)
    history.ends("a", 3)
    assert history.found == []

    def too_much() -> None:
        history.workload("c", 3)
        history.workload("b", 3)

    history.blind(too_much)
    history.job("z")
    assert [
        "what was not seen made the use of default cpu in queue 6000, of 4000" in f for f in history.found
    ] == [True]


def test_a_job_that_was_started_unseen_and_never_admitted_is_found(history: History) -> None:
    history.blind(lambda: history.job("a", suspended=False))
    history.job("z")
    assert ["was never admitted" in found for found in history.found] == [True]


def test_events_of_several_watches_are_checked_by_their_versions() -> None:
    ledger = Ledger()
    timeline = Timeline(ledger, ("jobs", "workloads"))
    waits = JobFact("a", "team/a", "1", suspended=True, finished=False, active=0, parallelism=1)
    runs = JobFact("a", "team/a", "1", suspended=False, finished=False, active=0, parallelism=1)
    holds = Admission("queue", ((CPU, 1000),))
    admitted = WorkloadFact("w", "team/w", "a", holds, finished=False, told=False, asks=())
    timeline.event(1, "a", waits, 0.0)
    timeline.event(3, "a", runs, 0.0)
    timeline.progress("jobs", 3)
    assert ledger.counts["jobs"] == 0, "the other watch has not got there yet"
    timeline.event(2, "w", admitted, 1.0)
    timeline.progress("workloads", 9)
    assert ledger.counts["starts"] == 1
    assert ledger.findings == []


def test_objects_are_read_as_the_api_server_sends_them() -> None:
    workload = {
        "metadata": {
            "uid": "u",
            "name": "w",
            "namespace": "n",
            "ownerReferences": [{"kind": "Job", "uid": "j"}],
        },
        "spec": {"podSets": [{"count": 2, "requests": {"cpu": "500m", "memory": "1Gi"}}]},
        "status": {
            "state": "Admitted",
            "conditions": [{"type": "Finished", "status": "False"}],
            "admission": {
                "clusterQueue": "q",
                "podSets": [{"flavors": {"cpu": "f"}, "usage": {"cpu": "1"}}],
            },
        },
    }
    asks = (("cpu", 1000), ("memory", 2 * 2**30 * 1000))
    holds = Admission("q", ((("f", "cpu"), 1000),))
    assert parse("workloads", workload) == WorkloadFact(
        "u", "n/w", "j", holds, finished=False, told=False, asks=asks
    )


def test_a_workload_that_the_api_server_calls_pending_is_not_told_why_it_waits() -> None:
    def told(**status: str) -> bool:
        metadata = {"uid": "u", "name": "w", "namespace": "n"}
        fact = parse("workloads", {"metadata": metadata, "spec": {"podSets": []}, "status": status})
        return isinstance(fact, WorkloadFact) and fact.told

    assert not told(state="Pending"), "what the definition sets is no controller's answer"
    assert told(state="Pending", reason="InsufficientQuota")
