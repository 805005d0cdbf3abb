"""A place with decoys and canaries, where attacks run and their traces are looked for from outside.

Also a program, so that it can run as another user under a bare interpreter:
    python attack_range.py [--scale S] LEVEL [ATTACKS.json ...]
prints {"level": ..., "count": ..., "failures": {...}}. The scale stretches all times, for an emulated machine.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import socket
import stat
import sys
import tempfile
import threading
import time
from pathlib import Path

from agentic_gym.tools.sandbox import Result, Sandbox

_MAX_GROWTH_KB = 65536
_LATE_SECONDS = 0.2
"""How much longer than its time-out a run may last."""
_ANSWER_SECONDS = 0.5
"""How much later the answer may be there, counted from the call: it may have waited for the attack before it to die."""


class AttackRange:
    """Decoys, canaries and a sandbox; `run` returns what an attack achieved."""

    def __init__(self, level: str, scale: float = 1.0) -> None:
        self.scale = scale
        self.root = Path(tempfile.mkdtemp(prefix="range-"))
        self.home, self.out = self.root / "home", self.root / "out"
        (self.home / ".ssh").mkdir(parents=True)
        (self.home / ".ssh" / "id_rsa").write_text("decoy key")
        self.out.mkdir()
        (self.out / "canarymod.py").write_text("K = 'canary'\n")
        (self.out / "keep").write_text("keep me")
        self.halves = secrets.token_hex(8), secrets.token_hex(8)
        os.environ["SBX_SECRET"] = "".join(self.halves)
        self.touched: list[str] = []
        self.canaries = self._canaries()
        self.before = self._snapshot()
        self.sandbox = Sandbox(workers=1, isolation=level, min_level=level)
        self.level = self.sandbox.features.level
        self.supervisor = self.sandbox._supervisor

    def _canaries(self) -> list[socket.socket]:
        tcp = socket.create_server(("127.0.0.1", 0))
        self.port = tcp.getsockname()[1]
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", self.port))
        stream, datagram = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        stream.bind(f"\0sbx-canary-{self.port}")
        stream.listen()
        datagram.bind(f"\0sbx-canary-dgram-{self.port}")
        canaries = [tcp, udp, stream, datagram]
        for canary in canaries:
            threading.Thread(target=self._watch, args=(canary,), daemon=True).start()
        return canaries

    def _watch(self, canary: socket.socket) -> None:
        while True:
            try:
                taken = canary.accept() if canary.type == socket.SOCK_STREAM else canary.recv(100)
            except OSError:
                return
            self.touched.append(str(canary))
            del taken  # only now a connection ends

    def _snapshot(self) -> list[object]:
        """Everything outside that an attack might change."""
        entries: list[object] = []
        for path in sorted(self.root.rglob("*")):
            status = path.lstat()
            content = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
            entries.append((str(path), status.st_mode, status.st_mtime_ns, status.st_uid, content))
        for shared in ("/dev/shm", "/dev/mqueue", tempfile.gettempdir(), os.path.dirname(os.__file__)):
            if os.path.isdir(shared):
                entries += [(shared, name) for name in sorted(os.listdir(shared)) if name.startswith("sbx")]
        library = os.stat(os.__file__)
        entries.append((library.st_mode, library.st_mtime_ns, library.st_size))
        for table in ("shm", "sem", "msg"):
            if os.path.exists(f"/proc/sysvipc/{table}"):
                entries.append((table, len(Path(f"/proc/sysvipc/{table}").read_text().splitlines())))
        return entries

    def run(self, code: str, timeout: float) -> tuple[Result, list[str]]:
        """Run one attack; returns its result and everything that is wrong with it."""
        filled = code
        values = {"HOME": self.home, "OUT": self.out, "E0": self.halves[0], "E1": self.halves[1]}
        for name, value in {**values, "PORT": self.port, "PID": os.getpid()}.items():
            filled = filled.replace(f"@{name}@", str(value))
        timeout *= self.scale
        memory = _resident_kb()
        started = time.monotonic()
        result = self.sandbox.execute(filled, timeout)
        late = time.monotonic() - started - timeout
        wrong = []
        if "PWNED" in result.stdout + result.stderr.replace(filled, ""):
            shown = [line for line in result.stdout.splitlines() if "PWNED" in line]
            if shown:
                wrong.append(f"reached its goal: {shown[0][:200]}")
        if result.status == "sandbox_error":
            wrong.append(f"blames the sandbox: {result.detail}")
        if result.wall > timeout + _LATE_SECONDS * self.scale or late > _ANSWER_SECONDS * self.scale:
            wrong.append(f"ran {result.wall:.2f} s of {timeout} s, answered {late:.2f} s late")
        if self.sandbox._supervisor is not self.supervisor:
            wrong.append("ended the supervisor")
            self.supervisor = self.sandbox._supervisor
        if self.touched:
            wrong.append(f"reached {self.touched.pop()}")
        if (after := self._snapshot()) != self.before:
            wrong.append(f"changed {[entry for entry in after if entry not in self.before] or 'something'}")
            self.before = after
        if _resident_kb() - memory > _MAX_GROWTH_KB:
            wrong.append("grew the caller's memory")
        if len(result.stdout) > 4 * 65536 or len(result.stderr) > 4 * 65536:
            wrong.append("returned too much output")
        return result, wrong

    def descendants(self) -> list[int]:
        """Processes of the sandbox, from outside."""
        assert self.supervisor is not None
        parents = {}
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    fields = Path(f"/proc/{name}/stat").read_text(errors="replace").rsplit(")", 1)[1].split()
                except OSError:
                    continue
                parents[int(name)] = int(fields[1])
        found = [self.supervisor.process.pid]
        for pid in found:
            found += [child for child, parent in parents.items() if parent == pid]
        return found

    def close(self) -> None:
        self.sandbox.close()
        for canary in self.canaries:
            canary.close()
        os.environ.pop("SBX_SECRET", None)
        for path in sorted(self.root.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        self.root.rmdir()


def _resident_kb() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") // 1024


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("level")
    parser.add_argument("files", nargs="*")
    options = parser.parse_args(arguments)
    attacks: list[tuple[str, str, float]] = []
    for file in options.files:
        listed = json.loads(Path(file).read_text())["attacks"]
        attacks += [(a["name"], a["code"], a["timeout"]) for a in listed]
    if not options.files:
        from attack_list import ATTACKS

        attacks = [(a.name, a.code, a.timeout) for a in ATTACKS]
    ground = AttackRange(options.level, options.scale)
    failures = {}
    statuses = {}
    try:
        for name, code, timeout in attacks:
            result, wrong = ground.run(code, timeout)
            statuses[name] = result.status
            if os.environ.get("SBX_VERBOSE"):
                last = (result.stdout + result.stderr).strip().splitlines()[-1:] or [""]
                sys.stderr.write(f"{name:40} {result.status:12} {result.wall:5.2f}  {last[0][:100]}\n")
            if wrong:
                failures[name] = wrong
        # Guardian, supervisor, template; a slot and its waiting child, and as much again where one was still dying.
        allowed = 7 if ground.level == "namespaces" else 6
        end = time.monotonic() + 10 * ground.scale
        while (count := len(ground.descendants())) > allowed and time.monotonic() < end:
            time.sleep(0.1)
        if count > allowed:
            failures["(afterwards)"] = [f"{count - allowed} processes left"]
    finally:
        ground.close()
    sys.stdout.write(json.dumps({"level": ground.level, "count": len(attacks), "failures": failures}) + "\n")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
