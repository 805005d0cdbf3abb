"""What a wheel holds: the package, all of it, as real files, and nothing beside it."""

import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("wrappers", "policies", "trainers", "benchmarks")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    pytest.importorskip("hatchling")
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (path,) = out.glob("*.whl")
    return zipfile.ZipFile(path)


def test_nothing_but_the_package(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"agentic_gym"}


def test_every_module_is_there_as_a_real_file(wheel: zipfile.ZipFile) -> None:
    for info in wheel.infolist():
        assert not stat.S_ISLNK(info.external_attr >> 16), info.filename
    names = set(wheel.namelist())
    expected = {
        f"agentic_gym/{path.relative_to(base)}"
        for base, folder in [(ROOT / "agentic_gym", ROOT / "agentic_gym"), *[(ROOT, ROOT / name) for name in FOLDERS]]
        for path in folder.rglob("*.py")
    }
    assert expected <= names
    assert len(expected) > 30
    assert "agentic_gym/py.typed" in names


def test_no_rubbish(wheel: zipfile.ZipFile) -> None:
    assert not [name for name in wheel.namelist() if "__pycache__" in name or name.endswith((".pyc", ".log", ".jsonl"))]


def test_the_command_and_the_licence(wheel: zipfile.ZipFile) -> None:
    (entry,) = [name for name in wheel.namelist() if name.endswith("entry_points.txt")]
    assert "agentic-gym = agentic_gym.cli:main" in wheel.read(entry).decode()
    assert any(name.endswith("licenses/LICENSE") for name in wheel.namelist())


def test_an_unpacked_wheel_works_alone(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    wheel.extractall(tmp_path)
    script = "import agentic_gym.wrappers, agentic_gym.policies, agentic_gym.trainers.credit; print(agentic_gym.__file__)"
    command, environment = [sys.executable, "-c", script], {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(str(tmp_path))


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_folders_are_one_package_by_relative_links(folder: str) -> None:
    link = ROOT / "agentic_gym" / folder
    assert link.is_symlink()
    assert link.readlink() == Path("..") / folder
