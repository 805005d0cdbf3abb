import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_gym.trainers.credit import arpo, grpo


def test_entropy_sums_over_the_first_tokens_and_candidates():
    rng = np.random.default_rng(0)
    table = np.log(rng.dirichlet(np.ones(10), size=30))
    p = np.exp(table[:20])
    assert arpo.segment_entropy(table, 500) == pytest.approx(-(p * np.log(p)).sum() / math.log(500))
    assert arpo.segment_entropy(table[:3], 500) < arpo.segment_entropy(table, 500)
    assert arpo.segment_entropy([[0.0, -np.inf]], 10) == 0.0
    assert arpo.segment_entropy([], 10) == 0.0


@pytest.mark.parametrize("table", [[0.1, 0.2], [[0.5]], [[math.nan]]])
def test_entropy_refuses_what_is_no_table_of_logprobs(table):
    with pytest.raises(ValueError, match="top_logprobs"):
        arpo.segment_entropy(table, 10)
    with pytest.raises(ValueError, match="vocabulary"):
        arpo.segment_entropy([[-1.0]], 1)


@pytest.mark.parametrize(
    ("now", "initial", "expected"),
    [(1.0, 1.0, 0.5), (2.0, 1.0, 0.7), (0.0, 1.0, 0.3), (99.0, 0.0, 1.0), (0.0, 99.0, 0.0)],
)
def test_branch_probability(now, initial, expected):
    assert arpo.branch_probability(now, initial) == pytest.approx(expected)


def test_branch_probability_is_the_rate_of_the_sampled_rule():
    u = np.random.default_rng(0).random(200_000)
    for jump in (-4.0, -0.7, 0.0, 1.3, 4.0):
        rule = np.clip(u - 0.2 * jump, 0, 1) <= 0.5
        assert rule.mean() == pytest.approx(arpo.branch_probability(1.0 + jump, 1.0), abs=5e-3)


def test_branch_probability_refuses_nan():
    with pytest.raises(ValueError, match="entropy_now must be finite, got nan"):
        arpo.branch_probability(math.nan, 0.0)


@st.composite
def trees(draw):
    parents, shared, lengths = [], [], []
    for row in range(draw(st.integers(1, 8))):
        parent = draw(st.one_of(st.none(), st.integers(0, row - 1))) if row else None
        prefix = draw(st.integers(0, lengths[parent])) if parent is not None else 0
        parents.append(parent)
        shared.append(prefix)
        lengths.append(prefix + draw(st.integers(0, 5)))
    return parents, shared, lengths


@given(trees())
def test_tree_names_are_shared_exactly_on_the_copied_prefix(tree):
    parents, shared, lengths = tree
    rows = arpo.prefix_nodes(parents, shared, lengths)
    assert [row.size for row in rows] == lengths
    fresh = [set(row[k:].tolist()) for row, k in zip(rows, shared)]
    assert sum(map(len, fresh)) == len(set().union(*fresh))
    for row, parent, k in zip(rows, parents, shared):
        assert len(set(row.tolist())) == row.size
        if parent is not None:
            assert row[:k].tolist() == rows[parent][:k].tolist()


@given(trees(), st.data())
def test_hard_attribution_is_the_mean_over_the_rows_that_share_a_token(tree, data):
    parents, shared, lengths = tree
    nodes = arpo.prefix_nodes(parents, shared, lengths)
    advantages = np.array(data.draw(st.lists(st.floats(-5, 5), min_size=len(nodes), max_size=len(nodes))))
    hard = arpo.hard_attribution(advantages, nodes)
    owners = {n: [i for i, row in enumerate(nodes) if n in row.tolist()] for row in nodes for n in row.tolist()}
    for row, values in zip(nodes, hard):
        assert values == pytest.approx([advantages[owners[n]].mean() for n in row.tolist()])
    # Soft attribution, each token once per descendant, carries the same total.
    assert sum(v.sum() for v in hard) == pytest.approx(sum(a * n for a, n in zip(advantages, lengths)), abs=1e-9)


def test_hard_attribution_example():
    advantages = grpo.group_advantages([1, 0, 0, 1])
    nodes = arpo.prefix_nodes([None, None, 0, 1], shared=[0, 0, 2, 1], lengths=[3, 2, 3, 2])
    hard = arpo.hard_attribution(advantages, nodes)
    assert hard[0] == pytest.approx([0.0, 0.0, 0.8660], abs=1e-4)
    assert hard[3] == pytest.approx([0.0, 0.8660], abs=1e-4)
    assert arpo.hard_attribution([], []) == []


def test_impossible_trees_are_refused():
    with pytest.raises(ValueError, match="row 0 must have a parent before it, got 0"):
        arpo.prefix_nodes([0], [0], [3])
    with pytest.raises(ValueError, match="cannot share 4 with its parent 0"):
        arpo.prefix_nodes([None, 0], [0, 4], [3, 5])
    with pytest.raises(ValueError, match="cannot share 2 with its parent None"):
        arpo.prefix_nodes([None], [2], [3])
    with pytest.raises(ValueError, match="nodes must name the tokens of 2 rows, got 1"):
        arpo.hard_attribution([1, 2], [[0]])
