"""The tree of queues, key by key."""

from textual.events import Paste

from tests.insight.states import State
from tests.top.clusters import GPU, company
from tests.top.screens import names, watching

ALL = ["research", "team-a", "team-b", "alone", "broken", "without"]


async def test_a_screen_of_80_by_24_has_all_that_matters() -> None:
    async with watching(company()) as glass:
        lines = await glass.lines()
        assert len(lines) == 24
        assert lines[0].startswith("admitter top  training  https://10.0.0.1:6443")
        assert lines[0].endswith("00:00:00 UTC")
        assert lines[1] == "4 queues: 4 waiting, 7 admitted, 2 of them in the last minute"
        assert lines[2].startswith(f"{GPU} in a100 (")
        assert lines[2].endswith("1–6 of 6")
        assert lines[3].split() == [
            *("NAME", "USE", "USED", "MIN", "MAX", "LOAN", "WAIT", "ADM", "ADM/M"),
        ]
        (row,) = [line for line in lines if line.lstrip().startswith("team-a")]
        assert row.split() == ["team-a", "██████│▒▒▒···]", "12", "8", "16", "+4", "2", "6", "2"]
        (row,) = [line for line in lines if line.lstrip().startswith("team-b")]
        assert row.split() == ["team-b", "███·········│", "3", "12", "-4", "0", "1", "0"]
        assert lines[-1] == "? keys  q quit  Enter Workloads  / filter  r resource  n u w a order  ←→ fold"


async def test_what_has_no_room_in_the_table_is_below_it() -> None:
    async with watching(company()) as glass:
        lines = await glass.press("down")
        words = " ".join(lines[20:23])
        assert words.startswith("ClusterQueue team-a: 2 waiting, 6 admitted, 2 of them in the last minute.")
        assert f"{GPU} in a100: 12 used, min 8, max 16, 4 borrowed; cpu in a100: 24 used" in words
        words = " ".join((await glass.press("G", "up"))[20:23])
        assert "names missing: there is no such ResourceFlavor" in words


async def test_another_resource() -> None:
    async with watching(company()) as glass:
        seen = []
        for _ in range(5):
            seen.append((await glass.lines())[2].split(" (")[0])
            await glass.press("r")
        assert seen[0] == seen[4] == f"{GPU} in a100"
        assert set(seen) == {f"{GPU} in a100", "cpu in a100", "cpu in missing", "memory in t4"}
        await glass.press("R")
        assert (await glass.lines())[2].startswith(f"{seen[0]} ")
        assert (await glass.line("alone")).split() == ["alone", "1", "0", "0"], "it has none of that"


async def test_order() -> None:
    async with watching(company()) as glass:
        assert names(await glass.lines()) == ALL
        assert names(await glass.press("w")) == ["research", "team-a", "team-b", "alone", "without", "broken"]
        assert ", by waiting" in (await glass.lines())[2]
        await glass.press("r", "u")
        assert ", by use" in (await glass.lines())[2]
        assert ", by admitted a minute" in (await glass.press("a"))[2]
        assert names(await glass.press("n")) == ALL


async def test_fold_and_unfold() -> None:
    async with watching(company()) as glass:
        lines = await glass.press("down", "down", "left")
        assert names(lines) == ALL, "a queue has nothing below it: left goes to its Cohort"
        assert " ".join(lines[20:23]).startswith("Cohort research")
        folded = await glass.press("left")
        assert names(folded) == ["research", *ALL[3:]]
        assert (await glass.line("research")).startswith("▸ research (2)")
        assert names(await glass.press("right")) == ALL
        assert names(await glass.press("minus")) == ["research", *ALL[3:]]
        assert names(await glass.press("plus")) == ALL


async def test_filter() -> None:
    async with watching(company()) as glass:
        lines = await glass.press("slash", *"team-b")
        assert names(lines) == ["research", "team-b"]
        assert lines[2].endswith("1–2 of 2")
        assert "filter “team-b”" in lines[2]
        lines = await glass.press("enter", "end")
        assert " ".join(lines[20:23]).startswith("ClusterQueue team-b"), "keys are the table's again"
        assert names(await glass.press("escape")) == ALL
        lines = await glass.press("slash", *"quacks", "backspace")
        assert "Nothing has “quack” in its name." in "\n".join(lines), "q is a letter here, and quits nothing"
        assert names(await glass.press("escape")) == ALL


async def test_a_pasted_filter() -> None:
    async with watching(company()) as glass:
        glass.app.post_message(Paste("alone"))
        assert names(await glass.lines()) == ALL, "no user has asked for one"
        await glass.press("slash")
        glass.app.post_message(Paste("team-b\nmore"))
        assert names(await glass.lines()) == ["research", "team-b"]


async def test_the_current_line_stays_current_when_the_order_changes() -> None:
    async with watching(company()) as glass:
        await glass.press("end")
        state = company()
        state.queue("zebra", {"cpu": {"a100": {"min": "1"}}})
        lines = await glass.show(state)
        assert names(lines) == [*ALL[:-1], "zebra", "without"]
        assert " ".join(lines[20:23]).startswith("without a queue")


async def test_no_queues_at_all() -> None:
    async with watching(State()) as glass:
        text = "\n".join(await glass.press("enter", "down", "left", "right", "r", "w", "n"))
        assert "There are no ClusterQueues, Cohorts or elastic quotas in this cluster." in text
        assert names(await glass.show(company())) == ALL, "until there are"
        assert " ".join((await glass.press("down"))[20:23]).startswith("ClusterQueue team-a")


async def test_what_is_wrong_is_said_as_long_as_it_is() -> None:
    async with watching(None) as glass:
        assert "Reading the cluster …" in "\n".join(await glass.lines())
        text = "\n".join(await glass.trouble("No answer from the API server: connection refused"))
        assert "No answer from the API server: connection refused" in text
        assert names(await glass.show(company())) == ALL
        assert "connection refused" in "\n".join(await glass.lines())
        assert "connection refused" not in "\n".join(await glass.trouble(""))


async def test_narrow_and_wide_terminals() -> None:
    async with watching(company()) as glass:
        lines = await glass.resize(60, 16)
        assert lines[3].split() == ["NAME", "USE", "USED", "LOAN", "WAIT"]
        assert max(len(line) for line in lines) <= 60
        lines = await glass.resize(200, 40)
        assert lines[3].split()[-1] == "PROBLEM"
        assert "spec.resources[0].flavors names missing" in await glass.line("broken")


async def test_keys_are_explained() -> None:
    async with watching(company()) as glass:
        text = "\n".join(await glass.press("question_mark"))
        assert "█ own, ▒ borrowed" in text
        assert "q          quit" in text, "all of it fits"
        assert names(await glass.press("escape")) == ALL
        await glass.press("q")
        assert glass.app.return_code == 0
