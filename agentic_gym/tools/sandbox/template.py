"""The template process: imports the libraries once, warms them up, and forks slots when told to."""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import os
import resource
import signal
import site
import socket
import sys
import sysconfig
from dataclasses import replace
from typing import Any, NoReturn

from agentic_gym.tools.sandbox import kernel, protocol, slot


def serve(link: socket.socket, hardening: slot.Hardening, config: dict[str, Any], supervisor: int) -> NoReturn:
    """The whole life of the template. Reports what it has mapped, then forks a slot per request."""
    try:
        if sys.platform == "linux":
            kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != supervisor:
                os._exit(0)
        # A session, and so a scheduling group, of our own: what runs below us then takes no turns from the supervisor,
        # which kills it in time however busy the machine is.
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps slots; the supervisor sees their links end
        _import(config["preload"], config["warmup"], config["extra_path"])
        readable = _readable(config["readable"])
        hardening = replace(hardening, baseline=_address_space(), readable=tuple(readable))
        gc.collect()
        gc.freeze()
        gc.disable()
        _use_large_pages()
        protocol.send(link, {"readable": readable})
        own = os.getpid()
        while True:
            request, descriptors = protocol.receive(link)
            if request is None:
                os._exit(0)
            if os.fork() == 0:
                slot_link = socket.socket(fileno=descriptors[0])
                slot.serve(slot_link, slot.Place(request["root"], request["scratch"]), hardening, own)
            os.close(descriptors[0])
    except BaseException as error:
        with contextlib.suppress(OSError):
            protocol.send(link, {"error": f"{type(error).__name__}: {error}"})
    finally:
        os._exit(70)


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


def _readable(extra: list[str]) -> list[str]:
    """Directories that code may read: Python's libraries and the shared objects they map."""
    paths = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    paths += site.getsitepackages()
    paths += [os.path.dirname(os.__file__), "/usr/share/zoneinfo"]
    paths.append("/etc/alternatives")  # holds links only; Debian's libblas.so.3 leads through it
    with contextlib.suppress(OSError), open("/proc/self/maps") as maps:
        for line in maps:
            name = line.split(maxsplit=5)[-1].strip()
            if name.startswith("/") and ".so" in os.path.basename(name):
                paths.append(os.path.dirname(name))
    paths += extra
    return list(dict.fromkeys(p for p in paths if p and os.path.isdir(p)))


def _use_large_pages() -> None:
    """Gather our memory in pages of 2 MB where the kernel can: forks then copy and drop far fewer entries."""
    with contextlib.suppress(OSError), open("/proc/self/maps") as maps:
        for line in maps.readlines():
            span, mode, *rest = line.split(maxsplit=5)
            if mode == "rw-p" and (len(rest) < 4 or rest[3].strip() == "[heap]"):
                start, end = (int(address, 16) for address in span.split("-"))
                kernel.collapse(start, end)


def _address_space() -> int:
    """Bytes of address space this process maps; 0 where that cannot be told."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 0
