"""Nothing is left behind, however the caller ends."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from agentic_gym.benchmarks.speed.python import descendants
from agentic_gym.tools.sandbox import Sandbox
from agentic_gym.tools.sandbox.doctor import features
from tests.processes import eventually

CALLER = """
import os, sys, tempfile, threading, time
tempfile.tempdir = {tmp!r}
from agentic_gym.benchmarks.speed.python import descendants
from agentic_gym.tools.sandbox import Sandbox
s = Sandbox(2, preload=(), warmup="", isolation={level!r}, min_level={level!r})
s.execute("1")
session = s.session()
session.run("x = 1")
threading.Thread(target=s.execute, args=("while True: pass", 60), daemon=True).start()
time.sleep(0.3)
print("running", flush=True)
{ending}
"""
ENDINGS = {
    "close": "s.close()",
    "exit": "sys.exit(0)",
    "exception": "raise ValueError",
    "killed": "os.kill(os.getpid(), 9)",
    "terminated": "os.kill(os.getpid(), 15)",
    "os._exit": "os._exit(3)",
    "forgotten": "del s",
}


def _processes(tag: str) -> list[str]:
    """Command lines that hold `tag`: a sandbox's processes all carry the arguments of the first."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                state = (entry / "stat").read_text(errors="replace").rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            if tag in line and state != "Z":
                found.append(line)
    return found


def _gone(tag: str, seconds: float = 10.0) -> list[str]:
    """What is still there after a while; empty as soon as all have ended."""
    end = time.monotonic() + seconds
    while (left := _processes(tag)) and time.monotonic() < end:
        time.sleep(0.05)
    return left


@pytest.mark.parametrize("level", ["namespaces", "landlock"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_nothing_is_left(tmp_path: Path, level: str, ending: str) -> None:
    if reason := features().obstacle(level):
        pytest.skip(f"this machine cannot: {reason}")
    code = CALLER.format(tmp=str(tmp_path), level=level, ending=ENDINGS[ending])
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60)
    assert done.stdout == b"running\n"
    assert _gone(str(tmp_path)) == []
    end = time.monotonic() + 5
    while list(tmp_path.iterdir()) and time.monotonic() < end:
        time.sleep(0.05)
    assert list(tmp_path.iterdir()) == []


def test_a_killed_supervisor_takes_all_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with Sandbox(1, preload=(), warmup="", isolation="landlock") as sandbox:
        sandbox.execute("open('left', 'w')")
        session = sandbox.session()
        session.run("x = 1")
        assert sandbox._supervisor is not None
        os.kill(sandbox._supervisor.process.pid, signal.SIGKILL)
        sandbox._supervisor.process.wait()
        assert _gone(str(tmp_path)) == []
        sandbox.execute("1")
    assert list(tmp_path.iterdir()) == []


def test_an_abandoned_directory_is_removed_by_the_next_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    old = tmp_path / "agentic-gym-sandbox-old"
    old.mkdir()
    (old / ".lock").touch()
    (old / "1").mkdir()
    unrelated = tmp_path / "agentic-gym-sandbox-without-a-lock"
    unrelated.mkdir()
    with Sandbox(1, preload=(), warmup="", isolation="landlock") as one, Sandbox(
        1, preload=(), warmup="", isolation="landlock"
    ) as two:
        one.execute("1")
        two.execute("1")
        assert not old.exists()
        assert len(list(tmp_path.iterdir())) == 3
        assert one.execute("open('f', 'w')").status == "ok"
    assert list(tmp_path.iterdir()) == [unrelated]


def test_hostile_runs_leave_no_process_and_no_memory(sandbox: Sandbox) -> None:
    assert sandbox.execute("1").status == "ok"
    before = len(descendants(os.getpid()))
    for code in ("while True: pass", "print('A' * 10**7)", "import os\nos._exit(70)", "import os\nos.fork()") * 10:
        assert sandbox.execute(code, 0.1).status != "sandbox_error"
    assert len(descendants(os.getpid())) <= before + 2


def _slot(top: int) -> int:
    """The parent of a process that is deepest below `top`: the template forks slots, and a slot the runs."""
    depth = {top: 0}
    for pid in descendants(top):  # parents come before children
        if status := _status(pid):
            depth[pid] = depth.get(int(status[1]), 0) + 1
    return int(_status(max(depth, key=depth.__getitem__))[1])


def _status(pid: int) -> list[str]:
    """State and parent of a process; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rsplit(")", 1)[1].split()[:2]
    except OSError:
        return []


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
@pytest.mark.parametrize("level", ["namespaces", "landlock"])
def test_children_of_killed_slots_are_buried(level: str) -> None:
    if reason := features().obstacle(level):
        pytest.skip(reason)
    with Sandbox(1, preload=(), warmup="", isolation=level) as sandbox:
        for _ in range(5):
            assert sandbox.execute("1").status == "ok"  # a slot is there
            call = threading.Thread(target=sandbox.execute, args=("import time; time.sleep(20)", 20))
            call.start()
            time.sleep(0.5)
            assert sandbox._supervisor is not None
            os.kill(_slot(sandbox._supervisor.process.pid), signal.SIGKILL)
            call.join()
        assert sandbox.execute("print(2)").stdout == "2\n"
        assert _dead() == []


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_those_who_clean_up_are_buried() -> None:
    if reason := features().obstacle("landlock"):
        pytest.skip(reason)
    with Sandbox(1, preload=(), warmup="", isolation="landlock") as sandbox:
        for _ in range(3):
            assert sandbox.execute("import os\nfor i in range(1000): os.mkdir(str(i))").status == "ok"
        assert _dead() == []
        assert sandbox._supervisor is not None
        top = sandbox._supervisor.process.pid
        assert eventually(lambda: len(descendants(top)) <= 3, 10)  # the template, a slot, its child


def _dead() -> list[int]:
    """Zombies below us that stay."""

    def dead() -> list[int]:
        return [pid for pid in descendants(os.getpid()) if _status(pid)[:1] == ["Z"]]

    eventually(lambda: not dead(), 5)
    return dead()


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_a_crash_dumps_no_memory(sandbox: Sandbox) -> None:
    """Where the machine hands dumps to a program the limit of 0 does not stop it; then there is nothing to hand over."""
    assert sandbox.execute("import os; os.abort()").status == "crashed"
    assert sandbox._supervisor is not None
    top = sandbox._supervisor.process.pid
    for pid in [top, *descendants(top)]:
        assert int(Path(f"/proc/{pid}/coredump_filter").read_text(), 16) == 0
