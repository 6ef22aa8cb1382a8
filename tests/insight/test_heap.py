"""Threads share one heap, and what one frees the others can use."""

import subprocess
import sys

import pytest

COUNT = """
import ctypes, re, sys, tempfile
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from admitter.insight.heap import one_heap

if "shared" in sys.argv:
    one_heap()
libc, together = ctypes.CDLL(None), Barrier(4)

def allot(_):
    together.wait(60)
    return [bytes(4096) for _ in range(100)]

with ThreadPoolExecutor(4) as pool:
    kept = list(pool.map(allot, range(4)))
libc.fopen.restype = ctypes.c_void_p
with tempfile.NamedTemporaryFile() as file:
    stream = ctypes.c_void_p(libc.fopen(file.name.encode(), b"w"))
    libc.malloc_info(0, stream)
    libc.fclose(stream)
    print(len(re.findall(b"<heap nr", file.read())))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other C libraries have no heaps of this kind")
@pytest.mark.parametrize(("arguments", "expected"), [(["shared"], {1}), ([], set(range(2, 6)))])
def test_heaps_of_four_threads(arguments: list[str], expected: set[int]) -> None:
    done = subprocess.run([sys.executable, "-c", COUNT, *arguments], check=True, capture_output=True)
    assert int(done.stdout) in expected
