"""Endless code ends in time, also where the machine has much else to do."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from agentic_gym.tools.sandbox import Sandbox

BIG = "x = bytearray(300 * 2**20)\nx[::4096] = bytes(len(x[::4096]))\nwhile True: pass"


@pytest.fixture
def busy() -> Iterator[None]:
    """Six endless programs a core, which the kernel treats as equals of the sandbox."""
    command = [sys.executable, "-c", "while True: pass"]
    programs = [subprocess.Popen(command, start_new_session=True) for _ in range(6 * (os.cpu_count() or 1))]
    yield
    for program in programs:
        program.kill()
        program.wait()


@pytest.mark.slow
@pytest.mark.parametrize("code", ["while True: pass", BIG], ids=["spin", "memory"])
def test_a_busy_machine_does_not_delay_a_timeout(sandbox: Sandbox, busy: None, code: str) -> None:
    late = []
    for _ in range(8):
        started = time.monotonic()
        result = sandbox.execute(code, 0.5)
        late.append(time.monotonic() - started - 0.5)
        assert result.status == "timeout"
        assert result.wall <= 0.7
    assert sorted(late)[len(late) // 2] <= 0.2, late


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_killed_run_tells_what_it_used(sandbox: Sandbox) -> None:
    for _ in range(3):  # whether its memory is given back at once or later, when the answer has been sent
        result = sandbox.execute(BIG, 2)
        assert result.status == "timeout"
        assert result.maxrss_kb > 300 * 1024
        assert 0.1 < result.cpu < 3
