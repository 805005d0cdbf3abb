import sys

import pytest

from agentic_gym.tools.sandbox.doctor import doctor, features
from agentic_gym.tools.sandbox.levels import LEVELS, Features, SandboxUnavailable, choose

FULL = Features("Linux", landlock_abi=7)
DOCKER = Features("Linux", landlock_abi=4, namespaces="user namespaces are refused")
GVISOR = Features("gVisor", landlock="no", notify="no")
OLD = Features("Linux 5.4", landlock="no such call", namespaces="refused")
MAC = Features("Darwin", seccomp="needs Linux", landlock="needs Linux", namespaces="needs Linux")


@pytest.mark.parametrize(
    ("machine", "level"),
    [(FULL, "namespaces"), (DOCKER, "landlock"), (GVISOR, "namespaces"), (OLD, "seccomp"), (MAC, "process")],
)
def test_auto_takes_the_best(machine: Features, level: str) -> None:
    assert choose(machine, "auto", "process") == level


@pytest.mark.parametrize(("machine", "best"), [(OLD, "seccomp"), (MAC, "process")])
def test_below_the_floor_says_why_and_how_to_go_on(machine: Features, best: str) -> None:
    with pytest.raises(SandboxUnavailable, match=f"pass min_level='{best}'") as caught:
        choose(machine, "auto", "landlock")
    assert machine.obstacle("landlock") in str(caught.value)
    assert machine.obstacle("namespaces") in str(caught.value)  # mending either would do
    assert str(caught.value).count("needs Linux") <= 1
    assert "RemoteSandbox" in str(caught.value)


def test_a_named_level_is_taken_or_refused() -> None:
    assert choose(FULL, "landlock", "landlock") == "landlock"
    with pytest.raises(SandboxUnavailable, match="'namespaces' cannot be reached: namespaces: user namespaces"):
        choose(DOCKER, "namespaces", "landlock")
    with pytest.raises(SandboxUnavailable, match="below min_level='landlock'"):
        choose(FULL, "seccomp", "landlock")


def test_process_is_always_there() -> None:
    assert all(machine.obstacle("process") == "" for machine in (FULL, DOCKER, GVISOR, OLD, MAC))


def test_doctor_reports_every_level_and_a_call() -> None:
    report = doctor()
    assert all(level in report for level in LEVELS)
    assert "a call at level" in report
    assert ": ok," in report
    assert features().system in report


def test_doctor_on_a_weak_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[doctor.__module__], "features", lambda: OLD)
    report = doctor()
    assert "landlock    no   (Landlock: no such call)" in report
    assert "RemoteSandbox" in report
