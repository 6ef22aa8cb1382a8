"""Each check of a run with changed objects can fail."""

from itertools import product

import orjson
import pytest

from tests.abuse.feeding import Told, planned
from tests.abuse.in_flight import InFlight
from tests.abuse.mutated import Outcome, defects, markdown, summary
from tests.abuse.neighbours import Answers
from tests.abuse.samples import KINDS, stored


def answers() -> Answers:
    made = Answers()
    made.check("explain", right=False, told={"state": "Admitted"})
    return made


WRONG = {
    "the page ended": {"ended": ["the page"]},
    "exception in a log: Traceback": {"errors": ["Traceback"]},
    "sound Job work-1 did not start": {"unstarted": ["work-1"]},
    "1 sound Jobs waited more than 2.0 s, 2.50 s": {"waits": [0.1, 2.5]},
    "wrong answer: explain: {'state': 'Admitted'}": {"answers": answers()},
    "nothing read mut-1": {"told": Told(unseen=["mut-1"])},
    "a Job for all of the quota did not run: {'jobs whole': {}}": {"lost": "{'jobs whole': {}}"},
}


@pytest.mark.parametrize("words", WRONG)
def test_what_is_not_as_promised_is_told(words: str) -> None:
    outcome = Outcome(1, 10, **WRONG[words])  # type: ignore[arg-type]  # each is of its field's type
    assert outcome.wrong == [words]
    assert words in markdown(summary(outcome))


def test_a_run_as_promised_has_nothing_to_tell() -> None:
    assert Outcome(1, 10, waits=[0.1, 2.0]).wrong == []


def test_of_exceptions_only_those_of_the_place_that_reads_objects_are_expected() -> None:
    lines = [
        '{"event":"an object breaks its parser","exception":"Traceback"}',
        '{"event":"change not handled","exception":"Traceback"}',
        '{"event":"admitted"}',
    ]
    assert list(defects(lines)) == [lines[1]]


def test_every_kind_is_fed_in_both_ways() -> None:
    fed = list(planned(1, 300))
    assert {(each.plural, each.direct) for each in fed[: 2 * len(KINDS)]} == set(
        product(KINDS, (True, False))
    )
    assert {each.plural for each in fed} == KINDS.keys()
    assert fed == list(planned(1, 300))
    assert 100 < sum(each.direct for each in fed) < 200


def test_a_proxy_changes_marked_objects_alone_and_no_end_of_any() -> None:
    flight = InFlight(1)
    marked, other = stored("jobs"), stored("jobs")
    other["metadata"]["name"] = "sound"
    for kind, item, changes in (("ADDED", marked, True), ("ADDED", other, False), ("DELETED", marked, False)):
        text = orjson.dumps({"type": kind, "object": item})
        assert (flight("/apis/batch/v1/jobs", text) != text) is changes
    text = orjson.dumps({"metadata": {"resourceVersion": "9"}, "items": [other, marked]})
    passed = flight("/apis/batch/v1/jobs", text)
    assert passed != text
    assert orjson.dumps(other) in passed
    assert flight("/apis/batch/v1/jobs", text) == passed
