"""What the supervisor does once: choose the level, start the template, build the private root or the scratch base."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agentic_gym.tools.sandbox import (
    children,
    kernel,
    levels,
    namespaces,
    probe,
    protocol,
    scratch,
    seccomp,
    slot,
    template,
)
from agentic_gym.tools.sandbox.levels import Features
from agentic_gym.tools.sandbox.limits import Limits, raise_open_files


@dataclass(frozen=True)
class Prepared:
    """The outcome."""

    features: Features
    base: str | None
    """Directory of the scratch directories; None under a private root."""
    processes: children.Processes
    template: int
    """Process id of the template."""
    link: socket.socket
    """Where the template takes requests for slots."""


def prepare(limits: Limits, config: dict[str, Any]) -> Prepared:
    """Go through all steps; raises SandboxUnavailable where the level asked for cannot be had.

    At level "namespaces" this returns in a new process (see `namespaces.enter`).
    """
    with contextlib.suppress(OSError):  # when memory runs out, we go before the trainer does
        Path("/proc/self/oom_score_adj").write_text("1000")
    with contextlib.suppress(OSError):  # a machine that hands dumps to a program does so whatever RLIMIT_CORE says
        Path("/proc/self/coredump_filter").write_text("0")
    raise_open_files()
    features = probe.features()
    level = levels.choose(features, config["isolation"], config["min_level"])
    features = replace(features, level=level)
    private = level == "namespaces"
    processes = children.Processes()
    if private:
        namespaces.enter()
    if sys.platform == "linux":
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
        if level != "process":
            kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
            if not private:
                kernel.drop_capabilities(bounding=True)
    link, pid, readable = _start_template(_hardening(limits, features), config)
    base = None
    if private:
        namespaces.build_root(readable)
    else:
        base = scratch.make_base(config["tmp"])
    return Prepared(features, base, processes, pid, link)


def _hardening(limits: Limits, features: Features) -> slot.Hardening:
    filters: tuple[seccomp.Filter | None, seccomp.Filter | None] = None, None
    if features.level != "process":
        private = features.level == "namespaces"
        run_filter = seccomp.run_filter(private=private, truncate=private or features.landlock_abi >= 3)
        filters = run_filter, None if features.notify else seccomp.thread_filter()
    confine = features.level in ("landlock", "namespaces") and not features.landlock
    return slot.Hardening(limits, 0, (), confine, *filters)


def _start_template(
    hardening: slot.Hardening, config: dict[str, Any]
) -> tuple[socket.socket, int, list[str]]:
    """Fork the template; returns its link, its process id, and what its libraries need to read."""
    link, theirs = protocol.pair()
    own = os.getpid()
    pid = os.fork()
    if pid == 0:
        link.close()
        template.serve(theirs, hardening, config, own)
    theirs.close()
    greeting, _ = protocol.receive(link)
    if greeting is None or "error" in greeting:
        raise RuntimeError(f"preloading failed: {(greeting or {}).get('error', 'the process died')}")
    return link, pid, greeting["readable"]


def kill_strays(group: int, keep: set[int]) -> None:
    """Level "process" only: end what a run left behind in its process group, or orphaned to us."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
    with contextlib.suppress(OSError):
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
        for pid in map(int, children.split()):
            if pid not in keep:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
