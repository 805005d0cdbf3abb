import contextlib
import os
import signal
import time
from collections.abc import Iterator

import pytest

from agentic_gym.tools.sandbox import Sandbox, Session


@pytest.fixture
def session(sandbox: Sandbox) -> Iterator[Session]:
    with sandbox.session(seed=1) as fresh:
        yield fresh


def test_variables_stay(session: Session) -> None:
    assert session.run("x = 20").stdout == ""
    assert session.run("def f(y): return x + y").status == "ok"
    assert session.run("f(22)").stdout == "42\n"
    assert session.run("f(1)", echo=False).stdout == ""
    assert session.run("open('k', 'w').write('v')").status == "ok"
    assert session.run("open('k').read()").stdout == "'v'\n"


def test_errors_leave_the_session_alive(session: Session) -> None:
    session.run("x = 1")
    failed = session.run("1 / 0")
    assert failed.status == "error"
    assert 'File "<cell 2>", line 1' in failed.stderr
    assert session.run("raise SystemExit(3)").status == "error"
    assert session.run("bytearray(10**11)").status == "memory"
    assert session.run(b"x").stdout == "1\n"
    assert session.alive


def test_a_slow_cell_is_interrupted_and_variables_survive(session: Session) -> None:
    session.run("import time\nx = 5")
    for cell in ("while True: pass", "time.sleep(60)"):
        slow = session.run(f"x += 1\n{cell}", timeout=0.3)
        assert slow.status == "timeout"
        assert slow.stderr.endswith("KeyboardInterrupt\n")
        assert "sandbox" not in slow.stderr
    assert session.run("x").stdout == "7\n"


def test_a_cell_that_writes_too_much_is_interrupted(session: Session) -> None:
    loud = session.run("x = 9\nwhile True: print('a' * 100)")
    assert (loud.status, loud.truncated) == ("output_limit", True)
    assert set(loud.stdout) == {"a", "\n"}
    assert session.run("x").stdout == "9\n"


@pytest.mark.parametrize(
    ("cell", "status"),
    [
        ("import signal\nsignal.signal(2, signal.SIG_IGN)\nwhile True: pass", "timeout"),
        ("import os\nos.abort()", "crashed"),
        ("import os\nos._exit(0)", "session_lost"),
    ],
)
def test_a_killed_session_is_lost(session: Session, cell: str, status: str) -> None:
    started = time.monotonic()
    assert session.run(cell, timeout=0.3).status == status
    assert time.monotonic() - started < 3
    assert not session.alive
    assert session.run("1").status == "session_lost"


def test_a_session_that_never_takes_the_cell_is_timed_out(bare: Sandbox) -> None:
    for _ in range(4):  # the end of the process and the verdict on it race each other to us
        with bare.session() as session:
            session.run("import os, threading\nthreading.Timer(0.1, os.kill, (os.getpid(), 19)).start()")
            time.sleep(0.3)
            assert session.run("1", timeout=0.1).status == "timeout"
            assert not session.alive


@pytest.mark.parametrize("word", ["0", "1", "M", "?" * 40])
def test_a_forged_word_changes_only_its_own_status(session: Session, word: str) -> None:
    result = session.run(
        f"import os\nfor f in range(4, 20):\n  try: os.write(f, b{word!r})\n  except OSError: pass\nwhile True: pass", 0.5
    )
    assert result.status in ("ok", "error", "memory", "timeout")


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Interrupts this process, as Ctrl-C would, if it is still there after so many seconds."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


FORGE = """
import os
for f in range(3, 20):
    for n in range({}, 9):
        try: os.write(f, b'0%d' % n)
        except OSError: pass
"""


def test_replies_forged_in_advance_answer_no_later_cell(session: Session) -> None:
    assert session.run(FORGE.format(2) + "print('one')").stdout == "one\n"
    assert session.run("print('two')").stdout == "two\n"


def test_a_session_that_answers_unasked_is_lost(session: Session) -> None:
    session.run(FORGE.format(1) + "print('one')")  # answered before its end
    time.sleep(0.3)
    assert session.run("print('two')").status == "session_lost"
    assert not session.alive


def test_an_ending_at_the_time_out_harms_nobody_else(sandbox: Sandbox, session: Session) -> None:
    """The order to interrupt may find its process gone."""
    session.run("x = 1")
    for hundredths in range(6):
        with sandbox.session() as other:
            other.run(f"import time, os\ntime.sleep({0.28 + hundredths / 250})\nos._exit(0)", 0.3)
    assert session.run("x").stdout == "1\n"


def test_an_interrupted_caller_loses_the_session(session: Session) -> None:
    """What the cell prints later must not be taken for the output of another."""

    with _alarm(0.2), pytest.raises(KeyboardInterrupt):
        session.run("import time\ntime.sleep(0.5)\nprint('late')", 5)
    assert session.run("print('next')").status == "session_lost"


def test_sessions_are_apart(sandbox: Sandbox) -> None:
    with sandbox.session() as one, sandbox.session() as two:
        one.run("x = 1\nopen('f', 'w')")
        assert two.run("x").status == "error"
        assert two.run("import os\nos.listdir('.')").stdout == "[]\n"
        assert sandbox.execute("print(1)").stdout == "1\n"
    assert one.run("1").status == "session_lost"


def test_seeded_sessions_repeat(sandbox: Sandbox) -> None:
    def draw() -> list[str]:
        with sandbox.session(seed=7) as session:
            return [session.run("import random\nrandom.random()").stdout for _ in range(2)]

    assert draw() == draw()


def test_not_usable_in_a_forked_copy(session: Session) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            session.run("1")
        except RuntimeError:
            os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert session.run("1").stdout == "1\n"


def test_lost_with_its_supervisor() -> None:
    with Sandbox(1, preload=(), warmup="") as sandbox, sandbox.session() as session:
        session.run("x = 1")
        assert sandbox._supervisor is not None
        sandbox._supervisor.process.kill()
        sandbox._supervisor.process.wait()
        end = time.monotonic() + 10
        while session.alive and time.monotonic() < end:  # the kernel kills the rest a moment later
            status = session.run("x").status
        assert status in ("session_lost", "sandbox_error")
        assert session.run("x").status == "session_lost"


def test_bad_timeout(session: Session) -> None:
    with pytest.raises(ValueError, match="timeout must be above 0"):
        session.run("1", timeout=0)
