"""Reciprocal rank fusion."""

import pytest

from agentic_gym.tools.retrieval import HybridRetriever
from agentic_gym.tools.search import Passage


class Ranking:
    def __init__(self, ids):
        self.ids = ids

    def search(self, queries, k):
        return [[Passage(i, "", q) for i in self.ids[:k]] for q in queries]


def test_scores_by_hand():
    fused = HybridRetriever([Ranking("abc"), Ranking("bd")], constant=60).search(["x", "y"], k=4)
    assert [[p.id for p in row] for row in fused] == [["b", "a", "d", "c"]] * 2
    assert fused[0][0].score == pytest.approx(1 / 62 + 1 / 61)
    assert fused[1][0].text == "y"


def test_deep_agreement_beats_a_single_first_place():
    rankings = [Ranking(["a", *"xyz", "m"]), Ranking(["b", *"uvw", "m"])]
    assert HybridRetriever(rankings).search(["q"], k=1)[0][0].id == "m"
    assert HybridRetriever(rankings, depth=1).search(["q"], k=1)[0][0].id == "a"


def test_no_retriever():
    with pytest.raises(ValueError, match="at least one"):
        HybridRetriever([])
