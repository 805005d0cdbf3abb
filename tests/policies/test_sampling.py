"""Drawing tokens: the distribution, the nucleus, the corners."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from agentic_gym.policies.base import Sampling
from agentic_gym.policies.sampling import UniformStreams, draw_tokens

ROWS = st.lists(st.floats(-8, 8, width=32), min_size=1, max_size=12)


def assert_distributed(tokens: torch.Tensor, probabilities: np.ndarray) -> None:
    """Pearson's chi-square, five standard deviations."""
    counts = np.bincount(tokens.numpy(), minlength=len(probabilities))
    assert counts[probabilities == 0].sum() == 0
    live = probabilities > 0
    expected = probabilities[live] * len(tokens)
    statistic = float(((counts[live] - expected) ** 2 / expected).sum())
    degrees = int(live.sum()) - 1
    assert abs(statistic - degrees) < 5 * np.sqrt(2 * degrees) + 1


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("top_p", [1.0, 0.7])
def test_tokens_follow_the_distribution(temperature, top_p):
    rng = np.random.default_rng(3)
    logits = torch.tensor(rng.normal(0, 1.5, 20), dtype=torch.float32)
    n = 40_000
    draw = draw_tokens(logits.expand(n, -1), torch.from_numpy(rng.random(n)), temperature=temperature, top_p=top_p)
    p = torch.softmax(logits.double() / temperature, 0).numpy()
    order = np.argsort(-p)
    kept = order[: int(np.searchsorted(np.cumsum(p[order]), top_p) + 1)] if top_p < 1 else order
    truth = np.zeros_like(p)
    truth[kept] = p[kept] / p[kept].sum()
    assert_distributed(draw.tokens, truth)
    np.testing.assert_allclose(draw.logprobs.numpy(), np.log(truth[draw.tokens.numpy()]), atol=1e-4)


def test_streams_are_uniform_and_independent():
    streams = UniformStreams([(seed, turn) for seed in range(40) for turn in range(5)])
    rows = np.arange(200)
    table = np.stack([streams.column(step, rows).numpy() for step in range(130)])
    assert_distributed(torch.from_numpy((table.ravel() * 16).astype(np.int64)), np.full(16, 1 / 16))
    flat = np.corrcoef(table.T)[np.triu_indices(200, 1)]
    assert abs(flat).max() < 0.5
    assert len(np.unique(table)) == table.size


def test_a_row_has_its_own_numbers_whoever_else_is_there():
    seeds = [(5, 0), (6, 1), (7, 0)]
    together, alone = UniformStreams(seeds), UniformStreams(seeds[1:2])
    for step in range(200):
        rows = np.array([0, 1, 2]) if step < 64 else np.array([1])
        assert float(together.column(step, rows)[rows.tolist().index(1)]) == float(alone.column(step, np.array([0]))[0])


@settings(max_examples=100, deadline=None)
@given(ROWS, st.floats(0, 1, exclude_max=True), st.sampled_from([0.0, 1e-30, 1e-3, 0.5, 1.0, 3.0]), st.floats(0.01, 1))
def test_a_draw_is_always_a_possible_token(row, uniform, temperature, top_p):
    logits = torch.tensor([[*row, -torch.inf]], dtype=torch.float32)
    uniforms = torch.tensor([uniform], dtype=torch.float64)
    draw = draw_tokens(logits, uniforms, temperature=temperature, top_p=top_p, entropies=True)
    assert 0 <= int(draw.tokens) < len(row)
    assert -torch.inf < float(draw.logprobs) <= 1e-6
    assert -1e-6 <= float(draw.entropies) <= np.log(len(row)) + 1e-4
    if temperature <= 1e-30:
        assert row[int(draw.tokens)] == pytest.approx(max(row), abs=1e-5)  # nearly equal ones round to a tie


@pytest.mark.parametrize("uniform", [0.0, 1.0 - 2**-53])
def test_the_ends_of_the_interval_are_possible_tokens(uniform):
    logits = torch.full((1, 1000), -torch.inf)
    logits[0, 300:310] = 0.0
    draw = draw_tokens(logits, torch.tensor([uniform], dtype=torch.float64), temperature=1.0)
    assert 300 <= int(draw.tokens) < 310


def test_greedy_takes_the_most_likely_and_says_its_probability():
    logits = torch.tensor([[0.0, 2.0, 1.0]])
    draw = draw_tokens(logits, torch.tensor([0.0]), temperature=0.0, top_p=0.1, entropies=True)
    assert draw.tokens.tolist() == [1]
    assert float(draw.logprobs) == pytest.approx(float(logits.log_softmax(-1)[0, 1]))


def test_the_nucleus_is_the_smallest_set():
    logits = torch.tensor([[0.5, 0.3, 0.2]]).log()
    seen = {
        int(draw_tokens(logits, torch.tensor([u]), temperature=1.0, top_p=0.6).tokens)
        for u in np.linspace(0, 0.999, 50)
    }
    assert seen == {0, 1}


def test_half_precision_logits_are_computed_with_in_single():
    logits = torch.tensor([[1.0, 2.0, 3.0]])
    low = draw_tokens(logits.bfloat16(), torch.tensor([0.5]), temperature=1.0)
    assert low.logprobs.dtype == torch.float32
    assert float(low.logprobs) == float(draw_tokens(logits, torch.tensor([0.5]), temperature=1.0).logprobs)


@pytest.mark.parametrize(
    "wrong",
    [{"temperature": -1.0}, {"temperature": float("nan")}, {"temperature": float("inf")}, {"top_p": 0.0}, {"top_p": 1.1},
     {"max_tokens": 0}],
)  # fmt: skip
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(ValueError, match="must be"):
        Sampling(**wrong)
