"""Every Python snippet of the README and of the pages runs, in order, in a fresh folder."""

import doctest
import re
import shlex
import sys
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    return [body for kind, body in _BLOCK.findall(page.read_text(encoding="utf-8")) if kind == language]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_snippets_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # A module of its own, so that classes defined in a snippet can be pickled.
    module = types.ModuleType("snippet")
    monkeypatch.setitem(sys.modules, "snippet", module)
    for number, body in enumerate(blocks(page, "python"), 1):
        name = f"{page.name}, snippet {number}"
        if body.startswith(">>>"):
            test = doctest.DocTestParser().get_doctest(body, module.__dict__, name, str(page), 0)
            result = doctest.DocTestRunner().run(test, clear_globs=False)
            assert result.failed == 0, f"{name} prints something else"
            module.__dict__.update(test.globs)
        else:
            exec(compile(body, name, "exec"), module.__dict__)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_exist(page: Path) -> None:
    """Every ``agentic-gym`` command line in a page names a command, and its flags are accepted by the parser."""
    from agentic_gym.cli import COMMANDS

    for body in blocks(page, "bash"):
        for line in body.splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["agentic-gym"]:
                assert words[1] in COMMANDS, line


def test_the_yaml_of_the_readme_is_a_configuration(tmp_path: Path) -> None:
    from agentic_gym.configs import load_config
    from agentic_gym.trainers.config import TrainConfig

    (body,) = blocks(ROOT / "README.md", "yaml")
    (tmp_path / "config.yaml").write_text(body)
    config = load_config(TrainConfig, tmp_path / "config.yaml")
    assert config.algorithm.name == "eapo"
    assert config.env.kwargs == {"cache": True, "levels": [2, 3, 4, 5]}
