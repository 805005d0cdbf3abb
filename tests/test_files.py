"""Files stay whole: torn lines, full disks, interruptions, two processes."""

import multiprocessing
import os
from collections.abc import Callable
from io import FileIO
from pathlib import Path
from typing import Any

import pytest

from agentic_gym.files import append_lines, exclusive, write_text


@pytest.mark.parametrize("torn", [b"", b'{"a": 1', b"\xff", b"x" * 200_000, '{"é'.encode()[:-1]])
@pytest.mark.parametrize("before", [b"", b"1\n", b"1" * 70_000 + b"\n"])
def test_a_torn_line_is_removed(tmp_path: Path, before: bytes, torn: bytes) -> None:
    path = tmp_path / "f.jsonl"
    path.write_bytes(before + torn)
    append_lines(path, b"2\n3\n")
    assert path.read_bytes() == before + b"2\n3\n"


def test_a_last_line_that_is_whole_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    path.write_bytes(b'1\n{"a": 2}')
    append_lines(path, b"3\n")
    assert path.read_bytes() == b'1\n{"a": 2}\n3\n'


@pytest.fixture
def small_disk(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """A disk that takes only so many bytes more, in parts."""

    def fill(room: int) -> None:
        real_open = Path.open

        class Small(FileIO):
            def write(self, data: Any) -> int:
                nonlocal room
                part = bytes(data)[: min(room, 5)]
                if not part:
                    raise OSError(28, "No space left on device")
                room -= len(part)
                return super().write(part)

        def opened(self: Path, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
            return Small(self, "a+") if mode == "a+b" else real_open(self, mode, *args, **kwargs)

        monkeypatch.setattr(Path, "open", opened)

    return fill


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path, small_disk: Callable[[int], None]) -> None:
    path = tmp_path / "f.jsonl"
    path.write_bytes(b"1\n")
    small_disk(12)
    with pytest.raises(OSError, match="No space left"):
        append_lines(path, b"2" * 20 + b"\n")
    assert path.read_bytes() == b"1\n"


def test_a_write_in_parts_is_whole(tmp_path: Path, small_disk: Callable[[int], None]) -> None:
    path = tmp_path / "f.jsonl"
    small_disk(100)
    append_lines(path, b"2" * 20 + b"\n")
    assert path.read_bytes() == b"2" * 20 + b"\n"


def test_text_is_replaced_at_once_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "deep" / "f.json"
    write_text(path, "old é")
    assert path.read_text(encoding="utf-8") == "old é"

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_text(path, "new")
    assert [p.name for p in path.parent.iterdir()] == ["f.json"]
    assert path.read_text(encoding="utf-8") == "old é"


def _hold(folder: Path, held: Any) -> None:
    with exclusive(folder):
        held.set()
        os.kill(os.getpid(), 19)  # SIGSTOP: it stays until it is killed


def test_one_process_a_folder_until_it_is_killed(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    held = context.Event()
    other = context.Process(target=_hold, args=(tmp_path / "run", held))
    other.start()
    assert held.wait(20)
    with pytest.raises(RuntimeError, match=r"another process is writing to .*run: "), exclusive(tmp_path / "run"):
        pass
    other.kill()
    other.join()
    with exclusive(tmp_path / "run"):
        pass
