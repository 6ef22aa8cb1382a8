"""A cluster without a controller: the header says so, and explanations promise nothing."""

from admitter.insight.controller_status import ControllerStatus, ShardLease
from tests.insight.states import NOW, State
from tests.top.clusters import company
from tests.top.screens import watching

NAME = "admitter-controller"
LEADS = ControllerStatus((ShardLease(0, NAME, alive=True, holder="pod_1", since=NOW - 7500.0),), NOW)
DEAD = ControllerStatus((ShardLease(0, NAME, alive=False, holder="pod_1", renewed=NOW - 240.0),), NOW)
MISSING = ControllerStatus((ShardLease(0, NAME, alive=False, exists=False),), NOW)
DENIED = ControllerStatus((), NOW, "tina may not list Leases")


async def test_the_header_says_that_no_controller_decides_until_one_does() -> None:
    async with watching(company()) as glass:
        before = await glass.lines()
        lines = await glass.decided(DEAD)
        told = " ".join(lines[3:6])
        assert told.startswith("No controller decides: Lease admitter-system/admitter-controller was last")
        assert "renewed 4 min ago by pod_1. Nothing is admitted until one runs" in told
        assert "No controller has run here yet" in " ".join(await glass.decided(MISSING))
        assert await glass.decided(LEADS) == before, "there is no room in a line of 80"
        assert await glass.decided(DENIED) == before, "it is not known that anything is wrong"


async def test_it_is_said_beside_a_problem_of_the_connection() -> None:
    async with watching(company()) as glass:
        await glass.decided(DEAD)
        lines = await glass.trouble("No answer from the API server: it is away")
        assert lines[3] == "No answer from the API server: it is away"
        assert lines[4].startswith("No controller decides: ")


async def test_shards_without_a_controller_are_named_by_their_trees() -> None:
    lost = ControllerStatus((LEADS.shards[0], ShardLease(1, f"{NAME}-shard-1", alive=False)), NOW, count=2)
    async with watching(company(), size=(160, 40)) as glass:
        told = " ".join(await glass.decided(lost))
        assert "No controller decides about shard 1 (" in told
        assert "Trees without a controller: " in told


async def test_where_there_is_room_the_header_says_which_controller_leads() -> None:
    async with watching(company(), size=(130, 30)) as glass:
        lines = await glass.decided(LEADS)
        assert lines[1].startswith("4 queues: ")
        assert lines[1].endswith("Controller pod_1 leads since 2025-12-31 21:55 UTC (2 h 5 min).")


async def test_the_page_of_keys_says_which_controller_leads_in_any_terminal() -> None:
    async with watching(company(), size=(80, 40)) as glass:
        await glass.decided(LEADS)
        told = "\n".join(await glass.press("question_mark"))
        assert "Controller pod_1 leads since 2025-12-31 21:55 UTC (2 h 5 min)." in told


async def test_an_explanation_does_not_say_that_a_job_is_admitted_at_once() -> None:
    state = State()
    state.queue("team-a", {"cpu": {"default": {"min": "4"}}})
    state.namespace("a", "team-a")
    state.waits("a", "fits", {"cpu": "2"})
    state.holds("a", "other", {"cpu": ("1", "default")}, cluster_queue="team-a")
    async with watching(state, size=(120, 30)) as glass:
        await glass.decided(MISSING)
        await glass.press("enter", "G", "enter")
        told = "\n".join(await glass.explained())
        assert "it is admitted once a controller decides" in told
        assert "No controller has run here yet" in told
        await glass.decided(LEADS)
        await glass.press("r")
        assert "it is admitted at once\n" in "\n".join(await glass.explained()) + "\n"
