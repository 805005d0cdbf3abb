"""Every snippet of the README and of the pages runs, in order, in a fresh folder.

- ``python`` blocks run in one module a page; one that begins with ``>>>`` is a doctest; one whose first line is ``# name.py`` is
  written to that file instead.
- ``yaml`` blocks whose first line is ``# name.yaml`` are written to that file.
- ``bash`` blocks are run on the pages of ``IN_A_SHELL``: by bash, or in this process where they are nothing but ``agentic-gym``
  lines (torch is then imported once). Elsewhere, as ``sh`` blocks everywhere (which need a network, a server or hours), their
  ``agentic-gym`` lines go through the command's own parser.
- A ``text`` block right after a ``bash`` block that was run holds lines of its output, in order.
"""

from __future__ import annotations

import contextlib
import doctest
import functools
import importlib
import io
import os
import re
import shlex
import signal
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
IN_A_SHELL = {"cli.md", "environments.md", "training.md"}
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# ([\w.]+\.(?:py|yaml))\b")


def blocks(page: Path, *languages: str) -> list[str]:
    return [body for kind, body in _BLOCK.findall(page.read_text(encoding="utf-8")) if kind in languages]


class PageRun:
    """Carries out the blocks of one page in a folder."""

    def __init__(self, page: Path, folder: Path, shell: bool) -> None:
        self.page, self.folder, self.shell = page, folder, shell
        # A module of its own, so that classes defined in a snippet can be pickled.
        self.module = types.ModuleType("snippet")
        self.output = ""

    def run(self) -> None:
        last = ""
        for number, (kind, body) in enumerate(_BLOCK.findall(self.page.read_text(encoding="utf-8")), 1):
            name = f"{self.page.name}, block {number}"
            if file := _FILE.match(body):
                (self.folder / file[1]).write_text(body, encoding="utf-8")
            elif kind == "python":
                self.python(body, name)
            elif kind == "bash" and self.shell:
                self.bash(body, name)
            elif kind == "text" and last == "bash" and self.shell:
                self.said(body, name)
            last = kind

    def python(self, body: str, name: str) -> None:
        if body.startswith(">>>"):
            test = doctest.DocTestParser().get_doctest(body, self.module.__dict__, name, str(self.page), 0)
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
            result = runner.run(test, clear_globs=False)
            assert result.failed == 0, f"{name} prints something else"
            self.module.__dict__.update(test.globs)
        else:
            exec(compile(body, name, "exec"), self.module.__dict__)

    def bash(self, body: str, name: str) -> None:
        if (commands := plain_commands(body)) is not None:
            self.output = "".join(in_process(words, name) for words in commands)
            return
        process = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", body], cwd=self.folder, env=self.environment(), start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        try:
            self.output, _ = process.communicate(timeout=300)
        finally:
            with contextlib.suppress(ProcessLookupError):  # what a failed block left behind
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        assert process.returncode == 0, f"{name} ended with {process.returncode}:\n{self.output}"

    def environment(self) -> dict[str, str]:
        """As after an installation: the command is on the path, the present folder is not on Python's."""
        bin_folder = self.folder / ".bin"
        if not bin_folder.exists():
            bin_folder.mkdir()
            command = bin_folder / "agentic-gym"
            command.write_text(
                f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
                "from agentic_gym.cli import main\nsys.exit(main())\n"
            )
            command.chmod(0o755)
            (bin_folder / "python").symlink_to(sys.executable)
        variables = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        return {**variables, "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}

    def said(self, body: str, name: str) -> None:
        rest = [line.strip() for line in self.output.splitlines()]
        for line in filter(None, map(str.strip, body.splitlines())):
            assert line in rest, f"{name}: {line!r} is not in\n{self.output}"
            rest = rest[rest.index(line) + 1 :]


def plain_commands(body: str) -> list[list[str]] | None:
    """The words of each line, where every line is one ``agentic-gym`` command and nothing else."""
    lines = [line for line in body.replace("\\\n", " ").splitlines() if line.strip()]
    commands = [shlex.split(line, comments=True) for line in lines]
    if all(words[:1] == ["agentic-gym"] and not set("|&;<>$") & set("".join(words)) for words in commands):
        return [words[1:] for words in commands]
    return None


def in_process(words: list[str], name: str) -> str:
    from agentic_gym.cli import main

    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        status = main(words)
    assert status == 0, f"{name}: {words} ended with {status}:\n{output.getvalue()}"
    return output.getvalue()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_snippets_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("NO_COLOR", "1")
    run = PageRun(page, tmp_path, page.name in IN_A_SHELL)
    monkeypatch.setitem(sys.modules, "snippet", run.module)
    run.run()


# Commands.


class Reached(BaseException):
    """The command's parser has accepted its flags; what it would do is not done. Not an Exception: ``main`` reports those."""


def reach(*_: Any, **__: Any) -> Any:
    raise Reached


STARTS: dict[str, str] = {
    "train": "agentic_gym.trainers.launch.launch",
    "bench quickstart": "agentic_gym.benchmarks.experiments.quickstart.run_quickstart",
    "bench arithmetic": "agentic_gym.commands.suite.run",
    "bench math": "agentic_gym.commands.suite.run",
    "serve search": "agentic_gym.tools.retrieval.server.serve",
    "serve webshop": "agentic_gym.envs.webshop.site.load_catalogue",
    "credit": "agentic_gym.wrappers.record_episodes.RecordEpisodes.load",
    "data alfworld": "agentic_gym.envs.alfworld.data_command.prepare_data",
    "data tasks": "agentic_gym.commands.data._tasks",
    "data webshop": "agentic_gym.commands.data._webshop",
}
"""What the commands that read their flags themselves do first; the others have a function ``run``."""


def command_lines(page: Path) -> Iterator[list[str]]:
    """The words of every ``agentic-gym`` command of a page, pipes and lists of commands taken apart."""
    for body in blocks(page, "bash", "sh"):
        for line in body.replace("\\\n", " ").splitlines():
            lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
            lexer.whitespace_split = True
            words: list[str] = []
            for word in [*lexer, ";"]:
                if not set(word) <= set("|&;<>"):
                    words.append(word)
                    continue
                if ">" in word or "<" in word:
                    continue
                while words and re.fullmatch(r"\w+=.*", words[0]):
                    words.pop(0)  # a variable for this command
                if words[:1] == ["agentic-gym"]:
                    yield words[1:]
                words = []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_are_accepted(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every ``agentic-gym`` command line names a command and flags that the command's parser takes."""
    if page.name in IN_A_SHELL:
        pytest.skip("its bash blocks are run; its sh blocks are read below")
    check_commands(page, tmp_path, monkeypatch, command_lines(page))


@pytest.mark.parametrize("page", [page for page in PAGES if page.name in IN_A_SHELL], ids=lambda page: page.name)
def test_commands_that_are_not_run_are_accepted(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only = tmp_path / "only.md"
    only.write_text("\n".join(f"```sh\n{body}```" for body in blocks(page, "sh")), encoding="utf-8")
    check_commands(page, tmp_path, monkeypatch, command_lines(only))


def check_commands(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commands: Iterator[list[str]]
) -> None:
    from agentic_gym.cli import COMMANDS, main

    monkeypatch.chdir(tmp_path)
    for body in [*blocks(ROOT / "README.md", "yaml"), *blocks(page, "yaml")]:
        if file := _FILE.match(body):
            (tmp_path / file[1]).write_text(body, encoding="utf-8")
    for words in commands:
        assert words[0] in COMMANDS, words
        start = STARTS.get(words[0]) or STARTS.get(" ".join(words[:2]))
        if start is None:
            module = importlib.import_module(COMMANDS[words[0]][0])
            monkeypatch.setattr(module, "run", functools.wraps(module.run)(reach))
        else:
            monkeypatch.setattr(start, reach)
        with pytest.raises(Reached):
            assert main(words) == 0, words
            raise AssertionError(f"{words} did nothing")


# What is not a snippet.


def test_the_yaml_of_the_readme_is_a_configuration(tmp_path: Path) -> None:
    from agentic_gym.configs import load_config
    from agentic_gym.trainers.config import TrainConfig

    (body,) = blocks(ROOT / "README.md", "yaml")
    (tmp_path / "config.yaml").write_text(body)
    config = load_config(TrainConfig, tmp_path / "config.yaml")
    assert config.algorithm.name == "eapo"
    assert config.env.kwargs == {"cache": True, "levels": [2, 3, 4, 5]}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]*)(?:#[^)\s]*)?\)", text):
        if target and "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
    here = {anchor(heading) for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}
    for name in re.findall(r"\]\(#([^)\s]+)\)", text):
        assert name in here, f"{page.name} has no heading {name}"


def test_the_readme_names_every_page() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(f"](docs/{page.name})" in readme for page in PAGES[1:])


def anchor(heading: str) -> str:
    """As GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
