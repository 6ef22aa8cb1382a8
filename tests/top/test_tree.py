"""The order of the tree, and what of it is shown."""

from admitter.top.scene import ASTRAY
from admitter.top.tree import SortOrder, arranged
from tests.top.clusters import GPU, company
from tests.top.screens import scene_of

SCENE = scene_of(company())
KEY = ("a100", GPU)


def titles(
    order: SortOrder = SortOrder.NAME, folded: frozenset[tuple[str, str]] = frozenset(), words: str = ""
) -> list[str]:
    found = arranged(SCENE.lines, KEY, order, folded, words)
    return [place.line.title.removeprefix("ClusterQueue ").removeprefix("Cohort ") for place in found]


def test_places_are_below_their_cohort_in_any_order() -> None:
    stray = "without a queue"
    assert titles() == ["research", "team-a", "team-b", "alone", "broken", stray]
    assert titles(SortOrder.USE) == ["research", "team-a", "team-b", "alone", "broken", stray]
    assert titles(SortOrder.WAITING) == ["research", "team-a", "team-b", "alone", stray, "broken"]
    assert titles(SortOrder.RECENT)[:2] == ["research", "team-a"]


def test_a_folded_cohort_says_how_many_it_hides() -> None:
    first, second, *_ = arranged(SCENE.lines, KEY, SortOrder.NAME, {("cohort", "research")}, "")
    assert (first.folded, first.below) == (True, 2)
    assert second.line.title == "ClusterQueue alone"


def test_what_is_found_is_shown_with_all_above_and_below_it() -> None:
    assert titles(words="TEAM-B") == ["research", "team-b"]
    assert titles(words="search") == ["research", "team-a", "team-b"]
    assert titles(words="no such resourceflavor") == ["broken"]
    assert titles(words="team-b", folded=frozenset({("cohort", "research")})) == ["research", "team-b"]
    assert titles(words="nowhere") == []


def test_the_scene_knows_what_is_fullest_and_which_workloads_have_no_queue() -> None:
    assert SCENE.fullest == KEY
    assert SCENE.totals().startswith("4 queues: 4 waiting, ")
    assert [row.job for row in SCENE.rows[""]] == ["lost"]
    assert SCENE.lines[-1].node == ASTRAY
