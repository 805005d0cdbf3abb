"""Hybrid search: several retrievers, one ranking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agentic_gym.tools.search import Passage, Retriever

__all__ = ["HybridRetriever"]


class HybridRetriever:
    """Reciprocal rank fusion: a passage scores the sum of ``1 / (constant + rank)`` over the rankings it appears in.

    Ranks start at 1. Needs no comparable scores, only ranks (Cormack, Clarke and Buettcher, SIGIR 2009).

    Args:
        retrievers: at least one; passages are matched by id.
        depth: how many passages of each ranking take part; never fewer than asked for.
        constant: the smoothing constant, above 0; the paper's 60.
    """

    def __init__(self, retrievers: Sequence[Retriever], *, depth: int = 50, constant: float = 60.0) -> None:
        if not retrievers:
            raise ValueError("HybridRetriever needs at least one retriever, got none")
        if depth < 1 or constant <= 0:
            raise ValueError(f"depth must be at least 1 and constant above 0, got {depth} and {constant}")
        self.retrievers = tuple(retrievers)
        self.depth = depth
        self.constant = constant

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """The at most ``k`` best passages of each query; of equal scores the first retriever's order decides."""
        rankings = [retriever.search(queries, max(k, self.depth)) for retriever in self.retrievers]
        return [self._fuse([ranking[i] for ranking in rankings], k) for i in range(len(queries))]

    def _fuse(self, rankings: Sequence[Sequence[Passage]], k: int) -> list[Passage]:
        scores: dict[str, float] = {}
        passages: dict[str, Passage] = {}
        for ranking in rankings:
            for rank, passage in enumerate(ranking, start=1):
                scores[passage.id] = scores.get(passage.id, 0.0) + 1.0 / (self.constant + rank)
                passages.setdefault(passage.id, passage)
        best = sorted(scores, key=scores.__getitem__, reverse=True)[:k]  # stable: first seen first
        return [replace(passages[passage_id], score=scores[passage_id]) for passage_id in best]
