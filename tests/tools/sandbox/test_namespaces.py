"""What the private namespaces say where they cannot be had."""

import errno
from pathlib import Path

import pytest

from agentic_gym.tools.sandbox import kernel, namespaces


def test_a_refusal_names_the_switch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(name: str, *arguments: int | bytes | None) -> None:
        raise OSError(errno.ENOSPC, f"{name}: No space left on device")

    monkeypatch.setattr(kernel, "call", refuse)
    monkeypatch.setattr(namespaces, "_SETTINGS", tmp_path)
    with pytest.raises(OSError, match=r"unshare: No space left on device$"):
        namespaces.enter()
    (tmp_path / "user").mkdir()
    (tmp_path / "kernel").mkdir()
    (tmp_path / "user/max_user_namespaces").write_text("0\n")
    (tmp_path / "kernel/unprivileged_userns_clone").write_text("1\n")
    with pytest.raises(OSError, match=r"No space left on device \(user.max_user_namespaces is 0\)") as caught:
        namespaces.enter()
    assert caught.value.errno == errno.ENOSPC
