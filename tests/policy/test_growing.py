"""What a Workload may run beyond its admission, by what its Job and its own status say."""

from dataclasses import replace
from typing import Any

import pytest

from admitter.cache.resize_status import ResizeStatus
from admitter.cache.views import JobView, WorkloadView
from admitter.policy import growing
from admitter.quantities.amounts import InvalidQuantityError
from tests.policy.test_held import job, workload

Json = dict[str, Any]


def able(said: str = "9", *, status: Json | None = None, applied: int | None = None, **spec: Any) -> JobView:
    """A Job with four pods of its own, and work for a hundred."""
    made = job(status or {}, **{"completions": 100, **spec})
    noted = {"original": 4, "applied": applied} if applied is not None else {}
    return replace(made, spec={**made.spec, "most": said, **noted})


def grown(granted: int, wanted: int, **more: Any) -> WorkloadView:
    """A Workload of four pods that was granted more."""
    made = workload()
    resize = {"granted": granted, "wanted": wanted, "changedAt": "2026-01-01T00:01:00Z"}
    return replace(made, status={**made.status, "resize": resize, **more})


def test_what_is_left_to_do_is_all_that_it_can_use() -> None:
    assert growing.most(able()) == 9
    assert growing.most(able(status={"succeeded": 95})) == 5
    assert growing.most(able(completions=None)) == 9
    assert growing.most(able(completions=None, status={"succeeded": 1})) is None
    assert growing.most(job({})) is None
    with pytest.raises(InvalidQuantityError, match="'much', which is no number of pods"):
        growing.most(able("much"))


def test_what_the_engine_is_told() -> None:
    assert growing.extra_of(workload(), job({})) is None, "it can use no more"
    extra = growing.extra_of(workload(), able())
    assert extra is not None
    assert (extra.each, extra.base, extra.most, extra.granted, extra.kept) == (
        ((("any", "cpu"), 1000),),
        *(4, 5, 0, 0),
    )
    extra = growing.extra_of(grown(7, 5), able(applied=7, parallelism=7))
    assert extra is not None
    assert (extra.most, extra.granted, extra.kept) == (5, 3, 1)


@pytest.mark.parametrize(
    ("made", "asked"),
    [
        (grown(6, 9, held=[{"name": "main", "count": 3}]), able(applied=6, parallelism=6)),
        (grown(6, 9), able(applied=6, parallelism=5)),
        (grown(6, 9), able("6", applied=6, parallelism=6)),
        (grown(6, 9), able(applied=6, suspend=True)),
    ],
)
def test_it_gets_no_more_once_it_has_given_some_back_or_runs_no_more(
    made: WorkloadView, asked: JobView
) -> None:
    extra = growing.extra_of(made, asked)
    assert extra is not None
    assert (extra.most, extra.granted) == (2, 2)


def test_nothing_is_decided_about_one_that_pauses_or_is_evicted() -> None:
    extra = growing.extra_of(grown(7, 9), able(applied=7, parallelism=7), pauses=True)
    assert extra is not None
    assert (extra.most, extra.granted, extra.kept) == (3, 3, 0)


def test_a_job_is_patched_once_for_each_grant() -> None:
    patch = growing.patch(grown(7, 9), able())
    assert patch is not None
    assert patch["spec"] == {"parallelism": 7}
    noted = patch["metadata"]["annotations"]
    assert noted == {"admitter.dev/original-parallelism": "4", "admitter.dev/granted-parallelism": "7"}
    assert growing.patch(grown(7, 9), able(applied=7, parallelism=7)) is None
    assert growing.patch(grown(7, 9), able(applied=7, parallelism=6)) is None, "its user has lowered it"
    patch = growing.patch(grown(7, 5), able(applied=7, parallelism=7))
    assert patch is not None
    assert patch["spec"] == {"parallelism": 5}
    patch = growing.patch(grown(7, 5), able(applied=5, parallelism=7))
    assert patch is not None, "what an annotation says that its user has written does not keep pods"
    assert patch["spec"] == {"parallelism": 5}


@pytest.mark.parametrize(
    ("made", "asked", "needs", "expected"),
    [
        (workload(), able(), 4, None),
        (grown(7, 9), able(), 4, None),
        (grown(7, 9), able(applied=7, parallelism=7), 7, None),
        (grown(7, 5), able(applied=5, parallelism=5), 7, None),
        (grown(7, 5), able(applied=5, parallelism=5), 6, (6, 5)),
        (grown(7, 5), able(applied=5, parallelism=5), 5, (5, 9)),
        (grown(7, 9), able(applied=7, parallelism=5), 5, (5, 5)),
        (grown(7, 9), able(applied=7, parallelism=7, status={"succeeded": 98}), 2, (4, 4)),
    ],
    ids=[
        *("never grown", "not patched yet", "all run", "pods end", "some have ended", "all have ended"),
        *("its user has lowered it", "little is left to do"),
    ],
)
def test_a_grant_is_lowered_once_pods_are_gone(
    made: WorkloadView, asked: JobView, needs: int, expected: tuple[int, int] | None
) -> None:
    found = growing.given_back(made, asked, needs)
    assert (found and (found.granted, found.wanted)) == expected


def test_words() -> None:
    assert growing.words(ResizeStatus(9, 6, 0.0), 4) == "runs with 6 pods, 2 of them extra: these go first"
    assert growing.words(ResizeStatus(5, 7, 0.0), 4) == "runs with 5 pods; 2 extra pods have to end"
    assert growing.words(ResizeStatus(9, 4, 0.0), 4) == "runs with 4 pods, and could use 9"
