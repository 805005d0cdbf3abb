"""Find out what the kernel enforces, by trying it in throw-away children (asking is not reliable everywhere)."""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable

from agentic_gym.tools.sandbox import kernel, landlock, namespaces, seccomp
from agentic_gym.tools.sandbox.levels import Features


def features() -> Features:
    """Try every layer. Must be called in a process with one thread (it forks)."""
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    if sys.platform != "linux":
        reason = f"needs Linux, this is {platform.system()}"
        return Features(system, seccomp=reason, landlock=reason, namespaces=reason, notify=reason)
    if not kernel.MACHINE:
        reason = f"no system-call table for {platform.machine()} (x86_64 and aarch64 are known)"
        return Features(system, seccomp=reason, landlock=reason, namespaces=reason, notify=reason)
    return Features(
        system,
        seccomp=attempt(_try_seccomp),
        landlock=attempt(_try_landlock),
        landlock_abi=landlock.abi_version(),
        namespaces=attempt(_try_namespaces),
        notify=attempt(_try_notify),
    )


def attempt(action: Callable[[], None]) -> str:
    """Run `action` in a forked child; returns "" if it worked, else what went wrong."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            action()
            os._exit(0)
        except BaseException as error:
            os.write(writer, str(error).encode()[:500])
        finally:
            os._exit(1)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        reason = pipe.read().decode("utf-8", "replace")
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return "" if status == 0 else reason or f"the attempt ended with status {status}"


def _try_seccomp() -> None:
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    seccomp.run_filter(private=False, truncate=False).install()
    seccomp.seal_filter().install()
    try:
        if os.fork() == 0:
            os._exit(0)
    except PermissionError:
        return
    raise OSError("a filter was accepted but is not enforced")


def _try_notify() -> None:
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    seccomp.thread_filter().install(listener=True)


def _try_landlock() -> None:
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    landlock.restrict(read=["/dev"], write=[], devices=[])
    try:
        os.listdir("/")
    except PermissionError:
        return
    raise OSError("rules were accepted but are not enforced")


def _try_namespaces() -> None:
    namespaces.enter()
    namespaces.build_root(["/usr/lib"])
    namespaces.make_slot(0, 1, 16)
    os.chroot("/slots/0")
    if os.path.exists("/proc") or os.path.exists(tempfile.gettempdir() + "/..data"):
        raise OSError("the private root shows the machine's files")


def main() -> None:
    """Write the features to standard output, as JSON."""
    json.dump(features().as_dict(), sys.stdout)
