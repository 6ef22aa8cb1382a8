"""Which shard a queue belongs to, and when its tree has to be left alone."""

from typing import Any

from admitter.cache.views import parse_object, parse_workload
from admitter.cache.world import World
from admitter.election.rendezvous import shard_of
from admitter.names import ELASTIC_QUOTA_QUEUE

Json = dict[str, Any]
NUMBER = 16


class Scene:
    """A world that is shared, of which the objects are changed one after the other."""

    def __init__(self) -> None:
        self.world = World()
        self.shards = self.world.shards
        self.shards.spread(NUMBER)
        self.shards.active = True
        self._revision = 0

    def _raw(self, name: str, generation: int, uid: str, **content: Json) -> Json:
        self._revision += 1
        metadata = {
            "name": name,
            "uid": uid or f"uid-{name}",
            "resourceVersion": str(self._revision),
            "generation": generation,
            "creationTimestamp": "2026-01-01T00:00:00Z",
        }
        return {"metadata": metadata, **content}

    def queue(self, name: str, cohort: str = "", generation: int = 1, uid: str = "") -> None:
        view = parse_object(self._raw(name, generation, uid, spec={"cohort": cohort}))
        self.world.cluster_queues.apply(view)

    def cohort(self, name: str, parent: str = "", generation: int = 1) -> None:
        self.world.cohorts.apply(parse_object(self._raw(name, generation, "", spec={"parent": parent})))

    def local_queue(self, name: str, cluster_queue: str) -> None:
        raw = self._raw(name, 1, "", spec={"clusterQueue": cluster_queue})
        raw["metadata"]["namespace"] = "team"
        self.world.local_queues.apply(parse_object(raw))

    def contested(self) -> set[str]:
        """The names of the trees that are left alone; from now on they are not."""
        names = {name for _, name in self.shards.contested}
        self.shards.mark_agreed(dict(self.shards.contested))
        return names


def test_a_queue_is_where_the_top_of_its_tree_is() -> None:
    scene = Scene()
    scene.queue("alone")
    scene.queue("shares", "team")
    scene.cohort("team", "unit")
    scene.cohort("unit", "firm")
    assert scene.shards.root("alone") == ("queue", "alone")
    assert scene.shards.root("shares") == ("cohort", "firm")
    assert scene.shards.root("none-such") == ("queue", "none-such")
    assert scene.shards.root("eq_team_quota") == ("cohort", ELASTIC_QUOTA_QUEUE)
    assert scene.shards.of_queue("shares") == scene.shards.of_cohort("team") == shard_of("firm", NUMBER)


def test_each_cohort_of_a_cycle_is_at_the_top_and_its_trees_are_left_alone_when_it_closes() -> None:
    scene = Scene()
    scene.cohort("a", "b")
    scene.cohort("b", "c")
    scene.cohort("below", "a")
    scene.contested()
    scene.cohort("c", "a", generation=2)
    tops = {name: scene.shards.root(name)[1] for name in ("a", "b", "c", "below")}
    assert tops == {name: name for name in ("a", "b", "c", "below")}, "no queue has these names"
    for name in ("a", "b", "c", "below"):
        scene.queue(f"in-{name}", name)
    assert [scene.shards.root(f"in-{n}")[1] for n in ("a", "b", "c", "below")] == ["a", "b", "c", "a"]
    assert scene.contested() >= {"a", "b", "c"}


def test_a_tree_is_left_alone_when_it_may_have_got_what_was_anothers() -> None:
    scene = Scene()
    scene.cohort("one")
    scene.queue("q", "one")
    assert scene.contested() == set(), "a new name is in no process's plans"
    scene.queue("q", "one", generation=2)
    assert scene.contested() == set(), "it is where it was"
    scene.queue("q", "two", generation=3)
    assert scene.contested() == {"two"}
    scene.queue("q", "two", generation=5)
    assert scene.contested() == {"two"}, "it may have been elsewhere between"
    scene.cohort("two", "one")
    assert scene.contested() == {"one"}
    scene.world.cohorts.delete(("", "two"), "uid-two")
    assert scene.contested() == {"two"}


def test_a_name_that_comes_back_is_left_alone_until_all_know_that_it_was_gone() -> None:
    scene = Scene()
    scene.queue("q", "one")
    scene.world.cluster_queues.delete(("", "q"), "uid-q")
    scene.queue("q", "two", uid="another")
    assert scene.contested() == {"two"}
    scene.world.cluster_queues.delete(("", "q"), "another")
    scene.cohort("x", "y")
    scene.contested()
    scene.queue("q", "one", uid="third")
    assert scene.contested() == set(), "no process knows of an earlier one any more"


def test_what_a_list_brings_may_have_changed_before() -> None:
    scene = Scene()
    raw = scene._raw("new", 1, "", spec={"cohort": "one"})
    scene.world.cluster_queues.replace([parse_object(raw)], 50)
    assert scene.contested() == {"one"}
    scene.world.cluster_queues.replace([parse_object(raw)], 60)
    assert scene.contested() == set(), "a list that says nothing new changes nothing"
    assert scene.shards.versions == (0, 60)


def test_a_tree_that_is_contested_again_stays_so() -> None:
    scene = Scene()
    scene.cohort("a", "top")
    asked = dict(scene.shards.contested)
    scene.cohort("b", "top")
    scene.shards.mark_agreed(asked)
    assert scene.contested() == {"top"}


def test_a_workload_is_of_the_queue_that_has_admitted_it_else_of_the_one_it_asks_for() -> None:
    scene = Scene()
    scene.queue("first", "one")
    scene.queue("second", "two")
    scene.local_queue("main", "first")
    raw = scene._raw("w", 1, "", spec={"queueName": "main", "podSets": []})
    raw["metadata"]["namespace"] = "team"
    key, owners = ("team", "w"), scene.world.owners
    scene.world.workloads.apply(parse_workload(raw))
    assert owners.shard(key) == shard_of("one", NUMBER)
    raw["metadata"]["resourceVersion"] = "99"
    raw["status"] = {"admission": {"clusterQueue": "second", "podSets": []}}
    scene.world.workloads.apply(parse_workload(raw))
    assert owners.shard(key) == shard_of("two", NUMBER)
    assert not owners.owns(key)
    scene.shards.epochs[shard_of("two", NUMBER)] = 1
    assert owners.owns(key)


def test_what_is_in_no_tree_is_in_the_first_shard_and_elastic_quotas_are_one_tree() -> None:
    scene = Scene()
    owners = scene.world.owners
    assert owners.shard(("team", "unknown")) == 0
    assert owners.of_local_queue("team", "none-such") == 0
    assert owners.of_local_queue("team", ELASTIC_QUOTA_QUEUE) == shard_of(ELASTIC_QUOTA_QUEUE, NUMBER)
    scene.queue("first", "one")
    scene.local_queue(ELASTIC_QUOTA_QUEUE, "first")
    assert owners.of_local_queue("team", ELASTIC_QUOTA_QUEUE) == shard_of("one", NUMBER)
    scene.shards.governed = {"team"}
    assert owners.of_local_queue("team", ELASTIC_QUOTA_QUEUE) == shard_of(ELASTIC_QUOTA_QUEUE, NUMBER)


def test_a_single_shard_owns_all_and_follows_no_trees() -> None:
    world = World()
    assert world.owners.owns(("any", "one"))
    assert not world.shards.leads_queue("any")
    assert not world.shards.decides(("cohort", "any")), "it does not lead yet"
    world.shards.epochs[0] = 7
    assert world.shards.epoch_of("any") == (0, 7)
