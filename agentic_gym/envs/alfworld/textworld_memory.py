"""Makes the real packages remember what they would compute again and again.

Four functions are replaced, each by itself with a memory. All of them depend on their arguments alone (`derive` also on facts
that never change during a game), so nothing that a player sees changes. A fifth copied deeply what nobody changes.
"""

from __future__ import annotations

import copy
import functools
from typing import Any

__all__ = ["remember_results"]

_TRANSLATIONS = 4
"""How many translated games are kept; one takes a few megabytes."""


@functools.lru_cache(maxsize=1)
def remember_results() -> None:
    """Replace the functions, once a process."""
    import fast_downward
    from textworld.envs.pddl import textgen
    from textworld.logic import Rule

    Rule.parse_conjunctive_query = functools.lru_cache(maxsize=10_000)(Rule.parse_conjunctive_query)
    textgen._parse_and_convert = _remembered_parse(textgen._parse_and_convert)
    textgen.ContextSensitiveGrammar.derive = _remembered_derive(textgen.ContextSensitiveGrammar.derive)
    textgen.copy_context = _copy_context
    fast_downward.pddl2sas = _remembered_translation(fast_downward.pddl2sas)


def _remembered_parse(parse: Any) -> Any:
    remembered = functools.lru_cache(maxsize=10_000)(lambda text, rule: parse(text, rule_name=rule))

    def parse_and_convert(text: str, rule_name: str, trace: bool = False) -> Any:
        # The caller writes into the symbols that it gets.
        return copy.deepcopy(remembered(text, rule_name))

    return parse_and_convert


def _remembered_derive(derive: Any) -> Any:
    """Command templates, which hold no `#rule#`, give the same command whenever their variables are the same."""

    def derive_once(self: Any, start: str, context: Any) -> str:
        if "#" in start:
            return str(derive(self, start, context))
        texts: dict[Any, str] = self.__dict__.setdefault("_texts", {})
        key = (start, *sorted((place.name, thing.name) for place, thing in context["mapping"].items()))
        if key not in texts:
            texts[key] = str(derive(self, start, context))
        return texts[key]

    return derive_once


def _copy_context(context: dict[str, Any]) -> dict[str, Any]:
    """A context of its own for a symbol; the values in it are never written to."""
    return {**context, "variables": dict(context["variables"]), "mapping": dict(context["mapping"])}


def _remembered_translation(translate: Any) -> Any:
    """One translation serves both purposes: the second one of the packages is for a planner that is not used here."""
    remembered = functools.lru_cache(maxsize=_TRANSLATIONS)(translate)

    def pddl2sas(domain: str, problem: str, verbose: bool = False, optimize: bool = False) -> Any:
        return remembered(domain, problem)

    return pddl2sas
