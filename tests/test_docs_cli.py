"""docs/cli.md against the commands."""

import re
from pathlib import Path

from agentic_gym.cli import COMMANDS, main
from agentic_gym.commands.bench import BENCHMARKS
from agentic_gym.commands.data import KINDS
from tests.doc_tables import table
from tests.test_docs import blocks

PAGE = Path(__file__).resolve().parents[1] / "docs" / "cli.md"


def test_every_verb_has_a_row_and_a_section_with_an_example() -> None:
    rows = table(PAGE, "The command line")
    assert [re.sub(r"\W", "", row["verb"].split("]")[0]) for row in rows] == list(COMMANDS)
    assert re.findall(r"^## (\w+)$", PAGE.read_text(), re.MULTILINE) == list(COMMANDS)
    run = "\n".join(blocks(PAGE, "bash"))
    assert all(f"agentic-gym {verb}" in run for verb in COMMANDS)


def test_purposes_are_those_of_the_command() -> None:
    """The first words of each row are the command's own summary, or the other way round."""
    for row, (_, summary) in zip(table(PAGE, "The command line"), COMMANDS.values(), strict=True):
        assert row["purpose"].split()[:2] == summary.split()[:2]


def test_exit_statuses() -> None:
    """Those that ``main`` says it returns."""
    told = {int(number) for number in re.findall(r"\b(\d+) ", main.__doc__ or "")}
    assert told == {int(row["exit status"]) for row in table(PAGE, "The command line", 1)}


def test_names_of_benchmarks_and_data() -> None:
    assert [row["name"] for row in table(PAGE, "bench")] == list(BENCHMARKS)
    assert sorted(row["kind"] for row in table(PAGE, "data")) == sorted(KINDS)


def test_the_doctor_reports_every_extra() -> None:
    from agentic_gym.commands.doctor import _EXTRAS

    text = (PAGE.parents[1] / "pyproject.toml").read_text().split("[project.optional-dependencies]\n")[1].split("\n\n")[0]
    extras = set(re.findall(r"^(\w+) = \[", text, re.MULTILINE)) - {"all", "dev"}
    assert {name for name, _, _ in _EXTRAS} == extras
