"""How long a call of the Python tool takes, beside `subprocess.run([python, "-c", ...])` in the same run.

Every round runs each contestant once, in turn, so that a busy moment hits all of them alike. Read the ratios, not the
milliseconds. `--soak N` instead makes N calls, one in twenty hostile, and checks every answer and what is left over.
`--load N` instead starts N busy processes and shows how late time-outs then are.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from agentic_gym.tools.sandbox import Sandbox

CODES = {
    "print": "print(6 * 7)",
    "numpy": "import numpy as np\nprint(np.linalg.det(np.array([[1.0, 2.0], [3.0, 4.0]])))",
    "sympy": "import sympy\nx = sympy.symbols('x')\nprint(sympy.solve(x**2 - 5 * x + 6, x))",
}
GOALS = {"print": 0.4, "numpy": 0.08, "sympy": 0.04}
ENDLESS = {
    "spin": "while True: pass",
    "memory": "while True:\n  x = bytearray(200 * 2**20)\n  x[::4096] = bytes(len(x[::4096]))\n  del x",
    "objects": "while True:\n  x = [object() for _ in range(10**6)]",
    "sleep": "import time\ntime.sleep(100)",
}
_BATCH = 48
"""Calls between two turns of one and two workers: enough that the moment when only the last one runs does not count."""
_HOSTILE = (
    "while True: pass",
    "print('A' * 10**7)",
    "import os\nos.kill(os.getppid(), 9)",
    "import os\nos.fork()",
    "x = bytearray(10**10)",
    "import builtins\nbuiltins.print = builtins.len = None",
    "import os\nfor i in range(500):\n  os.mkdir('d')\n  os.chdir('d')",
    "import os\nos._exit(70)",
)


def main(argv: list[str]) -> int:
    """Print a table; exit code 1 when a goal is missed or the soak finds something wrong."""
    parser = argparse.ArgumentParser(prog="throughput.py python", description=__doc__)
    parser.add_argument("--rounds", type=int, default=30, help="measurements of each contestant")
    parser.add_argument("--soak", type=int, default=0, metavar="CALLS", help="soak instead of the table")
    parser.add_argument("--load", type=int, default=0, metavar="PROCESSES", help="time-outs under load instead")
    arguments = parser.parse_args(argv)
    if arguments.soak:
        return soak(arguments.soak)
    return late(arguments.load, arguments.rounds) if arguments.load else table(arguments.rounds)


def table(rounds: int) -> int:
    """The comparison with `subprocess`, the cost of the layers, a session, two workers, memory."""
    missed = 0
    with Sandbox(workers=2) as best, Sandbox(workers=2, isolation="process", min_level="process") as bare:
        session = best.session()
        for sandbox in (best, bare):
            sandbox.execute("1")
        contestants: dict[str, Callable[[str], object]] = {
            "subprocess": lambda code: subprocess.run([sys.executable, "-c", code], capture_output=True, check=True),
            "bare fork": lambda code: bare.execute(code),
            best.features.level: lambda code: best.execute(code),
            "session cell": lambda code: session.run(code, echo=False),
        }
        print(f"{'':14}{'code':8}{'p50 ms':>9}{'p95 ms':>9}{'p95/p50':>9}{'of subprocess':>15}")
        medians: dict[tuple[str, str], float] = {}
        for label, code in CODES.items():
            times: dict[str, list[float]] = {name: [] for name in contestants}
            for number in range(rounds + 2):
                for name, run in contestants.items():
                    # A new process takes long enough to be measured once; ours need as many calls to settle.
                    for _ in range(1 if name == "subprocess" else 5):
                        started = time.perf_counter()
                        run(code)
                        if number >= 2:
                            times[name].append(time.perf_counter() - started)
            for name, values in times.items():
                low, high = _quantile(values, 0.5), _quantile(values, 0.95)
                medians[name, label] = low
                ratio = low / medians["subprocess", label]
                print(f"{name:14}{label:8}{low * 1e3:9.2f}{high * 1e3:9.2f}{high / low:9.1f}{ratio:15.3f}")
            ratio = medians[best.features.level, label] / medians["subprocess", label]
            missed += _goal(f"{label}: at most {GOALS[label]} of subprocess", ratio, ratio <= GOALS[label])
        layers = medians[best.features.level, "print"] / medians["bare fork", "print"] - 1
        missed += _goal("isolation layers: at most 10 % over a bare fork", layers, layers <= 0.10)
        missed += _goal("session cell: at most 1 ms", medians["session cell", "print"] * 1e3,
                        medians["session cell", "print"] <= 1e-3)  # fmt: skip
        session.close()
    for label, code in (("sympy", CODES["sympy"]), ("20 ms of work", "sum(range(10**6))")):
        gain = _speedup(code, rounds)
        missed += _goal(f"two workers, {label}: at least 1.8x one (needs two idle cores)", gain, gain >= 1.8)
    extra = _memory_per_worker()
    missed += _goal("memory of one more worker: at most 15 MB", extra, extra <= 15)
    return 1 if missed else 0


def _quantile(values: list[float], q: float) -> float:
    return sorted(values)[min(len(values) - 1, int(q * len(values)))]


def _goal(name: str, value: float, met: bool) -> int:
    print(f"  {'met   ' if met else 'MISSED'} {name}: {value:.3f}")
    return 0 if met else 1


def _speedup(code: str, rounds: int) -> float:
    """Calls a second of two workers over those of one; both take turns."""
    seconds = {1: 0.0, 2: 0.0}
    with Sandbox(workers=1) as one, Sandbox(workers=2) as two, ThreadPoolExecutor(2) as threads:
        sandboxes = {1: one, 2: two}
        for number in range(rounds // 4 + 1):
            for workers, sandbox in sandboxes.items():
                started = time.perf_counter()
                if workers == 1:
                    for _ in range(_BATCH):
                        sandbox.execute(code)
                else:
                    list(threads.map(lambda c, s=sandbox: s.execute(c), [code] * _BATCH))
                if number:
                    seconds[workers] += time.perf_counter() - started
    return seconds[1] / seconds[2]


def _memory_per_worker() -> float:
    """MB of memory of its own (not shared with the template) that one more busy worker takes."""
    used = {}
    for workers in (1, 3):
        with Sandbox(workers=workers) as sandbox, ThreadPoolExecutor(workers) as threads:
            sandbox.execute("1")
            busy = [threads.submit(sandbox.execute, "import time\ntime.sleep(1.5)") for _ in range(workers)]
            time.sleep(0.8)
            used[workers] = sum(_own_memory(pid) for pid in descendants(os.getpid()))
            for future in busy:
                future.result()
    return (used[3] - used[1]) / 2


def _own_memory(pid: int) -> float:
    """Proportional set size in MB; 0 for a process that has gone."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0


def descendants(root: int) -> list[int]:
    """All processes below one, parents before children."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text(errors="replace").rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found[1:]


def late(load: int, rounds: int) -> int:
    """How far past its time-out endless code runs, and how much later the caller has its answer, on a busy machine."""
    timeout, missed = 0.5, 0
    command = [sys.executable, "-c", "while True: pass"]
    with contextlib.ExitStack() as stack:
        for _ in range(load):  # each in a session of its own: as unrelated programs, which the kernel treats as equals
            busy = subprocess.Popen(command, start_new_session=True)
            stack.callback(busy.wait)
            stack.callback(busy.kill)
        sandbox = stack.enter_context(Sandbox(workers=2))
        sandbox.execute("1")
        print(f"time-out {timeout} s, {load} busy processes on {os.cpu_count()} cores; milliseconds too late")
        print(f"{'':10}{'ran p50':>10}{'max':>8}{'answered p50':>15}{'max':>8}")
        for name, code in ENDLESS.items():
            ran, answered = [], []
            for _ in range(rounds):
                started = time.perf_counter()
                result = sandbox.execute(code, timeout)
                answered.append(time.perf_counter() - started - timeout)
                ran.append(result.wall - timeout)
            low, high = _quantile(answered, 0.5), max(answered)
            print(f"{name:10}{_quantile(ran, 0.5) * 1e3:10.0f}{max(ran) * 1e3:8.0f}{low * 1e3:15.0f}{high * 1e3:8.0f}")
            missed += _goal(f"{name}: answered at most 200 ms late", high * 1e3, high <= 0.2)
    return 1 if missed else 0


def soak(calls: int) -> int:
    """`calls` runs, one in twenty hostile; every honest answer is checked, then what is left behind."""
    wrong: list[str] = []
    marks: list[tuple[int, int]] = []
    with Sandbox(workers=2) as sandbox, ThreadPoolExecutor(2) as threads:
        level = sandbox.features.level
        supervisor = sandbox._supervisor

        def one(number: int) -> None:
            if number % 20 == 7:
                code = _HOSTILE[number // 20 % len(_HOSTILE)]
                result = sandbox.execute(code, 0.1 if "while" in code else 5.0)
                if result.status == "sandbox_error":
                    wrong.append(f"{number}: {code!r}: {result.detail}")
                return
            result = sandbox.execute(f"x = {number}\nx * x", echo=True)
            if (result.status, result.stdout) != ("ok", f"{number * number}\n"):
                wrong.append(f"{number}: {result}")

        started = time.perf_counter()
        step = max(1, calls // 10)
        for first in range(0, calls, step):
            list(threads.map(one, range(first, min(first + step, calls))))
            family = descendants(os.getpid())
            memory = sum(_own_memory(pid) for pid in [os.getpid(), *family])
            marks.append((len(family), round(memory)))
            rate = (first + step) / (time.perf_counter() - started)
            print(f"{first + step:8} calls  {rate:7.1f}/s  {len(family)} processes  {memory:6.1f} MB", flush=True)
        if sandbox._supervisor is not supervisor:
            wrong.append("the supervisor was replaced")
    if left := descendants(os.getpid()):
        wrong.append(f"processes left: {left}")
    if marks[-1][1] > marks[0][1] * 1.2 + 10:
        wrong.append(f"memory grew from {marks[0][1]} to {marks[-1][1]} MB")
    for line in wrong[:20]:
        print("WRONG", line)
    print(f"{calls} calls at level {level!r}: {len(wrong)} wrong")
    return 1 if wrong else 0
