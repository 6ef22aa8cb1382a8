"""Amounts of bytes as users read them: one table for sentences of the server and for pages of the console."""

from typing import Final

SHOWN_BYTES: Final = (
    ("memory", 64 * 2**30, "64Gi"),
    ("memory", 1536 * 2**20, "1.5Gi"),
    ("memory", 2 * 2**40, "2048Gi"),
    ("storage", 2**60, "1073741824Gi"),
    ("memory", 64 * 10**9, "59.605Gi"),
    ("ephemeral-storage", 64 * 2**20, "0.062Gi"),  # 0.0625: a half goes to the even neighbour
    ("memory", 192 * 2**20, "0.188Gi"),  # 0.1875
    ("memory", 2**30 - 1, "1Gi"),
    ("memory", 11 * 2**20, "0.011Gi"),
    ("hugepages-2Mi", 10 * 2**20, "10Mi"),
    ("memory", 3 * 10**6, "3M"),
    ("memory", 10**6 + 1, "1000001"),
    ("memory", 128, "128"),
    ("memory", 0, "0"),
)
"""Resource, bytes and text."""
