"""The mutator is a function of its seed, meets every kind and every class, and keeps what a watch goes by."""

from collections import Counter
from typing import Any

import pytest

from admitter.cache.world import World
from admitter.client.decoding import decoded
from admitter.client.source import Source
from tests.abuse.mutator import CLASSES, MOST_CHANGES, READ, mutated
from tests.abuse.samples import KINDS, QUEUED, stored
from tests.cache.test_described_views import source as source_of_described
from tests.scale import scaled

SEEDS = range(60)


def test_every_kind_that_is_read_has_a_sample_that_can_be_read() -> None:
    read = {source.path.rsplit("/", 1)[-1]: source for source in World().sources}
    read[QUEUED] = World().read_queued_pods
    assert KINDS.keys() == {*read, "experiments", "leases"}
    for plural, source in read.items():
        source.read(stored(plural))
    view = source_of_described().read(stored("experiments"))
    assert ([each.count for each in view.sets], view.problem) == ([1, 2], "")


@pytest.mark.parametrize("plural", KINDS)
def test_an_object_is_a_function_of_its_seed_and_no_seed_changes_what_a_watch_goes_by(plural: str) -> None:
    """Names are missing or no text, and never those of another object; the version is what it was."""
    valid = stored(plural)
    made = [mutated(valid, f"{plural}-{seed}") for seed in SEEDS]
    assert made == [mutated(valid, f"{plural}-{seed}") for seed in SEEDS]
    assert len({each.text for each in made}) > len(SEEDS) * 0.9
    for each in made:
        assert 1 <= len(each.classes) <= MOST_CHANGES
        metadata = decoded(each.text)["metadata"]
        assert metadata["resourceVersion"] == valid["metadata"]["resourceVersion"]
        for field in ("name", "namespace", "uid"):
            found = metadata.get(field)
            assert not isinstance(found, str) or found == valid["metadata"].get(field)


def test_every_class_is_met() -> None:
    found = Counter(each for seed in SEEDS for each in mutated(stored("workloads"), str(seed)).classes)
    assert found.keys() == CLASSES.keys()


def test_all_names_that_are_read_are_used() -> None:
    valid, unseen = stored("nodes"), {*READ}
    for seed in range(4_000):
        text = mutated(valid, str(seed)).text
        unseen = {name for name in unseen if name.encode() not in text}
        if not unseen:
            break
    assert unseen == set()


@pytest.mark.parametrize("plural", [plural for plural in KINDS if plural != "leases"])
def test_a_changed_object_is_read_or_its_field_is_named(plural: str) -> None:
    world = World()
    special: dict[str, Source[Any]] = {"experiments": source_of_described(), QUEUED: world.read_queued_pods}
    source = special.get(plural) or world.source_of(plural)
    valid = stored(plural)
    valid["metadata"]["managedFields"] = [{"manager": "kubectl", "time": "2026-01-01T00:00:00Z"}]
    unreadable = 0
    for seed in range(scaled(60, 2000)):
        raw = decoded(mutated(valid, f"{plural}-{seed}").text)
        try:
            source.parse(source.fitted(raw))
        except ValueError:  # any other error is one that the types of the fields should have kept away
            unreadable += 1
    assert 5 < unreadable < scaled(60, 2000)
