"""The filter's programs for both machines, run by a small interpreter: every system call number, no kernel needed."""

import errno
import importlib
import re
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentic_gym.tools.sandbox import kernel, seccomp
from agentic_gym.tools.sandbox import syscall_table as table

ALLOW, NOTIFY, KILL = 0x7FFF0000, 0x7FC00000, 0x80000000
DENY, ABSENT, UNSUPPORTED = (0x50000 | number for number in (errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP))
ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
"""Of the kernel, as Debian installs them; a generic one holds the numbers of aarch64."""


@pytest.fixture(scope="module", params=list(ARCH), autouse=True)
def machine(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each machine in turn, whatever this one is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "MACHINE", request.param)
        importlib.reload(table)
        yield request.param
    importlib.reload(table)


def run(program: seccomp.Filter, number: int, *arguments: int, arch: int | None = None) -> int:
    """What the kernel would answer."""
    arch = ARCH[kernel.MACHINE] if arch is None else arch
    padded = [a % 2**64 for a in (*arguments, *[0] * (6 - len(arguments)))]
    data = struct.pack("=IIQ6Q", number % 2**32, arch, 0, *padded)
    code = [struct.unpack_from("=HBBI", program._buffer.raw, 8 * i) for i in range(len(program._buffer.raw) // 8)]
    accumulator = at = 0
    while True:
        operation, yes, no, k = code[at]
        at += 1
        if operation == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, k)
        elif operation == 0x05:
            at += k
        elif operation == 0x15:
            at += yes if accumulator == k else no
        elif operation == 0x35:
            at += yes if accumulator >= k else no
        elif operation == 0x45:
            at += yes if accumulator & k else no
        elif operation == 0x54:
            accumulator &= k
        elif operation == 0x06:
            return k
        else:
            raise AssertionError(f"unknown instruction {operation:#x}")


@pytest.fixture(scope="module")
def strict(machine: str) -> seccomp.Filter:
    return seccomp.run_filter(private=False, truncate=False)


def test_every_number_gets_the_answer_of_the_table(strict: seccomp.Filter) -> None:
    checked = set(table.ARGUMENTS_MATTER.values())
    allowed = set((table.ALWAYS | table.LATER | table.SIGNALS | table.SENDMSG).values())
    absent, unsupported = set(table.ABSENT.values()), set(table.ALLOCATE.values())
    for number in range(table.NEWEST + 1):
        if number not in checked:
            expected = ALLOW if number in allowed else ABSENT if number in absent else DENY
            expected = UNSUPPORTED if number in unsupported else expected
            assert run(strict, number) == expected, number
    for number in (table.NEWEST + 1, 10_000, 0x40000000, 0x40000039, 2**32 - 1):
        assert run(strict, number) == ABSENT


def test_numbers_are_those_of_the_kernels_headers(machine: str) -> None:
    if not HEADERS[machine].exists():
        pytest.skip("needs the kernel's headers")
    defined = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", HEADERS[machine].read_text())
    official = {name: int(number) for name, number in defined}
    official |= {"newfstatat": official.get("newfstatat", official.get("fstatat", -1))}
    for name, rows in vars(table).items():
        if isinstance(rows, dict) and name.isupper():
            assert rows.items() <= official.items(), name
    assert len(table.ALWAYS) > 100


def test_another_machine_kills(strict: seccomp.Filter, machine: str) -> None:
    for arch in {0x40000003, 0x40000028, *ARCH.values()} - {ARCH[machine]}:
        assert run(strict, 0, arch=arch) == KILL


def test_open_to_path_dependent_calls_where_something_else_guards_them(strict: seccomp.Filter) -> None:
    open_ = seccomp.run_filter(private=True, truncate=True)
    for number in (table.METADATA | table.TRUNCATE).values():
        assert (run(strict, number), run(open_, number)) == (DENY, ALLOW)
    (fallocate,) = table.ALLOCATE.values()
    assert (run(strict, fallocate), run(open_, fallocate)) == (UNSUPPORTED, ALLOW)
    openat = table.ARGUMENTS_MATTER["openat"], -100, 0, 0o20200002
    assert (run(strict, *openat), run(open_, *openat)) == (UNSUPPORTED, ALLOW)


@pytest.mark.parametrize(
    ("name", "arguments", "answer"),
    [
        ("openat", (0, 0, 0o1000), DENY),
        ("openat", (0, 0, 0o1001), ALLOW),
        ("openat", (0, 0, 0o101), ALLOW),
        ("openat", (0, 0, 0o1002), ALLOW),
        ("openat", (0, 0, 0o3), DENY),
        ("openat", (0, 0, 0o1003), DENY),
        ("socketpair", (1, 1), ALLOW),
        ("socketpair", (1, 5), ALLOW),
        ("socketpair", (1, 1 | 0o2004000), ALLOW),
        ("socketpair", (1, 2), DENY),
        ("socketpair", (1, 3), DENY),
        ("socketpair", (2, 1), DENY),
        ("sendto", (3, 0, 0, 0, 0), ALLOW),
        ("sendto", (3, 0, 0, 0, 1), DENY),
        ("sendto", (3, 0, 0, 0, 1 << 32), DENY),
        ("clone", (0x1200011,), ALLOW),
        ("clone", (0x3D0F00,), ALLOW),
        ("clone", (0x3D0F00 | 0x10000000,), DENY),
        ("clone", (0x20000,), DENY),
        ("fcntl", (0, 8), DENY),
        ("fcntl", (0, 10), DENY),
        ("fcntl", (0, 15), DENY),
        ("fcntl", (0, 1031), DENY),
        ("fcntl", (0, 3), ALLOW),
        ("ioctl", (0, 0x5412), DENY),
        ("ioctl", (0, 0x8901), DENY),
        ("ioctl", (0, 0x5401), ALLOW),
        ("prlimit64", (0, 0, 0, 0), ALLOW),
        ("prlimit64", (77, 0, 0, 0), DENY),
        ("close_range", (3, 9, 0), ALLOW),
        ("close_range", (3, 9, 2), DENY),
        ("prctl", (22,), DENY),
        ("prctl", (36,), DENY),
        ("prctl", (15,), ALLOW),
    ],
)
def test_arguments(strict: seccomp.Filter, name: str, arguments: tuple[int, ...], answer: int) -> None:
    assert run(strict, table.ARGUMENTS_MATTER[name], *arguments) == answer


def test_the_seal() -> None:
    seal = seccomp.seal_filter()
    seal.set(4711)
    for number in table.SIGNALS.values():
        assert run(seal, number, 4711, 9) == ALLOW
        for other in (1, 4712, 0, -1, -4711):
            assert run(seal, number, other, 9) == DENY
    clone, prlimit = table.ARGUMENTS_MATTER["clone"], table.ARGUMENTS_MATTER["prlimit64"]
    assert run(seal, clone, 0x1200011) == DENY
    assert run(seal, clone, 0x3D0F00) == ALLOW
    assert run(seal, prlimit, 0, 7, 0, 99) == ALLOW
    assert run(seal, prlimit, 0, 7, 1 << 40, 0) == DENY
    assert run(seal, prlimit, 0, 7, 99, 0) == DENY
    assert run(seal, table.ARGUMENTS_MATTER["prctl"], 1, 0) == DENY
    assert run(seal, table.ARGUMENTS_MATTER["prctl"], 15, 0) == ALLOW
    assert run(seal, clone, 0x10000) == DENY
    for number in (table.LATER | table.SETRLIMIT | table.SENDMSG).values():
        assert run(seal, number) == DENY
    assert run(seal, 0) == ALLOW


def test_threads_ask_and_forks_do_not() -> None:
    ask = seccomp.thread_filter()
    clone = table.ARGUMENTS_MATTER["clone"]
    assert run(ask, clone, 0x3D0F00) == NOTIFY
    assert run(ask, clone, 0x1200011) == ALLOW
    assert run(ask, 0) == ALLOW
