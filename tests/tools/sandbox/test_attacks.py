"""Every attack, at every level that promises to contain it, as this user and as an ordinary one."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentic_gym.tools.sandbox import levels
from agentic_gym.tools.sandbox.doctor import features
from tests.tools.sandbox import attack_list

PACKAGE = Path(levels.__file__).parent
HERE = Path(attack_list.__file__).parent
STRONG = ("namespaces", "landlock")


def _needs(level: str) -> None:
    if reason := features().obstacle(level):
        pytest.skip(f"this machine cannot: {reason}")


def _attack(python: str, level: str, files: list[str], home: Path, user: int | None) -> dict[str, object]:
    done = subprocess.run(
        [python, str(home / "attack_range.py"), level, *files],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(home), "PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"},
        user=user,
        group=user,
        extra_groups=None if user is None else [],
        timeout=570,
        check=False,
    )
    assert done.stdout, done.stderr
    report: dict[str, object] = json.loads(done.stdout)
    return report


@pytest.fixture
def readable_copy() -> Iterator[Path]:
    """The sandbox and the range, where any user can read them."""
    root = Path(tempfile.mkdtemp(prefix="attack-range-"))
    shutil.copytree(PACKAGE, root / "agentic_gym/tools/sandbox", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("attack_range.py", "attack_list.py"):
        shutil.copy(HERE / name, root / name)
    for path in (root, *root.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    yield root
    shutil.rmtree(root)


def test_the_list_covers_every_family() -> None:
    families = {attack.family for attack in attack_list.ATTACKS}
    assert families >= {
        "time", "memory", "output", "disk", "processes", "threads", "signals", "files", "network", "kernel",
        "limits", "secrets", "machinery",
    }  # fmt: skip
    assert len(attack_list.ATTACKS) >= 80
    assert len({attack.name for attack in attack_list.ATTACKS}) == len(attack_list.ATTACKS)


@pytest.mark.parametrize("level", STRONG)
def test_listed_attacks_are_contained(level: str, shared_data: Path, readable_copy: Path) -> None:
    _needs(level)
    files = [str(shared_data / "sandbox" / "attacks.json")]
    report = _attack(sys.executable, level, files, readable_copy, None)
    assert report == {"level": level, "count": 28, "failures": {}}


@pytest.mark.slow
@pytest.mark.parametrize("level", STRONG)
def test_own_attacks_are_contained(level: str, readable_copy: Path) -> None:
    _needs(level)
    report = _attack(sys.executable, level, [], readable_copy, None)
    assert report == {"level": level, "count": len(attack_list.ATTACKS), "failures": {}}


@pytest.mark.slow
@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("level", STRONG)
def test_attacks_are_contained_as_an_ordinary_user(level: str, shared_data: Path, readable_copy: Path) -> None:
    _needs(level)
    system = shutil.which("python3", path="/usr/bin:/bin")
    if system is None:
        pytest.skip("needs a Python that every user can read")
    listed = readable_copy / "attacks.json"
    shutil.copy(shared_data / "sandbox" / "attacks.json", listed)
    listed.chmod(0o644)
    for files in ([str(listed)], []):
        report = _attack(system, level, files, readable_copy, 65534)
        assert report["failures"] == {}
        assert report["level"] == level


def test_a_hole_would_be_seen(readable_copy: Path) -> None:
    """The range must be able to fail: without isolation, attacks succeed."""
    listed = readable_copy / "open.json"
    codes = {
        "write outside": "open('@OUT@/x', 'w')\nprint('PWNED')",
        "connect": "import socket\nsocket.create_connection(('127.0.0.1', @PORT@)).recv(1)",
        "touch": "import os\nos.utime('@OUT@/keep', (1, 1))",
    }
    attacks = [{"name": name, "code": code, "timeout": 5.0} for name, code in codes.items()]
    listed.write_text(json.dumps({"attacks": attacks}))
    report = _attack(sys.executable, "process", [str(listed)], readable_copy, None)
    assert set(report["failures"]) == set(codes)  # type: ignore[call-overload]
