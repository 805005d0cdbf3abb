r"""Tool-Star: an outcome reward with a format gate and a bonus for using both tools (arXiv 2505.16410).

Bad format or no answer: -1. Good format, wrong answer: 0. Good format, score > 0: the score (token F1), plus 0.1 when
both a search and a python call occur. The episode ends at
the request for a fourth call, which then is a format failure (a setting of the rollout).
"""

from __future__ import annotations

import re
from collections.abc import Collection

TOOLS = ("python", "search")

CALL_LIMIT = 3
"""Calls per episode, both tools together, in the original runs."""

_TAG = re.compile(r"<(/?)(think|python|search|result|answer)>")


def reward(
    score: float | None,
    *,
    well_formed: bool,
    tools_used: Collection[str] = (),
    bonus: float = 0.1,
    bad_format: float = -1.0,
) -> float:
    """Return the reward of one episode.

    Args:
        score: answer score in [0, 1]; None when no answer could be extracted.
        well_formed: see :func:`keeps_format`.
        tools_used: names of the tools called, executed or not ("python", "search").
        bonus: added when the score is positive and both tools were used. ARPO and AEPO use the same reward, EAPO has
            no bonus (``bonus=0``).
        bad_format: reward of a malformed or unanswered episode.

    Returns:
        ``bad_format``, 0, or a value in (0, 1 + bonus].

    >>> reward(1.0, well_formed=True, tools_used={"python", "search"})
    1.1
    """
    if not well_formed or score is None:
        return bad_format
    if not 0 <= score <= 1:
        raise ValueError(f"score must lie in [0, 1] or be None, got {score}")
    if score == 0:
        return 0.0
    return float(score) + (bonus if set(TOOLS) <= set(tools_used) else 0.0)


def keeps_format(response: str, *, boxed: bool = True) -> bool:
    r"""Return whether a response (model text and tool results, without the prompt) keeps the tag format.

    It must think at least once, close every block before the next opens, follow each python or search block by a result block,
    and hold exactly one answer, with ``\boxed{`` inside unless ``boxed=False``. Tags inside a tool result are text.

    >>> keeps_format(r"<think>2+2</think><python>print(4)</python><result>4</result><answer>\boxed{4}</answer>")
    True
    >>> keeps_format(r"<think>2+2</think><python>print(4)</python><answer>\boxed{4}</answer>")
    False
    """
    opened: str | None = None
    opened_at = 0
    awaits_result = False
    thoughts = answers = 0
    for tag in _TAG.finditer(response):
        closing, name = bool(tag[1]), tag[2]
        if opened == "result" and not (closing and name == "result"):
            continue
        if not closing:
            if opened is not None or awaits_result != (name == "result"):
                return False
            opened, opened_at = name, tag.end()
            continue
        if name != opened:
            return False
        opened = None
        awaits_result = name in TOOLS
        thoughts += name == "think"
        if name == "answer":
            answers += 1
            if boxed and r"\boxed{" not in response[opened_at : tag.start()]:
                return False
    return opened is None and not awaits_result and thoughts > 0 and answers == 1
