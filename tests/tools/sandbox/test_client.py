import asyncio
import json
import os
import pickle
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentic_gym.tools.sandbox import Limits, Result, Sandbox, SandboxUnavailable, default_sandbox
from agentic_gym.tools.sandbox.levels import LEVELS

STATUSES = {
    "ok", "error", "timeout", "memory", "output_limit", "disk_limit", "thread_limit", "crashed", "session_lost",
}  # fmt: skip


@pytest.mark.parametrize(
    ("code", "status", "stdout", "stderr"),
    [
        ("print(6 * 7)", "ok", "42\n", ""),
        ("x = 1", "ok", "", ""),
        ("1 / 0", "error", "", "ZeroDivisionError: division by zero\n"),
        ("import sys\nsys.exit()", "ok", "", ""),
        ("import sys\nsys.exit(3)", "error", "", ""),
        ("import sys\nsys.exit('bye')", "error", "", "bye\n"),
        ("import os\nprint('a', end='', flush=True)\nos._exit(0)", "ok", "a", ""),
        ("def f(:", "error", "", "SyntaxError: invalid syntax\n"),
        ("import os\nos.abort()", "crashed", "", ""),
        ("bytearray(10**11)", "memory", "", "MemoryError\n"),
        ("while True: pass", "timeout", "", ""),
        ("print('before')\nwhile True: pass", "timeout", "before\n", ""),
        ("import sys\nprint('out')\nprint('err', file=sys.stderr)", "ok", "out\n", "err\n"),
        ("import threading\nthreading.Timer(0.05, print, ['late']).start()", "ok", "late\n", ""),
        ("import atexit\natexit.register(print, 'bye')", "ok", "bye\n", ""),
        ("from __future__ import annotations\ndef f(x: y): ...\nprint(f.__annotations__)", "ok", "{'x': 'y'}\n", ""),
        ("def f(x: int): ...\nprint(f.__annotations__)", "ok", "{'x': <class 'int'>}\n", ""),
        ("import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A)", "ok", "True\n", ""),
        ("open('m.py', 'w').write('k = 5')\nimport m\nprint(m.k)", "ok", "5\n", ""),
        ("import tempfile\nf = tempfile.NamedTemporaryFile()\nprint(f.name != '')", "ok", "True\n", ""),
        ("print(__name__)", "ok", "__main__\n", ""),
        ("import os\nos._exit = None", "ok", "", ""),
    ],
)
def test_what_a_run_comes_to(bare: Sandbox, code: str, status: str, stdout: str, stderr: str) -> None:
    result = bare.execute(code, 0.4 if status == "timeout" else 5.0)
    assert (result.status, result.stdout) == (status, stdout), result
    assert result.stderr.endswith(stderr)
    assert (result.stderr == "") == (stderr == "") or status == "memory"


def test_result_fields(sandbox: Sandbox) -> None:
    spent = sandbox.execute("x = sum(range(3_000_000))")
    assert spent.returncode == 0
    assert spent.signal is None
    assert 0 < spent.cpu <= spent.wall + 0.1
    assert spent.maxrss_kb > 1000
    assert sandbox.execute("import os\nos.kill(os.getpid(), 9)").signal == 9
    assert sandbox.execute("raise SystemExit(7)").returncode == 7


@pytest.mark.parametrize(
    ("code", "echo", "stdout"),
    [
        ("1 + 1", True, "2\n"),
        ("1 + 1", False, ""),
        ("None", True, ""),
        ("'a'", True, "'a'\n"),
        ("x = 3\nx", True, "3\n"),
        ("print(1)\n2", True, "1\n2\n"),
        ("for i in (1,): i", True, ""),
        ("# nothing", True, ""),
        ("", True, ""),
    ],
)
def test_echo(sandbox: Sandbox, code: str, echo: bool, stdout: str) -> None:
    result = sandbox.execute(code, echo=echo)
    assert (result.status, result.stdout, result.stderr) == ("ok", stdout, "")


def test_arguments_are_a_programs_own(sandbox: Sandbox) -> None:
    code = "import argparse, sys\nargparse.ArgumentParser().parse_args()\nprint(sys.argv, len(sys.orig_argv))"
    assert sandbox.execute(code).stdout == "['<cell>'] 1\n"


def test_standard_input(sandbox: Sandbox) -> None:
    assert sandbox.execute("print(input() + input())", stdin="a\né\n").stdout == "aé\n"
    assert sandbox.execute("input()").stderr.endswith("EOFError: EOF when reading a line\n")


def test_bytes_are_read_as_a_file(sandbox: Sandbox) -> None:
    assert sandbox.execute("# coding: latin-1\nprint('\xe9')".encode("latin-1")).stdout == "é\n"
    assert sandbox.execute(b"print('\xe9')").status == "error"
    assert sandbox.execute("print('\ud800')").status == "error"


def test_traceback_shows_the_code_and_not_the_machinery(sandbox: Sandbox) -> None:
    stderr = sandbox.execute("def f():\n    return 1 / 0\nf()").stderr
    assert 'File "<cell>", line 2, in f' in stderr
    assert "return 1 / 0" in stderr
    assert "sandbox" not in stderr


# -- limits ---------------------------------------------------------------------------------------------------


def test_limits_read_back_from_inside(bare: Sandbox) -> None:
    names = ("AS", "CPU", "FSIZE", "NOFILE", "CORE", "MEMLOCK", "MSGQUEUE")
    code = f"import json, resource as r\nprint(json.dumps({{n: r.getrlimit(getattr(r, 'RLIMIT_' + n)) for n in {names}}}))"
    found = json.loads(bare.execute(code, 3.0).stdout)
    limits = bare.limits
    assert found["CPU"] == [4, 4]  # 3 s and the margin
    assert found["FSIZE"] == [limits.file_mb * 2**20] * 2
    assert found["NOFILE"] == [limits.open_files] * 2
    assert found["MEMLOCK"] == found["MSGQUEUE"] == [0, 0]
    assert found["CORE"] == [0, 0]
    soft, hard = found["AS"]
    assert soft == hard
    assert limits.memory_mb * 2**20 < soft < (limits.memory_mb + 400) * 2**20


def test_memory_limit_counts_on_top_of_the_libraries(sandbox: Sandbox) -> None:
    room = sandbox.limits.memory_mb * 2**20
    fits = f"import mmap\nx = mmap.mmap(-1, {room - 64 * 2**20})"  # reserved, not touched
    assert sandbox.execute(fits).status == "ok"
    assert sandbox.execute(f"x = bytearray({room + 64 * 2**20})").status == "memory"


def test_cpu_limit_ends_the_run_as_a_timeout() -> None:
    code = "import threading\ndef f():\n  while True: pass\nfor _ in 'abc': threading.Thread(target=f).start()\nf()"
    with Sandbox(1, preload=(), warmup="", limits=Limits(cpu_margin=0.001)) as strict:
        assert strict.execute(code, 1.0).status == "timeout"


def test_output_keeps_its_head(bare: Sandbox) -> None:
    kept = bare.limits.output_kb * 1024
    for stream in ("stdout", "stderr"):
        result = bare.execute(f"import sys\nsys.{stream}.write('é' * 10**6)")
        assert result.status == "output_limit"
        assert result.truncated
        text = getattr(result, stream)
        assert set(text) == {"é"}
        assert kept - 4 <= len(text.encode()) <= kept
    exact = bare.execute(f"print('x' * {kept - 1})")
    assert (exact.status, exact.truncated, len(exact.stdout)) == ("ok", False, kept)


def test_disk_limit(bare: Sandbox) -> None:
    code = "import time\nfor i in range(99):\n  open(f'f{i}', 'wb').write(bytes(10**7))\n  time.sleep(0.005)"
    result = bare.execute(code, 5.0)
    if bare.level == "namespaces":
        assert "No space left on device" in result.stderr
    else:
        assert result.status == "disk_limit"


def test_thread_limit(bare: Sandbox) -> None:
    code = (
        "import threading, time\nn = 0\ntry:\n"
        "  while n < 400: threading.Thread(target=time.sleep, args=(9,), daemon=True).start(); n += 1\n"
        "except RuntimeError: pass\nprint(n)\ntime.sleep(1)"
    )
    result = bare.execute(code, 4.0)
    if bare.level == "process":
        assert result.status in ("thread_limit", "ok")
    else:
        assert (result.status, int(result.stdout)) == ("ok", bare.limits.threads - 1)


def test_libraries_work_within_the_limits(sandbox: Sandbox) -> None:
    code = (
        "import asyncio\nfrom concurrent.futures import ThreadPoolExecutor\n"
        "import numpy as np, sympy\n"
        "with ThreadPoolExecutor(8) as pool: a = sum(pool.map(abs, range(10)))\n"
        "async def f(): return await asyncio.to_thread(len, 'abc')\n"
        "print(a, asyncio.run(f()), int(np.linalg.det(np.eye(2))), sympy.integrate('x', sympy.Symbol('x')))"
    )
    assert sandbox.execute(code).stdout == "45 3 1 x**2/2\n"


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), 1e9])
def test_bad_timeouts(sandbox: Sandbox, timeout: float) -> None:
    with pytest.raises(ValueError, match="timeout must be above 0"):
        sandbox.execute("1", timeout)


def test_bad_settings() -> None:
    with pytest.raises(ValueError, match="memory_mb must be a positive number, got 0"):
        Limits(memory_mb=0)
    with pytest.raises(ValueError, match="workers must be at least 1, got 0"):
        Sandbox(workers=0)
    with pytest.raises(ValueError, match="isolation must be 'auto' or one of"):
        Sandbox(isolation="jail")
    with pytest.raises(ValueError, match="min_level must be one of"):
        Sandbox(min_level="remote")


def test_below_the_floor_raises_and_names_the_switch() -> None:
    with (
        Sandbox(1, isolation="process", min_level="landlock") as weak,
        pytest.raises(SandboxUnavailable, match="pass min_level='process'"),
    ):
        weak.execute("1")


@pytest.mark.skipif(not os.path.isdir("/etc/alternatives"), reason="this machine has no such links")
def test_debians_links_to_libraries_can_be_followed(bare: Sandbox) -> None:
    """A numpy that is not preloaded finds libblas.so.3 through /etc/alternatives, and nothing else of /etc is there."""
    result = bare.execute("import os\nprint(len(os.listdir('/etc/alternatives')), os.path.exists('/etc/passwd'))", 5.0)
    assert result.stdout == f"{len(os.listdir('/etc/alternatives'))} {bare.level != 'namespaces'}\n", result


# -- independence ---------------------------------------------------------------------------------------------


POISONS = (
    "import builtins\nbuiltins.len = lambda x: 0\nbuiltins.print = None",
    "import math\nmath.pi = 3",
    "import sys\nsys.path.clear()\nsys.modules.clear()\nsys.setrecursionlimit(50)",
    "import os\nos.environ['HOME'] = 'x'\nos.environ['LEAK'] = '1'\nos.mkdir('d')\nos.chdir('d')",
    "open('left', 'w').write('x')\nimport os\nos.chmod('.', 0)",
    "import random\nrandom.seed(1)\nimport numpy\nnumpy.random.seed(1)\nnumpy.set_printoptions(precision=1)",
    "import signal\nfor s in (2, 15): signal.signal(s, signal.SIG_IGN)",
    "import decimal, json\ndecimal.getcontext().prec = 2\njson.dumps = None",
    "import sympy\nsympy.Symbol.__eq__ = lambda *a: True\nsympy.pi = 3",
    "import warnings, gc\nwarnings.simplefilter('error')\ngc.disable()\ndel __builtins__",
    "import sys\nsys.stdout = sys.stderr = sys.__stdout__ = None",
    "import socket\nfor f in range(3, 60):\n  try: socket.socket(fileno=f).shutdown(2)\n  except OSError: pass",
)
OBSERVE = """
import builtins, decimal, gc, json, math, os, random, sys
print(len('abc'), math.pi, sys.getrecursionlimit(), gc.isenabled(), decimal.getcontext().prec)
print(sorted(os.listdir('.')), sorted(os.environ), os.environ['HOME'] == os.getcwd(), len(sys.path), 'x' in dir())
print(random.random(), json.dumps([1]))
import numpy, sympy
print(numpy.random.random(), numpy.float64(1 / 3), sympy.Symbol('a') == sympy.Symbol('b'), sympy.N(sympy.pi, 5))
"""


def test_one_call_cannot_poison_the_next(sandbox: Sandbox) -> None:
    with Sandbox(workers=1) as single:
        clean = single.execute(OBSERVE, seed=3)
        assert clean.status == "ok", clean
        for poison in POISONS:
            single.execute(poison)
            after = single.execute(OBSERVE, seed=3)
            assert after.stdout == clean.stdout, poison


def test_seeds(sandbox: Sandbox) -> None:
    code = "import random, numpy\nprint(random.random(), numpy.random.random())"
    once, again = (sandbox.execute(code, seed=2**40 + 5).stdout for _ in range(2))
    assert once == again
    fresh = {sandbox.execute(code).stdout for _ in range(4)} | {once}
    assert len(fresh) == 5


def test_seeds_hold_for_sympy_in_every_sandbox(sandbox: Sandbox) -> None:
    pytest.importorskip("sympy")
    code = "import sympy\nprint(sympy.randprime(1, 10**12))"
    with Sandbox(workers=1) as other:
        assert sandbox.execute(code, seed=3).stdout == other.execute(code, seed=3).stdout
        quiet = "g = __import__('ran' + 'dom')\nprint(g.random(), __import__('numpy').__dict__['ran' + 'dom'].rand())"
        assert sandbox.execute(quiet, seed=3).stdout == other.execute(quiet, seed=3).stdout != ""
    assert len({sandbox.execute(code).stdout for _ in range(3)}) == 3


def test_hash_order_is_the_same_in_every_sandbox(sandbox: Sandbox) -> None:
    with Sandbox(1, preload=(), warmup="") as other:
        assert other.execute("print(hash('a'))").stdout == sandbox.execute("print(hash('a'))").stdout


# -- ways to call ---------------------------------------------------------------------------------------------


def test_many_threads(sandbox: Sandbox) -> None:
    with ThreadPoolExecutor(12) as threads:
        results = list(threads.map(lambda n: sandbox.execute(f"print({n} ** 2)").stdout, range(60)))
    assert results == [f"{n * n}\n" for n in range(60)]


def test_execute_many_keeps_the_order(sandbox: Sandbox) -> None:
    codes = [f"import time\ntime.sleep({0.02 * (5 - n)})\nprint({n})" for n in range(5)]
    assert [r.stdout for r in sandbox.execute_many(codes)] == [f"{n}\n" for n in range(5)]


def test_asyncio(sandbox: Sandbox) -> None:
    async def both() -> list[Result]:
        return list(await asyncio.gather(*(sandbox.aexecute(f"print({n})") for n in range(6))))

    assert [r.stdout for r in asyncio.run(both())] == [f"{n}\n" for n in range(6)]


def test_workers_limit_what_runs_at_once() -> None:
    with Sandbox(1, preload=(), warmup="") as single:
        single.execute("1")
        started = time.monotonic()
        single_runs = [threading.Thread(target=single.execute, args=("import time\ntime.sleep(0.3)",)) for _ in "ab"]
        for run in single_runs:
            run.start()
        for run in single_runs:
            run.join()
        assert time.monotonic() - started > 0.6


def test_a_forked_copy_gets_its_own(sandbox: Sandbox) -> None:
    sandbox.execute("1")
    original = sandbox._supervisor
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            result = sandbox.execute("print('child')")
            os.write(writer, f"{result.status} {sandbox._supervisor is original} {result.stdout}".encode())
            sandbox.close()
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        assert pipe.read() == "ok False child\n"
    os.waitpid(pid, 0)
    assert sandbox._supervisor is original
    assert sandbox.execute("print('parent')").stdout == "parent\n"


def test_pickles_as_its_settings() -> None:
    with Sandbox(3, preload=("json",), warmup="", limits=Limits(wall=2.0), readable=["/usr/share"]) as one:
        one.execute("1")
        with pickle.loads(pickle.dumps(one)) as two:
            assert two._supervisor is None
            assert (two.workers, two.limits, two._settings) == (3, Limits(wall=2.0), one._settings)
            assert two.execute("print(1)").stdout == "1\n"


def test_the_default_is_shared_and_replaced_once_closed() -> None:
    first = default_sandbox()
    assert default_sandbox() is first
    first.close()
    assert default_sandbox() is not first


def test_a_dead_supervisor_is_replaced_and_the_call_repeated() -> None:
    with Sandbox(1, preload=(), warmup="") as sandbox:
        sandbox.execute("1")
        assert sandbox._supervisor is not None
        first = sandbox._supervisor
        os.kill(first.process.pid, signal.SIGKILL)
        first.process.wait()
        assert sandbox.execute("print('again')").stdout == "again\n"
        assert sandbox._supervisor is not first


def test_descriptors_under_way_elsewhere_disturb_nobody() -> None:
    """The kernel counts a user's descriptors that are being passed, and measures them by what the sender may open."""
    ours, theirs = socket.socketpair()
    with ours, theirs, Sandbox(1, preload=(), warmup="", limits=Limits(open_files=32)) as sandbox:
        for _ in range(4):
            socket.send_fds(ours, [b"x"], [ours.fileno()] * 50)
        for _ in range(3):
            result = sandbox.execute("import resource\nprint(resource.getrlimit(resource.RLIMIT_NOFILE))")
            assert result.stdout == "(32, 32)\n", result


def test_a_supervisor_that_dies_in_every_call_is_the_infrastructures_fault() -> None:
    with Sandbox(1, preload=(), warmup="") as sandbox:
        sandbox.execute("1")
        stop = threading.Event()

        def killer() -> None:
            while not stop.wait(0.05):
                if (supervisor := sandbox._supervisor) is not None:
                    os.kill(supervisor.process.pid, signal.SIGKILL)

        thread = threading.Thread(target=killer)
        thread.start()
        try:
            result = sandbox.execute("import time\ntime.sleep(3)")
        finally:
            stop.set()
            thread.join()
        assert result.status == "sandbox_error"
        assert result.detail
        assert sandbox.execute("print(1)").stdout == "1\n"


def test_closed() -> None:
    sandbox = Sandbox(1)
    sandbox.close()
    sandbox.close()
    with pytest.raises(RuntimeError, match="closed"):
        sandbox.execute("1")


def test_features_name_the_level(bare: Sandbox) -> None:
    assert bare.features.level == bare.level
    assert bare.level in LEVELS


# -- anything at all ------------------------------------------------------------------------------------------

PIECES = st.sampled_from(
    ["import os", "x", "=", "(", ")", "\n", "  ", "def f():", "while True:", "pass", "1", "'", '"""', "lambda", "print",
     "\\", "[", "]", "os._exit(3)", "raise", "\0", "\ud800", "é", "class A:", "yield", "return", "f()", "del", "@", ";",
     "exit()", "async", "await", "import sys", "sys.stdout.close()", "**", ":=", "#", "{", "}", "global x", "assert 0"]
)  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(code=st.one_of(st.binary(max_size=200), st.text(max_size=100), st.lists(PIECES, max_size=15).map(" ".join)))
def test_any_code_gives_a_result(sandbox: Sandbox, code: str | bytes) -> None:
    started = time.monotonic()
    result = sandbox.execute(code, 0.5, echo=True)
    assert isinstance(result, Result)
    assert result.status in STATUSES, result
    assert time.monotonic() - started < 5
