"""RaggedCache against a plain list of tokens a row."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from agentic_gym.policies.kv_cache import RaggedCache

HEADS, SIZE = 2, 3


def write(cache: RaggedCache, starts: list[int], width: int, values: list[list[float]]):
    """Write ``width`` tokens a row from ``starts``; token t of row b is the constant ``values[b][t]``."""
    positions = torch.tensor(starts)[:, None] + torch.arange(width)
    mask = cache.aim(positions)
    states = torch.tensor(values)[:, None, :, None].expand(-1, HEADS, -1, SIZE)
    return (mask, *cache.update(states, -states, 0))


def contents(cache: RaggedCache) -> list[list[float]]:
    return cache.tensors[0][0][:, 0, :, 0].tolist()


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_every_row_holds_its_own_tokens(data):
    rows = data.draw(st.integers(1, 4))
    cache = RaggedCache(16)
    reference: list[list[float]] = [[] for _ in range(rows)]
    number = 0.0
    for _ in range(data.draw(st.integers(1, 4))):
        width = data.draw(st.integers(1, 3))
        real = [data.draw(st.integers(1, width)) for _ in reference]  # the others are padding
        values = []
        for _ in reference:
            values.append([number + t for t in range(width)])
            number += width
        mask, keys, negated = write(cache, [len(row) for row in reference], width, values)
        for b, row in enumerate(reference):
            for t in range(real[b]):
                row.append(values[b][t])
                visible = mask[b, 0, t].nonzero()[:, 0]
                assert keys[b, 1, visible, 2].tolist() == row
                assert (negated[b, 0, visible, 0] == -keys[b, 0, visible, 0]).all()
        if data.draw(st.booleans()):
            chosen = data.draw(st.lists(st.integers(0, len(reference) - 1), min_size=1, max_size=5))
            cache = cache.select(torch.tensor(chosen), data.draw(st.sampled_from([None, 16, 20])))
            reference = [list(reference[i]) for i in chosen]
            cache = cache.select(torch.arange(len(chosen)), 16)
    for held, row in zip(contents(cache), reference):
        assert held[: len(row)] == row


def test_a_selection_is_a_copy():
    cache = RaggedCache(4)
    write(cache, [0, 0], 2, [[1.0, 2.0], [3.0, 4.0]])
    copy = cache.select(torch.tensor([1, 1]))
    write(copy, [2, 2], 1, [[5.0], [6.0]])
    assert contents(copy) == [[3.0, 4.0, 5.0, 0.0], [3.0, 4.0, 6.0, 0.0]]
    assert contents(cache) == [[1.0, 2.0, 0.0, 0.0], [3.0, 4.0, 0.0, 0.0]]
    cache.store(torch.tensor([0]), copy, torch.tensor([1]))
    assert contents(cache) == [[3.0, 4.0, 6.0, 0.0], [3.0, 4.0, 0.0, 0.0]]


def test_only_columns_in_use_are_returned():
    cache = RaggedCache(100)
    _, keys, _ = write(cache, [0, 3], 2, [[1.0, 2.0], [3.0, 4.0]])
    assert keys.shape == (2, HEADS, 5, SIZE)
    assert cache.get_seq_length() == 5


def test_smaller_capacity_keeps_the_first_columns():
    cache = RaggedCache(6)
    write(cache, [0], 3, [[1.0, 2.0, 3.0]])
    assert contents(cache.select(torch.tensor([0]), 2)) == [[1.0, 2.0]]
