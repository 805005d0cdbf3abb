import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentic_gym import symbolic
from agentic_gym.symbolic import verify

pytest.importorskip("math_verify")


def helper_pid() -> int:
    process = symbolic._helper._process
    assert process is not None
    return process.pid


def gone(pid: int, seconds: float) -> bool:
    """Whether the process ends (or is a zombie awaiting its parent) in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        listing = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout
        if not listing.strip() or listing.strip().startswith("Z"):
            return True
        time.sleep(0.1)
    return False


@pytest.mark.parametrize(
    ("prediction", "gold"),
    [
        (r"\sqrt{8}", r"2\sqrt{2}"),
        ("x^2+2x+1", "(x+1)^2"),
        ("2^{10}", "1024"),
        ("3, 5, 7", "7,5,3"),
        (r"(2,\infty)", r"\left(2, \infty\right)"),
        (r"\begin{pmatrix} 0.5 \\ 1 \end{pmatrix}", r"\begin{pmatrix} 1/2 \\ 1 \end{pmatrix}"),
        (r"\(9i+6\)", "6+9i"),
        (r"y = 2x + 3", "y=3+2x"),
    ],
)
def test_equal_expressions(prediction: str, gold: str) -> None:
    assert verify(prediction, [gold]) == "equal"
    assert verify(prediction, ["11", gold]) == "equal"


@pytest.mark.parametrize(
    ("prediction", "gold"),
    [("5", "6"), (r"\sqrt{2}", "1.414"), ("(2,1)", "(1,2)"), ("5 or 6", "5"), ("1,2", "1")],
)
def test_unequal_expressions(prediction: str, gold: str) -> None:
    assert verify(prediction, [gold]) == "unequal"


@pytest.mark.parametrize("prediction", ["", "}{", "\\", "\0", "\ud800", "7 8", "-", "$$"])
def test_what_is_no_expression(prediction: str) -> None:
    assert verify(prediction, ["15"]) == "unparseable"


def test_a_power_tower_is_killed_and_the_next_question_answered() -> None:
    assert verify("1+1", ["2"]) == "equal"
    first = helper_pid()
    start = time.monotonic()
    assert verify("9^{9^{9}}", ["7"], timeout=1.0) == "timeout"
    assert time.monotonic() - start < 10
    assert gone(first, 1)
    assert verify("1+2", ["3"]) == "equal"
    start = time.monotonic()
    assert verify("9^{9^{9}}", ["7"], timeout=1.0) == "timeout"  # remembered, not computed again
    assert time.monotonic() - start < 0.5


def test_a_helper_that_died_idle_is_replaced() -> None:
    verify("1+1", ["2"])
    os.kill(helper_pid(), signal.SIGKILL)
    assert verify("2+2", ["4"]) == "equal"


def test_threads_get_their_own_answers() -> None:
    with ThreadPoolExecutor(8) as pool:
        verdicts = list(pool.map(lambda i: verify(f"{i}+{i}", [str(2 * i + i % 2)]), range(100, 140)))
    assert verdicts == ["equal" if i % 2 == 0 else "unequal" for i in range(100, 140)]
    assert threading.active_count() < 20


def test_a_forked_child_uses_a_helper_of_its_own() -> None:
    verify("1+1", ["2"])
    parents = helper_pid()
    code = (
        "import os\n"
        "from agentic_gym import symbolic\n"
        "assert symbolic.verify('1+1', ['2']) == 'equal'\n"
        "mine = symbolic._helper._process.pid\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    ok = symbolic._helper._process is None and symbolic.verify('2+3', ['5']) == 'equal'\n"
        "    ok = ok and symbolic._helper._process.pid != mine\n"
        "    symbolic._helper.stop()\n"
        "    os._exit(0 if ok else 1)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0\n"
        "assert symbolic.verify('3+3', ['6']) == 'equal'\n"
        "assert symbolic._helper._process.pid == mine\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    assert helper_pid() == parents


@pytest.mark.parametrize("busy", [False, True])
def test_the_helper_dies_with_a_killed_parent(busy: bool) -> None:
    code = (
        "import sys, time\n"
        "from agentic_gym import symbolic\n"
        "symbolic.verify('1+1', ['2'])\n"
        "print(symbolic._helper._process.pid, flush=True)\n"
        + ("symbolic.verify('9^{9^{9}}', ['7'], timeout=2.0)\n" if busy else "time.sleep(60)\n")
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    time.sleep(0.3)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert gone(pid, 10)


def test_the_helper_is_gone_after_a_normal_end() -> None:
    code = "from agentic_gym import symbolic\nsymbolic.verify('1+1', ['2'])\nprint(symbolic._helper._process.pid)\n"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert gone(int(ended.stdout), 1)
    assert ended.stderr == ""


def test_the_working_directory_cannot_supply_modules(tmp_path: Path) -> None:
    (tmp_path / "sympy.py").write_text("raise SystemExit('planted')")
    code = f"import sys; sys.path[:] = {json.dumps(sys.path[1:])}\nfrom agentic_gym.symbolic import verify\n"
    code += "assert verify('1+1', ['2']) == 'equal'"
    root = str(Path(symbolic.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": root}
    code = code.replace("sys.path[:] = ", f"sys.path[:] = [{root!r}] + ")
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True, timeout=120)


def test_without_math_verify_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symbolic.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install 'agentic-gym\[math\]'"):
        symbolic._Helper().ask("1", ("2",), 1.0)


def test_a_timeout_must_be_positive() -> None:
    with pytest.raises(ValueError, match="positive"):
        verify("1", ["1"], timeout=0)


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="0123456789x+-*/^_{}()[]\\$,.= \0é" + "fracsqrt", max_size=25))
def test_no_text_raises_or_hangs(prediction: str) -> None:
    start = time.monotonic()
    assert verify(prediction, ["7"], timeout=2.0) in ("equal", "unequal", "unparseable", "timeout")
    assert time.monotonic() - start < 30
