"""Batches: every row once, within the budget, and every index at its token."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from agentic_gym.trainers.batching import micro_batches, mini_batches, padding_share
from tests.trainers.rows import random_rows

CPU = torch.device("cpu")


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 20), st.integers(0, 99), st.integers(1, 200))
def test_micro_batches_hold_every_token_once(n, seed, budget):
    rows = random_rows(n, seed=seed)
    batches = list(micro_batches(rows, budget, CPU))
    assert sorted(i for batch in batches for i in batch.source.tolist()) == list(range(n))
    for batch in batches:
        assert batch.n_rows == len(batch.source) == len(batch.token_ids)
        assert batch.token_ids.numel() <= budget or batch.n_rows == 1
        for place, index in enumerate(batch.source):
            row = rows[index]
            assert batch.token_ids[place, : len(row.token_ids)].tolist() == row.token_ids.tolist()
            mine = batch.index[0] == place
            assert (batch.rows == batch.index[0]).all()
            predicted = batch.index[1][mine].numpy() + 1
            assert predicted.tolist() == np.flatnonzero(row.loss_mask[1:]).__add__(1).tolist()
            assert batch.targets[mine].tolist() == row.token_ids[predicted].tolist()
            np.testing.assert_allclose(batch.old_logprobs[mine], row.old_logprobs[predicted], rtol=1e-6)
            np.testing.assert_allclose(batch.advantages[mine], row.advantages[predicted], rtol=1e-6)
    padded = sum(batch.token_ids.numel() for batch in batches)
    assert padding_share(rows, budget) == pytest.approx(1 - sum(len(r.token_ids) for r in rows) / padded)


def test_sorting_leaves_little_padding():
    rows = random_rows(200, longest=60)
    assert padding_share(rows, 1000) < 0.15 < padding_share(rows, 10**9)
    assert padding_share(rows, 1) == 0.0
    assert padding_share([], 1000) == 0.0


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.integers(1, 8), st.integers(0, 9))
def test_mini_batches_are_a_fair_partition(n, parts, seed):
    cut = mini_batches(n, parts, np.random.default_rng(seed))
    assert sorted(np.concatenate(cut).tolist()) == list(range(n))
    sizes = [len(part) for part in cut]
    assert max(sizes) - min(sizes) <= 1
    assert len(cut) == min(n, parts)


def test_the_first_token_is_never_trained():
    [row] = random_rows(1)
    row.loss_mask[0] = True
    [batch] = micro_batches([row], 100, CPU)
    assert len(batch.targets) == int(row.loss_mask[1:].sum())
