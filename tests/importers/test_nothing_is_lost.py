"""Whatever is in a manifest: nothing fails, each field is accounted for, and what is made is valid."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admitter.importers.dispatch import WRITTEN_BY_SERVERS
from admitter.importers.reading import Document, document
from admitter.importers.systems import SystemName
from admitter.importers.translation import ManifestSource, Translation
from tests.importers.importing import Json, documents, leaves, translation
from tests.importers.samples import SAMPLES
from tests.scale import examples

GIVEN = {system: [each for text in texts for each in documents(text)] for system, texts in SAMPLES.items()}

JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**40) | st.text("aZ0_-./ é", max_size=5) | st.floats(0, 9),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text("ab./", max_size=3), inner, max_size=2)
    ),
    max_leaves=4,
)


def unaccounted(into: Translation, given_documents: list[Document]) -> set[tuple[str, str]]:
    """Fields that are in some objects, but not in the report."""
    missing = set()
    for each in given_documents:
        book = ManifestSource({}, each.name, Translation())
        for path in WRITTEN_BY_SERVERS:
            book.ignored(path)
        for finding in into.findings:
            if finding.object == each.name:
                book.ignored(finding.field)
        missing |= {(each.name, path) for path in leaves(each.raw) if not book.known(path)}
    return missing


def places(value: object, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """All places in an object."""
    found = [at] if at else []
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return found + [place for key, each in pairs for place in places(each, (*at, key))]


def changed(raw: Json, place: tuple[Any, ...], value: object, *, beside: bool) -> Json:
    """An object with another value at a place, or with a field more beside it."""
    copy: Any = deepcopy(raw)
    parent = copy
    for key in place[:-1]:
        parent = parent[key]
    if beside and isinstance(parent, dict):
        parent["neverHeardOf"] = value
    else:
        parent[place[-1]] = value
    return dict(copy)


@pytest.mark.parametrize("system", SAMPLES)
def test_each_field_of_the_samples_is_accounted_for(system: SystemName) -> None:
    into = translation(system, GIVEN[system])
    assert unaccounted(into, GIVEN[system]) == set()
    assert into.manifests


@pytest.mark.parametrize("system", SAMPLES)
@settings(max_examples=examples(36))
@given(data=st.data())
def test_whatever_stands_in_a_field_nothing_fails_and_nothing_is_lost(
    system: SystemName, data: st.DataObject
) -> None:
    index = data.draw(st.integers(0, len(GIVEN[system]) - 1))
    victim = GIVEN[system][index]
    place = data.draw(st.sampled_from(places(victim.raw)))
    value, beside = data.draw(JUNK), data.draw(st.booleans())
    odd = document("odd", changed(victim.raw, place, value, beside=beside))
    altered = [*GIVEN[system][:index], odd, *GIVEN[system][index + 1 :]]
    into = translation(system, altered)
    assert unaccounted(into, altered) == set()


@pytest.mark.parametrize("system", SAMPLES)
def test_the_same_input_gives_the_same_output(system: SystemName) -> None:
    first, second = (translation(system, deepcopy(GIVEN[system])) for _ in range(2))
    assert (first.in_order(), first.findings) == (second.in_order(), second.findings)
