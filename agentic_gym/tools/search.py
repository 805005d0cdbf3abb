"""The search tool: what a retriever is, and how its passages become a result text.

- ``Passage``: one retrieved passage.
- ``Retriever``: the protocol every search engine satisfies: queries in, ranked passages out.
- ``SearchUnavailable``: the engine itself failed, which is not the same as finding nothing.
- ``SearchTool``: the tool that environments offer to an agent; ``SearchReply`` is what a call returns.
- ``format_passages``: the text the agent reads, within a token budget.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

__all__ = [
    "Passage",
    "Retriever",
    "SearchReply",
    "SearchTool",
    "SearchUnavailable",
    "approximate_tokens",
    "format_passages",
]

MAX_QUERY_CHARS = 1000
_MAX_TITLE_CHARS = 200
_MAX_CHARS_PER_TOKEN = 16  # only bounds the work on huge texts; words are cut by ``_token_ends``

_log = logging.getLogger(__name__)
_PIECE = re.compile(r"[a-zA-Z]+|\d|[^\sa-zA-Z\d]")


@dataclass(frozen=True, slots=True)
class Passage:
    """One passage of a corpus, with its score for a query (0 outside a result; higher is better)."""

    id: str
    title: str
    text: str
    score: float = 0.0


class SearchUnavailable(RuntimeError):
    """The search engine could not answer: network, server or index failure. Never raised for an empty result."""


@runtime_checkable
class Retriever(Protocol):
    """A search engine. Safe to call from several threads at once."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """The at most ``k`` best passages of each query, best first; an empty list where nothing matches.

        Raises SearchUnavailable when the engine itself fails.
        """
        ...


@dataclass(frozen=True)
class SearchReply:
    """The result of one search call."""

    status: Literal["ok", "unavailable"]
    text: str
    seconds: float
    passages: tuple[Passage, ...] = ()


class SearchTool:
    """Look up passages: ``<search>query</search>``. Thread-safe; one retriever may serve any number of tools.

    Args:
        retriever: the engine.
        top_k: passages per result, at least 1.
        max_tokens: budget of a result, in tokens as ``approximate_tokens`` counts them.

    Raises:
        ValueError: ``top_k`` or ``max_tokens`` below 1.

    Example:
        >>> class OnePassage:
        ...     def search(self, queries, k):
        ...         return [[Passage("1", "Loa", "Loa lies on the river Ebb.")] for _ in queries]
        >>> SearchTool(OnePassage()).run("Loa river").text
        'Doc 1(Title: Loa) Loa lies on the river Ebb.'
    """

    name = "search"
    description = "looks the query up in an encyclopedia and returns the passages that fit best."

    def __init__(self, retriever: Retriever, *, top_k: int = 3, max_tokens: int = 500) -> None:
        if not isinstance(retriever, Retriever):
            raise TypeError(f"retriever must have a method search(queries, k), got {retriever!r:.80}")
        for label, value in (("top_k", top_k), ("max_tokens", max_tokens)):
            if value < 1:
                raise ValueError(f"{label} must be at least 1, got {value}")
        self.retriever = retriever
        self.top_k = top_k
        self.max_tokens = max_tokens

    def run(self, argument: str) -> SearchReply:
        """Search for ``argument``. An engine that fails, in whatever way, makes the reply ``unavailable``."""
        start = time.perf_counter()
        query = " ".join(argument[:MAX_QUERY_CHARS].split())
        try:
            (passages,) = self.retriever.search([query], self.top_k)
            text = format_passages(passages, self.max_tokens)
        except Exception as error:
            # Nothing in a query may fail a retriever, so any exception is a fault of the infrastructure.
            _log.warning("search failed: %s: %s", type(error).__name__, error)
            return SearchReply("unavailable", f"{type(error).__name__}: {error}", time.perf_counter() - start)
        return SearchReply("ok", text, time.perf_counter() - start, tuple(passages))


def format_passages(passages: Sequence[Passage], max_tokens: int = 500) -> str:
    """Render passages as ``Doc 1(Title: ...) text``, one a line (Search-R1's format).

    A long passage cannot crowd out the others: each gets an equal share of the budget, and what short ones leave
    goes to the rest. A cut passage ends with " ...".
    """
    if not passages:
        return "No passage found."
    lines = [
        f"Doc {rank}(Title: {_one_line(passage.title, _MAX_TITLE_CHARS)}) "
        + _one_line(passage.text, max_tokens * _MAX_CHARS_PER_TOKEN)
        for rank, passage in enumerate(passages, start=1)
    ]
    lengths = [approximate_tokens(line) for line in lines]
    left = max_tokens
    for done, i in enumerate(sorted(range(len(lines)), key=lambda i: (lengths[i], i))):
        share = left // (len(lines) - done)
        if lengths[i] > share:
            lines[i] = _cut(lines[i], share)
        left -= min(lengths[i], share)
    return "\n".join(lines)


def approximate_tokens(text: str) -> int:
    """How many tokens a byte-pair tokenizer makes of ``text``, roughly and without one.

    A digit or a sign counts one, a word one for every four letters begun, a character beyond ASCII one.

    >>> approximate_tokens("In 1872 the lighthouse opened.")
    12
    """
    return sum(cost for _, cost in _token_costs(text))


def _token_costs(text: str) -> Iterator[tuple[int, int]]:
    """End position and cost of each word, digit or sign."""
    for piece in _PIECE.finditer(text):
        yield piece.end(), -(-(piece.end() - piece.start()) // 4)


def _cut(text: str, max_tokens: int) -> str:
    """The longest run of whole words from the start that fits together with the " ..." after it."""
    end, used = 0, approximate_tokens("...")
    for piece_end, cost in _token_costs(text):
        used += cost
        if used > max_tokens:
            break
        end = piece_end
    return f"{text[:end]} ..."


def _one_line(text: str, max_chars: int) -> str:
    return " ".join(text[:max_chars].split())
