"""What kernel.py adds to the standard library."""

from __future__ import annotations

import ctypes
import mmap
import random
import sys
from pathlib import Path

import pytest

from agentic_gym.tools.sandbox import kernel


def _large_pages_kb(address: int) -> int:
    """AnonHugePages of the mapping that holds `address`."""
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first = line.split()[0]
        if "-" in first and not first.endswith(":"):
            start, end = (int(part, 16) for part in first.split("-"))
            inside = start <= address < end
        elif inside and first == "AnonHugePages:":
            return int(line.split()[1])
    return 0


@pytest.mark.skipif(sys.platform != "linux", reason="large pages are asked for on Linux only")
def test_collapse_keeps_what_the_memory_holds() -> None:
    size = 4 * kernel.LARGE_PAGE
    content = random.Random(0).randbytes(size)
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory[:] = content
        view = (ctypes.c_char * size).from_buffer(memory)
        address = ctypes.addressof(view)
        kernel.collapse(address + 1, address + kernel.LARGE_PAGE // 2)  # holds no whole large page
        assert memory[:] == content
        kernel.collapse(address, address + size)
        large = _large_pages_kb(address)
        assert memory[:] == content
        del view
    if large == 0:
        pytest.skip("this kernel gave no large page")
    assert large >= 2 * kernel.LARGE_PAGE // 1024
