"""A key-value cache whose rows have lengths of their own.

Row b holds its tokens in columns 0 .. length_b - 1, without padding before or between them. A forward pass writes each new
token at its row's own position; columns past a row's end may hold rubbish and are never attended to, because a query sees
only columns up to its own position.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import Cache

__all__ = ["RaggedCache"]


class RaggedCache(Cache):  # type: ignore[misc]  # transformers is untyped here
    """Keys and values of B rows with room for ``capacity`` tokens each.

    Layers appear when the model first writes to them: (B, heads, capacity, head size).
    """

    def __init__(self, capacity: int) -> None:
        super().__init__(layers=[])
        self.capacity = capacity
        self.tensors: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._rows = self._columns = torch.empty(0, dtype=torch.long)
        self._width = 0

    def aim(self, positions: torch.Tensor) -> torch.Tensor:
        """Say where the next tokens go: ``positions`` (B, Q). Returns their attention mask (B, 1, Q, width), True = visible."""
        self._columns = positions
        self._rows = torch.arange(len(positions), device=positions.device)[:, None]
        self._width = int(positions.max()) + 1
        columns = torch.arange(self._width, device=positions.device)
        return columns[None, None, None, :] <= positions[:, None, :, None]

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Called by the model: store (B, heads, Q, size) and return all columns in use."""
        if layer_idx == len(self.tensors):
            shape = (*key_states.shape[:2], self.capacity, key_states.shape[3])
            value_shape = (*value_states.shape[:2], self.capacity, value_states.shape[3])
            self.tensors.append((key_states.new_zeros(shape), value_states.new_zeros(value_shape)))
        keys, values = self.tensors[layer_idx]
        # Advanced indices on both sides of a slice put the indexed axes first: (B, Q, heads, size).
        keys[self._rows, :, self._columns] = key_states.transpose(1, 2)
        values[self._rows, :, self._columns] = value_states.transpose(1, 2)
        return keys[:, :, : self._width], values[:, :, : self._width]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Columns in use."""
        return self._width

    def select(self, rows: torch.Tensor, capacity: int | None = None) -> RaggedCache:
        """A new cache with copies of ``rows`` (repeats allowed) and, if asked, another capacity."""
        new = RaggedCache(self.capacity if capacity is None else capacity)
        kept = min(self.capacity, new.capacity)
        for keys, values in self.tensors:
            if new.capacity == self.capacity:
                new.tensors.append((keys.index_select(0, rows), values.index_select(0, rows)))
                continue
            pair = []
            for tensor in (keys, values):
                grown = tensor.new_zeros((len(rows), tensor.shape[1], new.capacity, tensor.shape[3]))
                grown[:, :, :kept] = tensor[:, :, :kept].index_select(0, rows)
                pair.append(grown)
            new.tensors.append((pair[0], pair[1]))
        return new

    def store(self, rows: torch.Tensor, other: RaggedCache, other_rows: torch.Tensor) -> None:
        """Copy ``other_rows`` of ``other`` (same capacity) over ``rows``."""
        for (keys, values), (new_keys, new_values) in zip(self.tensors, other.tensors):
            keys[rows] = new_keys[other_rows]
            values[rows] = new_values[other_rows]
