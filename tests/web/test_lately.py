"""What is kept of what was lately: each namespace has its share."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from admitter.web.lately import Key, Lately, share_of_one


@dataclass(frozen=True)
class Each:
    """Something of a namespace."""

    namespace: str
    key: Key


def at(namespace: str, time: float) -> Each:
    return Each(namespace, (namespace, time))


def lately(most: int) -> Lately[Each]:
    return Lately(most, lambda each: each.key[1])


def test_the_namespace_with_most_loses_its_oldest() -> None:
    kept = lately(10)
    kept.add(at("small", 0.0))
    for time in range(1, 21):
        kept.add(at("large", float(time)))
    kept.forget(0.0)
    assert list(kept) == [at("small", 0.0), *(at("large", float(time)) for time in range(12, 21))]
    assert kept.gone() == [("large", float(time)) for time in range(1, 12)]
    assert kept.gone() == [], "it is told once"


def test_what_is_old_goes_and_is_not_told() -> None:
    kept = lately(10)
    for time in range(5):
        kept.add(at("one", float(time)))
    kept.forget(3.0)
    assert list(kept) == [at("one", 3.0), at("one", 4.0)]
    kept.forget(9.0)
    assert (list(kept), kept.gone(), at("one", 4.0) in kept) == ([], [], False)


def test_what_was_known_earlier_is_older_than_what_came_since() -> None:
    kept = lately(2)
    kept.add(at("one", 5.0))
    kept.restore([at("one", 4.0), at("one", 3.0)])
    kept.forget(0.0)
    assert list(kept) == [at("one", 4.0), at("one", 5.0)]


@given(st.lists(st.integers(0, 50), max_size=20), st.integers(1, 200))
def test_shares_are_as_large_as_there_is_room(counts: list[int], most: int) -> None:
    share = share_of_one(counts, most)
    total = sum(min(count, share) for count in counts)
    assert total <= max(most, len(counts))
    if any(count > share for count in counts):
        larger = sum(min(count, share + 1) for count in counts)
        assert larger > most, "with a larger share they had too many"
