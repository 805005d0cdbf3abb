"""Every path that a command takes, wrong in every way: one clear line that names it and says what to do, and status 2."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("torch")

from agentic_gym.cli import main
from agentic_gym.wrappers.record_episodes import append_episodes
from tests.commands.test_view import EPISODES

NOBODY = 65534

READ: dict[str, Callable[[str], list[str]]] = {
    "view .jsonl": lambda path: ["view", path],
    "credit .jsonl": lambda path: ["credit", path],
    "rollout --policy": lambda path: ["rollout", "MathTools", "--episodes", "1", "--policy", path],
    "rollout --policy .gguf": lambda path: ["rollout", "MathTools", "--episodes", "1", "--policy", path],
    "tasks .jsonl": lambda path: ["check", "MathTools", "--with", f"tasks={path}"],
    "tasks .json": lambda path: ["check", "MathTools", "--with", f"tasks={path}"],
    "tasks .jsonl.gz": lambda path: ["check", "MathTools", "--with", f"tasks={path}"],
    "tasks .parquet": lambda path: ["check", "MathTools", "--with", f"tasks={path}"],
    "questions .jsonl": lambda path: ["check", "SearchQA", "--with", f"tasks={path}", "retriever=http://localhost:9"],
    "corpus .jsonl": lambda path: ["check", "SearchQA", "--with", f"retriever={path}"],
    "serve search .jsonl": lambda path: ["serve", "search", "--corpus", path],
    "serve webshop": lambda path: ["serve", "webshop", "--data", path],
    "shop": lambda path: ["check", "WebShop", "--with", f"data={path}"],
    "games .tw-pddl": lambda path: ["check", "ALFWorld", "--with", f"games={path}"],
    "data alfworld": lambda path: ["data", "alfworld", "--from", path, "--out", f"{path}.out"],
    "train .yaml": lambda path: ["train", path],
    "train --model": lambda path: ["train", "--model", path, "--output", f"{path}.out"],
    "bench --config .yaml": lambda path: ["bench", "arithmetic", "--config", path, "--output", f"{path}.out", "--limit", "0"],
    "bench --policy": lambda path: ["bench", "arithmetic", "--policy", path, "--output", f"{path}.out"],
}
WRITE: dict[str, Callable[[str], list[str]]] = {
    "rollout --out": lambda path: ["rollout", "MathTools", "--episodes", "1", "--out", path],
    "play --record": lambda path: ["play", "MathTools", "--record", path],
    "credit --picture": lambda path: ["credit", str(Path(path).parents[1] / "episodes.jsonl"), "--picture", path],
    "bench --output": lambda path: ["bench", "arithmetic", "--limit", "1", "--output", path],
    "bench quickstart --output": lambda path: ["bench", "quickstart", "--short", "--output", path],
    "data --out": lambda path: ["data", "alfworld", "--generate", "1", "--out", path],
}


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that everybody may enter; pytest's own are closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="agentic-gym-paths-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@contextmanager
def unprivileged() -> Iterator[None]:
    """As root, be nobody for a while: root may read everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def refused(arguments: list[str], path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command that must refuse ``path``; returns what it says."""
    capsys.readouterr()
    status = main(arguments)
    said = capsys.readouterr().err
    assert status == 2, said
    assert str(path) in said
    assert len(said.splitlines()) == 1
    for raw in ("Errno", "Traceback", "unexpected;", "strerror"):
        assert raw not in said
    return said


def suffix_of(case: str) -> str:
    """The ending of the file that the case is about; empty where it is about a folder."""
    _, dot, ending = case.partition(" .")
    return dot.strip() + ending


@pytest.mark.parametrize("case", READ)
@pytest.mark.parametrize("fault", ["missing", "in a missing folder", "folder", "binary", "cut off", "closed"])
def test_what_cannot_be_read(case: str, fault: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = place / f"given{suffix_of(case)}"
    if fault == "in a missing folder":
        path = place / "nowhere" / path.name
    elif fault == "folder":
        path.mkdir()
    elif fault == "binary":
        path.write_bytes(bytes(range(256)) * 20)
    elif fault == "cut off":
        path.write_bytes(b'{"id": "a", "text": "b", "steps": [{"act')
    elif fault == "closed":
        refused(READ[case](f"{path}"), path, capsys)  # so that all is imported that root alone may be able to read
        path.write_bytes(b'{"a": 1}\n')
        path.chmod(0)
        with unprivileged():
            said = refused(READ[case](str(path)), path, capsys)
        whole_folders = ("rollout --policy", "train --model", "bench --policy", "serve webshop", "shop", "data alfworld")
        assert case in whole_folders or "may not be read" in said or "Permission denied" in said
        return
    refused(READ[case](str(path)), path, capsys)


MAY_NOT_BE_EMPTY = ["view .jsonl", "credit .jsonl", "tasks .jsonl", "tasks .json", "questions .jsonl", "corpus .jsonl"]


@pytest.mark.parametrize("case", MAY_NOT_BE_EMPTY)
def test_an_empty_file(case: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = place / f"given{suffix_of(case)}"
    path.write_bytes(b"")
    refused(READ[case](str(path)), path, capsys)


@pytest.mark.parametrize("case", WRITE)
@pytest.mark.parametrize("fault", ["under a file", "closed folder", "folder"])
def test_what_cannot_be_written(
    case: str, fault: str, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentic_gym.commands.play._play", lambda *_: pytest.fail("it began although nothing can be recorded"))
    append_episodes(place / "episodes.jsonl", EPISODES)
    taken, path = place / "taken", place / "taken" / "out"
    if fault == "under a file":
        taken.write_text("x\n")
        refused(WRITE[case](str(path)), taken, capsys)
    elif fault == "folder":
        if case not in ("rollout --out", "play --record", "credit --picture"):
            pytest.skip("takes a folder")
        path.mkdir(parents=True)
        refused(WRITE[case](str(path)), path, capsys)
    else:
        taken.write_text("x\n")
        refused(WRITE[case](str(path)), taken, capsys)  # imports
        taken.unlink()
        taken.mkdir(mode=0o555)
        with unprivileged():
            said = refused(WRITE[case](str(path)), path, capsys)
        assert "permission denied; change its permissions, or choose another path" in said
        assert not list(taken.iterdir())
