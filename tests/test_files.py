"""Files stay whole: torn lines, full disks, interruptions, two processes."""

import errno
import multiprocessing
import os
from collections.abc import Callable
from io import FileIO
from pathlib import Path
from typing import Any

import pytest

from agentic_gym.files import append_lines, exclusive, explain, read_json, user_cache, write_text


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
    with pytest.raises(OSError, match="No space left") as error:
        append_lines(path, b"2" * 20 + b"\n")
    assert path.read_bytes() == b"1\n"
    assert explain(error.value) == f"{path}: the disk is full; free space, or choose a path on another"


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


def test_an_error_names_the_file_and_not_the_partial_one(tmp_path: Path) -> None:
    (tmp_path / "f.json").mkdir()
    with pytest.raises(IsADirectoryError) as error:
        write_text(tmp_path / "f.json", "new")
    assert explain(error.value) == f"{tmp_path / 'f.json'}: it is a folder, not a file; choose another path"
    assert [p.name for p in tmp_path.iterdir()] == ["f.json"]


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (FileNotFoundError(errno.ENOENT, "x", "/a"), "/a: there is no such file or folder; check the path"),
        (OSError(errno.EIO, "Input/output error", "/a"), "/a: input/output error"),
        (OSError(errno.ENOSPC, "x"), "the disk is full; free space, or choose a path on another"),
        (PermissionError("in its own words"), "in its own words"),
        (OSError(errno.EROFS, "x", b"/a"), "/a: its disk can only be read; choose a path on another"),
    ],
)
def test_an_error_in_plain_words(error: OSError, text: str) -> None:
    assert explain(error) == text


def test_reading_says_what_was_wanted(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for kind, make, text in (
        (FileNotFoundError, lambda: None, f"there is no list at {path}: give one"),
        (IsADirectoryError, path.mkdir, f"{path} is a folder, not a list: give one"),
    ):
        make()
        with pytest.raises(kind) as error:
            read_json(path, "list", fix="give one")
        assert str(error.value) == text
    path.rmdir()
    path.write_text("[1, 2")
    with pytest.raises(ValueError, match=r"a.json is no whole list \(.*\): give one"):
        read_json(path, "list", fix="give one")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="is no whole list"):
        read_json(path, "list", fix="give one")
    path.write_text("[1, 2]")
    assert read_json(path, "list", fix="give one") == [1, 2]


def test_where_things_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTIC_GYM_CACHE", "~/kept")
    assert user_cache() == Path.home() / "kept"
    monkeypatch.delenv("AGENTIC_GYM_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    assert user_cache() == tmp_path / "agentic-gym"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert user_cache() == Path.home() / ".cache" / "agentic-gym"
    monkeypatch.setattr("sys.platform", "darwin")
    assert user_cache() == Path.home() / "Library" / "Caches" / "agentic-gym"


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
