"""Commands start fast: they load what they need, and not what others do."""

import subprocess
import sys

import pytest

SLOW = (
    *("kubernetes_asyncio", "aiohttp", "cryptography", "textual", "matplotlib"),
    *("asyncio", "prometheus_client", "ssl", "structlog"),
)
"""Libraries that are slow to load."""


@pytest.mark.parametrize(
    "words",
    [
        "version",
        "what-if -f docs/examples/more-for-team-a.yaml --state docs/examples/monday.json",
        "explain lost -n team-a --state docs/examples/monday.json",
        "get workloads -A --state docs/examples/monday.json",
        "lint docs/examples/more-for-team-a.yaml",
    ],
)
def test_what_asks_no_cluster_loads_no_slow_library(words: str) -> None:
    program = f"""
import sys
from admitter.cli.main import app
try:
    app({words.split()})
finally:
    print([name for name in {SLOW} if name in sys.modules], file=sys.stderr)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.stdout, ended.stderr
    assert ended.stderr.splitlines()[-1] == "[]"
