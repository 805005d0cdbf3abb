import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentic_gym.tools.sandbox import scratch

NAMES = st.sampled_from(["a", "b", ".lifted-0", ".lifted-1", "\n", "*", "é"])
TREES: st.SearchStrategy[dict[str, object]] = st.recursive(
    st.dictionaries(NAMES, st.just(None), max_size=3),
    lambda inner: st.dictionaries(NAMES, st.one_of(st.none(), inner), max_size=3),
    max_leaves=12,
)


def _grow(path: Path, tree: dict[str, object], modes: int) -> None:
    for name, inner in tree.items():
        if isinstance(inner, dict):
            (path / name).mkdir()
            _grow(path / name, inner, modes)
            (path / name).chmod(modes)
        else:
            (path / name).touch()


@settings(max_examples=60, deadline=None)
@given(tree=TREES, modes=st.sampled_from([0o700, 0o000, 0o500]))
def test_empties_any_tree(tmp_path_factory: pytest.TempPathFactory, tree: dict[str, object], modes: int) -> None:
    root = tmp_path_factory.mktemp("scratch")
    _grow(root, tree, modes)
    scratch.empty(str(root))
    assert list(root.iterdir()) == []


def test_a_very_deep_tree(tmp_path: Path) -> None:
    here = os.getcwd()
    try:
        os.chdir(tmp_path)
        for _ in range(1200):
            os.mkdir("d" * 100)
            os.chdir("d" * 100)
    finally:
        os.chdir(here)
    over = _over_limit(str(tmp_path), 2**40, 10**6)
    scratch.empty(str(tmp_path))
    assert over
    assert list(tmp_path.iterdir()) == []


def test_emptying_gives_up_on_many_entries_and_on_slow_ones(tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / str(number)).touch()
    with pytest.raises(scratch.TooMuch):
        scratch.empty(str(tmp_path), budget=39)
    (tmp_path / "folder").mkdir()
    for number in range(40):
        (tmp_path / "folder" / str(number)).touch()
    with pytest.raises(scratch.TooMuch):
        scratch.empty(str(tmp_path), seconds=0)
    assert list(tmp_path.iterdir())
    scratch.empty(str(tmp_path))
    for number in range(20):
        (tmp_path / str(number)).touch()
    scratch.empty(str(tmp_path), seconds=0)  # a few are removed in any case
    assert list(tmp_path.iterdir()) == []


def test_links_are_removed_and_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "deep" / "keep").write_text("x")
    inside = tmp_path / "inside"
    (inside / "sub").mkdir(parents=True)
    (inside / "sub" / "link").symlink_to(outside)
    (inside / "link").symlink_to(outside / "deep")
    os.mkfifo(inside / "fifo")
    scratch.remove(str(inside))
    scratch.remove(str(inside))
    assert not inside.exists()
    assert (outside / "deep" / "keep").read_text() == "x"


def _over_limit(path: str, max_bytes: int, max_entries: int) -> bool:
    return any(scratch.measure(path, max_bytes, max_entries))


def test_what_vanishes_hides_nothing_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is made and deleted all the time must not stop the count of its neighbours."""
    for name in range(20):
        (tmp_path / f"{name}").write_bytes(b"x" * 10_000)

    class Vanishing:
        def __init__(self, entry: os.DirEntry[str]) -> None:
            self.entry = entry

        def stat(self, *, follow_symlinks: bool) -> os.stat_result:
            if self.entry.name in ("3", "7"):
                raise FileNotFoundError(self.entry.name)
            return self.entry.stat(follow_symlinks=follow_symlinks)

        def __getattr__(self, name: str) -> object:
            return getattr(self.entry, name)

    scandir = os.scandir

    @contextlib.contextmanager
    def vanishing(path: str) -> Iterator[Iterator[Vanishing]]:
        with scandir(path) as entries:
            yield map(Vanishing, entries)

    monkeypatch.setattr(os, "scandir", vanishing)
    assert _over_limit(str(tmp_path), 17 * 10_000, 100)
    assert not _over_limit(str(tmp_path), 18 * 16_384, 20)


def test_measuring_takes_small_steps(tmp_path: Path) -> None:
    """A wide tree must not keep the supervisor from its other calls."""
    for name in range(500):
        (tmp_path / f"{name}").mkdir()
    assert len(list(scratch.measure(str(tmp_path), 2**40, 10**6))) > 500


def test_untouched_until_something_is_made(tmp_path: Path) -> None:
    scratch.mark(str(tmp_path))
    assert scratch.untouched(str(tmp_path))
    (tmp_path / "x").touch()
    (tmp_path / "x").unlink()
    assert not scratch.untouched(str(tmp_path))


def test_measuring_counts_bytes_and_entries(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "f").write_bytes(b"x" * 100_000)
    assert not _over_limit(str(tmp_path), 200_000, 2)
    assert _over_limit(str(tmp_path), 50_000, 2)
    assert _over_limit(str(tmp_path), 200_000, 1)
    assert not _over_limit(str(tmp_path / "missing"), 1, 1)
