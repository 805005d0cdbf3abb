"""Selecting the best scores: equal to a full sort, always."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from agentic_gym.tools.retrieval.ranking import top_positive


def by_sorting(scores, k):
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
    return [i for i in order if scores[i] > 0][:k]


@settings(deadline=None)
@given(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, -1.0]), min_size=1, max_size=50), st.integers(1, 60))
def test_small(scores, k):
    assert top_positive(np.array(scores, np.float32), k).tolist() == by_sorting(scores, k)


@settings(deadline=None)
@given(
    st.integers(1, 40_000),
    st.dictionaries(st.integers(0, 39_999), st.sampled_from([1.0, 2.0, 3.0]), max_size=30),
    st.integers(1, 12),
)
def test_blocks_with_ties(n, positives, k):
    scores = np.zeros(n, np.float32)
    for position, value in positives.items():
        if position < n:
            scores[position] = value
    assert top_positive(scores, k).tolist() == by_sorting(scores.tolist(), k)


def test_dense_scores():
    scores = np.random.default_rng(0).random(20_000).astype(np.float32)
    assert top_positive(scores, 7).tolist() == by_sorting(scores.tolist(), 7)
