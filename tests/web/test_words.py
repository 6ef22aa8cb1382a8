"""What a Job of another namespace says of its runtime makes the page fail for no user."""

import pytest

from tests.insight.states import Json
from tests.web.pages import TENANT, department, served
from tests.web.test_server import ask

WORD = "admitter.dev/expected-runtime"
WORST: dict[str, tuple[dict[str, str], Json]] = {
    "digits": ({WORD: "9" * 5000}, {}),
    "millennia": ({WORD: "365000d"}, {}),
    "deadline": ({}, {"activeDeadlineSeconds": 2**63 - 1}),
    "no number": ({WORD: "nan"}, {"activeDeadlineSeconds": "soon", "backoffLimit": "never"}),
}


@pytest.mark.parametrize("worst", WORST)
async def test_a_tenant_is_answered_whatever_others_say_of_themselves(worst: str) -> None:
    annotations, spec = WORST[worst]
    state = department()
    for number in range(10):  # one after the other: ten thousand years
        name = f"evil-{number}"
        state.waits(
            "team-b",
            name,
            {"cpu": "10"},
            queue="shared",
            annotations=annotations,
            spec=spec,
            created=-100 + number,
        )
    async with served(state) as page:
        explained = await ask(page, "/api/workload", TENANT, namespace="team-a", name="train-0")
        assert "not taken" not in str(explained["hints"])
        outlook = await ask(page, "/api/outlook", TENANT, namespace="team-a", name="train-0")
        assert outlook["start"]["sentence"].startswith("Start: ")
        starts = await ask(page, "/api/starts", TENANT, name="a")
        assert sorted(starts) == ["team-a/train-0", "team-a/train-1", "team-a/train-2"]
        assert {each["unprovenWords"] for each in starts.values()} == {10 if worst == "millennia" else 0}
        rows = await ask(page, "/api/workloads", TENANT, queue="a", group="waiting")
        shown = [each for each in rows["rows"] if each["visible"]]
        assert {each["name"] for each in shown} == {"train-0", "train-1", "train-2"}
        hint = str((await ask(page, "/api/workload", namespace="team-b", name="evil-0"))["hints"])
        assert (f"annotation {WORD} is not taken: " in hint) == (worst in {"digits", "no number"})
