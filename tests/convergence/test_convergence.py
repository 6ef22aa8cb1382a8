"""What a Job comes to, with all controllers running."""

import pytest
from structlog.testing import capture_logs

from admitter.client.errors import api_error
from tests.apiserver.loop import run
from tests.apiserver.server import Json, clock
from tests.convergence.scene import Scene


def test_the_next_job_starts_when_one_has_finished() -> None:
    async def story() -> None:
        scene = Scene({"a": 2})
        scene.submit("first", "a", 2)
        scene.submit("second", "a", 1, pods=2)
        await scene.start()
        await scene.settled(lambda: scene.condition("second", "QuotaReserved") == "False")
        assert (scene.runs("first"), scene.runs("second")) == (1, 0)
        await scene.settled(lambda: scene.is_done("first") and scene.runs("second") == 2)
        assert scene.condition("first", "Finished") == "True"
        await scene.settled(lambda: scene.is_done("second"))
        assert scene.used("a") == 0
        assert scene.excesses == []
        await scene.kill()

    run(story())


def test_a_victim_gives_its_quota_back_after_its_last_pod() -> None:
    async def story() -> None:
        scene = Scene({"a": 2}, withinClusterQueue="LowerPriority")
        scene.jobs.lasts = lambda _: 100.0
        scene.submit("victim", "a", 1, "low", pods=2)
        await scene.start()
        await scene.settled(lambda: scene.runs("victim") == 2)
        scene.submit("preemptor", "a", 2, "high")
        await scene.server.until(lambda: scene.condition("victim", "Evicted") == "True")
        await scene.server.until(lambda: scene.job("victim")["spec"]["suspend"])
        assert scene.used("a") == 2000, "the victim's pods take their time to end"
        assert scene.runs("preemptor") == 0
        await scene.settled(lambda: scene.runs("preemptor") == 1)
        assert (scene.runs("victim"), scene.condition("victim", "QuotaReserved")) == (0, "False")
        await scene.settled(lambda: scene.is_done("preemptor") and scene.runs("victim") == 2)
        await scene.settled(lambda: scene.is_done("victim"))
        assert scene.excesses == []
        await scene.kill()

    run(story())


def test_the_quota_of_a_victim_is_used_before_its_job_says_that_its_pods_have_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tests.apiserver.job_controller.COUNT_SECONDS", 60.0)

    async def story() -> None:
        scene = Scene({"a": 2}, withinClusterQueue="LowerPriority")
        scene.jobs.lasts = lambda _: 100.0

        def waits_for(name: str, reason: str) -> bool:
            return bool(((scene.workload(name) or {}).get("status") or {}).get("reason") == reason)

        scene.submit("victim", "a", 1, "low", pods=2)
        await scene.start()
        await scene.settled(lambda: scene.runs("victim") == 2)
        scene.submit("preemptor", "a", 2, "high")
        await scene.server.until(lambda: scene.condition("victim", "Evicted") == "True")
        await scene.server.until(lambda: scene.runs("victim") == 0)
        ended = clock()
        await scene.server.until(lambda: scene.runs("preemptor") == 1)
        assert (clock() - ended).total_seconds() < 1, "it is started at once"
        await scene.server.until(lambda: waits_for("victim", "InsufficientQuota"))
        assert scene.job("victim")["status"]["terminating"] == 2
        await scene.settled(lambda: scene.is_done("victim"))
        assert scene.excesses == []
        await scene.kill()

    run(story())


def test_a_refused_write_is_logged_once_and_told_on_the_job_and_others_go_on() -> None:
    """Another policy of the cluster forbids the Workload of one Job; later it does not."""
    forbidding = True

    def policy(plural: str, before: Json | None, after: Json | None) -> None:
        made = after if before is None and plural == "workloads" else None
        if forbidding and made is not None and made["metadata"]["ownerReferences"][0]["name"] == "refused":
            raise api_error(403, {"reason": "Forbidden", "message": "policy gold forbids it"})

    async def story() -> None:
        nonlocal forbidding
        scene = Scene({"a": 2})
        scene.server.policies.append(policy)
        scene.submit("refused", "a", 1)
        scene.submit("other", "a", 1)
        await scene.start()
        with capture_logs() as lines:
            await scene.server.until(lambda: "WriteRefused" in scene.events("refused"))
        assert scene.events("refused")["WriteRefused"].endswith("policy gold forbids it")
        errors = [line["error"] for line in lines if line["event"] == "will try again"]
        assert len(errors) > 3
        warned = [line["error"] for line in lines if line["log_level"] == "warning" and "error" in line]
        assert warned == errors[:1] == ["policy gold forbids it"]
        assert scene.runs("other") == 1 or scene.is_done("other")
        forbidding = False
        await scene.settled(lambda: scene.is_done("refused"))
        await scene.kill()

    run(story())
