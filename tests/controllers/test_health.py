"""What probes are answered, and when a process is taken for dead."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import aiohttp
import pytest

from admitter.controllers.telemetry import health
from admitter.controllers.telemetry.health import Probes, ProcessState, Pulse, ended, serve
from admitter.controllers.telemetry.metrics import Metrics


async def no_page() -> bytes:
    return b""


WELL = Probes(lambda: None, lambda: ProcessState(True, "ready"), no_page)


@asynccontextmanager
async def asked(probes: Probes, path: str) -> AsyncIterator[aiohttp.ClientResponse]:
    runner = await serve("127.0.0.1", 0, probes)
    host, port = runner.addresses[0][:2]
    try:
        async with aiohttp.ClientSession() as session, session.get(f"http://{host}:{port}{path}") as answer:
            yield answer
    finally:
        await runner.cleanup()


async def said(probes: Probes, path: str) -> tuple[int, str]:
    async with asked(probes, path) as answer:
        return answer.status, await answer.text()


async def test_alive_and_ready() -> None:
    assert await said(WELL, "/healthz") == (200, "ok\n")
    assert await said(WELL, "/readyz") == (200, "ready\n")


async def test_what_is_wrong_is_said_in_words() -> None:
    assert await said(replace(WELL, problem=lambda: "controller has ended"), "/healthz") == (
        503,
        "controller has ended\n",
    )
    state = ProcessState(False, "not synced with the API server yet")
    assert await said(replace(WELL, state=lambda: state), "/readyz") == (503, f"{state.words}\n")


async def test_metrics_come_as_prometheus_text() -> None:
    async with asked(replace(WELL, page=Metrics().with_process().page), "/metrics") as answer:
        page = await answer.text()
        assert answer.headers["Content-Type"].startswith("text/plain; version=")
    assert "process_cpu_seconds_total" in page
    assert "admitter_build_info" in page


async def test_a_task_that_has_ended_is_named() -> None:
    runs = asyncio.create_task(asyncio.Event().wait(), name="controller")
    over = asyncio.create_task(asyncio.sleep(0), name="pulse")
    await over
    assert ended([runs]) is None  # type: ignore[list-item]  # what it returns is nothing to us
    assert ended([runs, over]) == "pulse has ended"  # type: ignore[list-item]  # as above
    runs.cancel()


async def test_a_loop_that_is_late_is_measured_and_taken_for_stuck_if_it_is_very_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(health, "PERIOD_SECONDS", 0.001)
    lags: asyncio.Queue[float] = asyncio.Queue()
    pulse = Pulse(lags.put_nowait)
    assert pulse.problem() is None, "it has not begun"
    beating = asyncio.create_task(pulse.run())
    assert await lags.get() >= 0.0
    assert pulse.problem() is None
    monkeypatch.setattr(health, "MOST_LATE_SECONDS", -1.0)
    assert str(pulse.problem()).startswith("the event loop is ")
    beating.cancel()
