"""The Workloads of a queue, and the explanation of one."""

from tests.top.clusters import GPU, company
from tests.top.screens import watching


async def test_workloads_are_as_they_are_to_go() -> None:
    async with watching(company()) as glass:
        lines = await glass.press("down", "enter")
        assert lines[2].split() == ["ClusterQueue", "team-a", "1–8", "of", "8"]
        assert lines[3].split() == ["#", "NAME", "NAMESPACE", "PRIO", "STATE", "REASON", "AGE"]
        assert lines[4].split() == ["tune-0", "team-a", "0", "Admitted", "10s"]
        assert lines[10].split() == ["1", "train-7", "team-a", "0", "Pending", "8m"]
        assert lines[11].split() == ["2", "train-8", "team-a", "0", "Pending", "6m"]
        assert lines[-1] == "? keys  q quit  Esc back  Enter explanation  / filter"
        assert (await glass.press("escape"))[3].startswith("NAME"), "the tree"


async def test_workloads_below_a_cohort_have_their_queue() -> None:
    async with watching(company()) as glass:
        lines = await glass.press("enter")
        assert lines[2].split() == ["Cohort", "research", "1–9", "of", "9"]
        assert "QUEUE" in lines[3]
        assert (await glass.line("etl")).split() == ["etl", "team-b", "team-b", "0", "Admitted", "50m"]


async def test_workloads_that_lead_nowhere_can_be_found() -> None:
    async with watching(company()) as glass:
        lines = await glass.press("end", "enter")
        assert "QueueNotFound" in await glass.line("lost")
        assert "LocalQueue mian" in "\n".join(lines)
        lines = await glass.press("enter")
        assert "hint: did you mean main?" in "\n".join(await glass.explained())


async def test_filter_and_an_empty_queue() -> None:
    async with watching(company()) as glass:
        lines = await glass.press("down", "enter", "slash", *"TRAIN-8")
        assert lines[2].split() == ["ClusterQueue", "team-a,", "filter", "“TRAIN-8”", "1–1", "of", "1"]
        assert (await glass.press("escape"))[2].endswith("1–8 of 8"), "the first Escape ends the filter"
        assert (await glass.press("escape"))[3].startswith("NAME"), "the second goes back"
        lines = await glass.press("end", "up", "enter")
        assert "No Workload waits or runs here." in "\n".join(lines)
        state = company()
        state.waits("broken", "new", {"cpu": "1"})
        assert "broken/new" in "\n".join(await glass.show(state))
        assert "explained at" in "\n".join(await glass.press("enter")), "keys are the table's"


async def test_an_explanation_is_that_of_admitter_explain() -> None:
    async with watching(company()) as glass:
        await glass.press("down", "enter", "slash", *"train-7", "enter", "enter")
        text = "\n".join(await glass.explained())
        assert "explained at 00:00:00" in text
        assert "team-a/train-7: Pending in ClusterQueue team-a, number 1 in line" in text
        assert f"waits for 8 × {GPU} in flavor a100" in " ".join(text.split())
        assert "It could start if these ended:" in text
        assert "Start: can't be told: nothing is known of the runtime of" in text
        lines = await glass.press("escape")
        assert lines[2].endswith("1–1 of 1"), "the list is as it was"


async def test_an_explanation_can_be_scrolled_and_asked_again() -> None:
    async with watching(company(), size=(80, 12)) as glass:
        await glass.press("down", "enter", "slash", *"train-7", "enter", "enter")
        top = await glass.explained()
        assert top != (bottom := await glass.press("G"))
        assert "Start: " in "\n".join(bottom)
        assert await glass.press("g") == top
        assert await glass.press("down") == await glass.press("j", "k")
        state = company()
        state.objects["jobs"] = [job for job in state.objects["jobs"] if job["metadata"]["name"] != "train-7"]
        await glass.show(state)
        assert "Flavors:" in "\n".join(await glass.lines()), "it is of the moment at which it was asked"
        await glass.press("r")
        assert "It is gone" in "\n".join(await glass.explained())


async def test_names_are_shown_and_not_obeyed() -> None:
    state = company()
    state.waits("alone", "a\x1b[2J[b]\r", {"memory": "999Gi"}, created=-9000)
    async with watching(state) as glass:
        lines = await glass.press("end", "up", "up", "enter")
        text = "\n".join([*lines, *await glass.press("enter"), *await glass.explained()])
        assert r"alone/a\x1b[2J[b]\r: Pending" in text
        assert not {"\x1b", "\r"} & set(text)
