"""What Landlock says where it cannot be had."""

import errno
import os

import pytest

from agentic_gym.tools.sandbox import kernel, landlock


@pytest.mark.parametrize(
    ("code", "reason"),
    [(errno.ENOSYS, "Linux 5.13"), (errno.EOPNOTSUPP, "lsm="), (errno.EPERM, "Operation not permitted")],
)
def test_a_refusal_names_its_cause(monkeypatch: pytest.MonkeyPatch, code: int, reason: str) -> None:
    def refuse(number: int, *arguments: int | bytes | None) -> int:
        assert number == kernel.SYS_LANDLOCK_CREATE_RULESET
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(kernel, "syscall", refuse)
    assert landlock.abi_version() == 0
    with pytest.raises(OSError, match=reason):
        landlock.restrict([], [], [])


@pytest.mark.parametrize(
    ("abi", "rights", "size"), [(1, 13, 8), (2, 14, 8), (3, 15, 8), (4, 15, 16), (5, 16, 16), (7, 16, 24)]
)
def test_each_interface_is_asked_for_what_it_knows(
    monkeypatch: pytest.MonkeyPatch, abi: int, rights: int, size: int
) -> None:
    asked: list[int] = []

    def old_kernel(number: int, *arguments: int | bytes | None) -> int:
        if number == kernel.SYS_LANDLOCK_CREATE_RULESET and arguments[0] is None:
            return abi
        if number == kernel.SYS_LANDLOCK_CREATE_RULESET:
            attributes, length, flags = arguments
            assert isinstance(attributes, bytes)
            assert (len(attributes), length, flags) == (size, size, 0)
            assert int.from_bytes(attributes[:8], "little") == 2**rights - 1
            return os.open(os.devnull, os.O_RDONLY)
        if number == kernel.SYS_LANDLOCK_ADD_RULE:
            assert isinstance(arguments[2], bytes)
            asked.append(int.from_bytes(arguments[2][:8], "little"))
        return 0

    monkeypatch.setattr(kernel, "syscall", old_kernel)
    landlock.restrict(["/"], ["/tmp"], [os.devnull])
    assert len(asked) == 3
    assert all(0 < rule < 2**rights for rule in asked)
