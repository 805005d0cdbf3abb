import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_gym.envs.webshop.analyser import analyse
from agentic_gym.envs.webshop.search import SearchIndex, quantised_length

WORDS = ("red", "blue", "lamp", "desk", "sofa", "oak", "box", "cup")
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=30).map(" ".join), min_size=1, max_size=30)


def plain_bm25(texts: list[str], query: str) -> dict[int, float]:
    """The textbook formula in double precision."""
    documents = [Counter(analyse(text)) for text in texts]
    average = sum(document.total() for document in documents) / len(documents)
    scores: dict[int, float] = {}
    for term in analyse(query):
        matches = [number for number, document in enumerate(documents) if document[term]]
        idf = math.log(1 + (len(documents) - len(matches) + 0.5) / (len(matches) + 0.5))
        for number in matches:
            length = quantised_length(documents[number].total())
            norm = 0.9 * (1 - 0.4 + 0.4 * length / average)
            scores[number] = scores.get(number, 0.0) + idf - idf / (1 + documents[number][term] / norm)
    return scores


@given(TEXTS, st.lists(st.sampled_from((*WORDS, "unknown")), min_size=1, max_size=6).map(" ".join))
def test_scores_are_bm25_and_ties_go_by_asin(texts: list[str], query: str) -> None:
    asins = [f"A{(number * 7919) % 1000:03}" for number in range(len(texts))]
    found, scores = SearchIndex.build(asins, texts).top_scored(query, k=10)
    expected = plain_bm25(texts, query)
    assert len(found) == min(10, len(expected))
    assert np.allclose(scores, [expected[int(number)] for number in found], rtol=1e-5)
    best = sorted(expected.values(), reverse=True)[: len(found)]
    assert np.allclose(scores, best, rtol=1e-5)
    keys = [(-score, asins[number]) for number, score in zip(found, scores)]
    assert keys == sorted(keys)


def test_lengths_are_quantised_like_lucenes_byte() -> None:
    lengths = [quantised_length(n) for n in range(2000)]
    assert lengths[:40] == list(range(40))
    assert lengths == sorted(lengths)
    assert all(0 <= n - length < max(1, n / 8) for n, length in enumerate(lengths))
    assert len(set(lengths)) < 150


def test_a_large_index_selects_the_same_top() -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, size=int(rng.integers(1, 40)))) for _ in range(5000)]
    index = SearchIndex.build([f"{number:05}" for number in range(5000)], texts)
    everything = index.top("red oak oak desk", k=5000)  # more than the blocks of the shortcut
    assert index.top("red oak oak desk", k=50) == everything[:50]


def test_nothing_matches() -> None:
    index = SearchIndex.build(["A", "B"], ["red lamp", ""])
    assert index.top("the of") == index.top("sofa") == []
    assert SearchIndex.build([], []).top("red") == []


def test_saved_and_loaded(tmp_path: Path) -> None:
    index = SearchIndex.build(["B", "A"], ["red lamp", "red desk"])
    index.save(tmp_path)
    again = SearchIndex.load(tmp_path)
    assert index.top("red") == again.top("red") == [1, 0]


def test_the_recorded_searches(official_shop: Any, golden: Any) -> None:
    for row in golden("golden_search.jsonl.gz"):
        documents, scores = official_shop.index.top_scored(row["q"])
        assert [official_shop.products[number].asin for number in documents] == [asin for asin, _ in row["hits"]]
        # The recorded scores are rounded to four decimals, minus a step of 1e-6 for each tie.
        assert scores == pytest.approx([score for _, score in row["hits"]], abs=2e-4)
