"""What the template does once, before its first child: choose the level, import and warm up, close itself in."""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import os
import resource
import signal
import site
import sys
import sysconfig
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agentic_gym.tools.sandbox import child, kernel, levels, namespaces, probe, scratch, seccomp, threads
from agentic_gym.tools.sandbox.levels import Features
from agentic_gym.tools.sandbox.limits import Limits


@dataclass(frozen=True)
class Prepared:
    """The outcome."""

    features: Features
    level: str
    hardening: child.Hardening
    base: str | None
    """Directory of the scratch directories; None under a private root."""
    processes: threads.Processes


def prepare(limits: Limits, config: dict[str, Any]) -> Prepared:
    """Go through all steps; raises SandboxUnavailable where the level asked for cannot be had.

    At level "namespaces" this returns in a new process (see `namespaces.enter`).
    """
    with contextlib.suppress(OSError):  # when memory runs out, we go before the trainer does
        Path("/proc/self/oom_score_adj").write_text("1000")
    features = probe.features()
    level = levels.choose(features, config["isolation"], config["min_level"])
    private = level == "namespaces"
    processes = threads.Processes()
    if private:
        namespaces.enter()
    if sys.platform == "linux":
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
        if level != "process":
            kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
            kernel.drop_capabilities(bounding=True) if not private else None
    _import(config["preload"], config["warmup"], config["extra_path"])
    readable = _readable(config["readable"])
    hardening = child.Hardening(
        limits=limits,
        baseline=_address_space(),
        readable=readable,
        chroot=private,
        landlock=level in ("landlock", "namespaces") and not features.landlock,
        filter=None,
        thread_filter=None,
        template=0,
    )
    if level != "process":
        truncate = private or features.landlock_abi >= 3
        hardening = replace(
            hardening,
            filter=seccomp.run_filter(metadata=private, truncate=truncate),
            thread_filter=None if features.notify else seccomp.thread_filter(),
        )
    base = None
    if private:
        namespaces.build_root(readable)
    else:
        base = scratch.make_base(config["tmp"])
    gc.collect()
    gc.freeze()
    gc.disable()
    return Prepared(replace(features, level=level), level, hardening, base, processes)


def _import(preload: list[str], warmup: str, extra_path: list[str]) -> None:
    """Import what is installed of `preload`, run the warm-up, and forget both's traces."""
    sys.path[:] = [p for p in sys.path if p] + extra_path
    for name in preload:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    if warmup:
        exec(compile(warmup, "<warmup>", "exec"), {"__name__": "__warmup__"})
    atexit._clear()
    importlib.invalidate_caches()


def _readable(extra: list[str]) -> tuple[str, ...]:
    """Directories that a child may read: Python's libraries and the shared objects they map."""
    paths = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    paths += site.getsitepackages()
    paths += [os.path.dirname(os.__file__), "/usr/share/zoneinfo"]
    with contextlib.suppress(OSError), open("/proc/self/maps") as maps:
        for line in maps:
            name = line.split(maxsplit=5)[-1].strip()
            if name.startswith("/") and ".so" in os.path.basename(name):
                paths.append(os.path.dirname(name))
    paths += extra
    return tuple(dict.fromkeys(p for p in paths if p and os.path.isdir(p)))


def _address_space() -> int:
    """Bytes of address space this process maps."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 0


def kill_strays(group: int, keep: set[int]) -> None:
    """Level "process" only: end what a run left behind in its process group, or orphaned to us."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
    with contextlib.suppress(OSError):
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
        for pid in map(int, children.split()):
            if pid not in keep:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
