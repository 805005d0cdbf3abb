"""Say what this machine enforces, and try it once: the report of `agentic-gym doctor`."""

from __future__ import annotations

import json
import subprocess
import sys

from agentic_gym.tools.sandbox import launch
from agentic_gym.tools.sandbox.client import Sandbox
from agentic_gym.tools.sandbox.levels import LEVELS, Features, SandboxUnavailable

_PROBE_SECONDS = 60.0


def features() -> Features:
    """What the kernel was seen to enforce, tried in a throw-away process. Raises RuntimeError if that fails."""
    done = subprocess.run(
        launch.command(sys.executable, "probe"),
        capture_output=True,
        env=launch.ENVIRONMENT,
        cwd="/",
        timeout=_PROBE_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"the probe failed: {done.stderr.decode('utf-8', 'replace')[-500:]}")
    return Features(**json.loads(done.stdout))


def doctor() -> str:
    """A report to print: the levels this machine reaches, what is missing for the others, and one call."""
    found = features()
    lines = [f"Python tool on {found.system}, Landlock ABI {found.landlock_abi}"]
    for level in reversed(LEVELS):
        obstacle = found.obstacle(level)
        lines.append(f"  {level:12}{'yes' if not obstacle else f'no   ({obstacle})'}")
    if found.notify:
        lines.append(f"  threads are polled, not counted on creation: {found.notify}")
    if found.obstacle("landlock") and found.obstacle("namespaces"):
        lines.append("  Below 'landlock' code can read your files: pass min_level to accept that, or use RemoteSandbox.")
    try:
        with Sandbox(workers=1) as sandbox:
            result = sandbox.execute("print(6 * 7)")
            detail = f", {result.detail}" if result.detail else ""
            lines.append(f"  a call at level {sandbox.level!r}: {result.status}, {result.wall * 1e3:.1f} ms{detail}")
    except (SandboxUnavailable, RuntimeError) as error:
        lines.append(f"  a call: {error}")
    return "\n".join(lines)
