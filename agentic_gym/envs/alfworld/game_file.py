"""Reading a `game.tw-pddl`: the file format of ALFWorld's games.

A game file is one JSON object: `pddl_domain`, `grammar`, `pddl_problem`, `solvable`, `walkthrough`. Domain and grammar are the
same in every game of ALFWorld 0.4 (the task sentence inside the grammar apart); they are the rules that the fast engine
implements, so a file with other rules is refused instead of being played wrongly.
"""

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

__all__ = ["GameFileError", "bundled_rules", "grammar_texts", "read_game_file"]

_KEYS = ("pddl_domain", "grammar", "pddl_problem")
_TASK = re.compile(r'"rhs"\s*:\s*("Your task is to: (?:[^"\\]|\\.)*")')
_HELP = re.compile(r'"rhs"\s*:\s*("\\nAvailable commands:(?:[^"\\]|\\.)*")')
_BLANKS = re.compile(r"\s+")


class GameFileError(ValueError):
    """A game file that cannot be played; the message names the file and the fix."""


def read_game_file(
    source: str | Path | Mapping[str, Any], *, allow_unsolvable: bool = False
) -> tuple[str, dict[str, Any]]:
    """Return (name, content) of one game file; a mapping with the same keys is taken as it is.

    Raises:
        GameFileError: no such file, cut off, not a game, or known to be unsolvable.
    """
    if isinstance(source, Mapping):
        name, data = str(source.get("game", "a game given as a mapping")), dict(source)
    else:
        name, data = str(source), _load(Path(source))
    missing = [key for key in _KEYS if not isinstance(data.get(key), str)]
    if missing:
        raise GameFileError(
            f"{name}: not an ALFWorld game: {', '.join(missing)} missing. Expected a game.tw-pddl with {', '.join(_KEYS)}."
        )
    if data.get("solvable") is False and not allow_unsolvable:
        raise GameFileError(f"{name}: the file says that this game is not solvable; leave it out of the list of games.")
    return name, data


def _load(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise GameFileError(f"{path}: cannot be read ({error.strerror}). Give the path of a game.tw-pddl.") from error
    except UnicodeDecodeError as error:
        raise GameFileError(f"{path}: not a text file; an ALFWorld game is JSON in UTF-8.") from error
    except (json.JSONDecodeError, RecursionError) as error:
        raise GameFileError(
            f"{path}: not complete JSON ({error}). The file is cut off or foreign: copy it again."
        ) from error
    if not isinstance(data, dict):
        raise GameFileError(f"{path}: holds a JSON {type(data).__name__}, not the object of an ALFWorld game.")
    return data


@lru_cache(maxsize=1)
def bundled_rules() -> tuple[str, str]:
    """The domain (PDDL) and the grammar (with the task `UNKNOWN GOAL`) of ALFWorld 0.4.2, as its package ships them."""
    data = resources.files("agentic_gym.envs.alfworld") / "data"
    return (data / "alfred.pddl").read_text(encoding="utf-8"), (data / "alfred.twl2").read_text(encoding="utf-8")


@lru_cache(maxsize=64)
def _same_domain(domain: str) -> bool:
    def normal(text: str) -> str:
        return _BLANKS.sub("", re.sub(r";[^\n]*", "", text)).lower()

    ours, _ = bundled_rules()
    return domain == ours or normal(domain) == normal(ours)


@lru_cache(maxsize=64)
def _same_grammar(grammar: str) -> bool:
    """Whether the text differs in nothing but white space from ours; the task and the help are cut out before."""
    return _BLANKS.sub("", grammar) == _BLANKS.sub("", _without_texts(bundled_rules()[1]))


def _without_texts(grammar: str) -> str:
    return _HELP.sub("", _TASK.sub("", grammar, count=1), count=1)


def check_rules(name: str, domain: str, grammar: str) -> None:
    """Refuse a game whose rules are not those of ALFWorld 0.4. An empty domain stands for the usual one."""
    for part, same in (
        ("domain", not domain or _same_domain(domain)),
        ("grammar", _same_grammar(_without_texts(grammar))),
    ):
        if not same:
            raise GameFileError(
                f"{name}: its {part} is not that of ALFWorld 0.4, which the fast engine implements. Play it with "
                f'engine="textworld", or write the file anew with the {part} of alfworld 0.4.2.'
            )


def grammar_texts(name: str, grammar: str) -> tuple[str, str]:
    """The task sentence (without "Your task is to: " and the full stop) and the text of `help`."""
    task, help_text = _TASK.search(grammar), _HELP.search(grammar)
    if task is None or help_text is None:
        raise GameFileError(f"{name}: its grammar holds no task sentence or no help text; is the file complete?")
    sentence = _unescape(task.group(1)).removeprefix("Your task is to: ").removesuffix(".")
    return sentence, _unescape(help_text.group(1)).removeprefix("\n")


def _unescape(literal: str) -> str:
    # The engine turns a backslash and an n that survive JSON into a line break as well.
    return str(json.loads(literal, strict=False)).replace("\\n", "\n")
