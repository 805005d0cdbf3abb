"""A value head on the policy's backbone: V(s) at the start of each step, trained on the episode's final reward."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from agentic_gym.episodes import Episode
from agentic_gym.policies.causal_lm import CausalLM
from agentic_gym.trainers.batching import MicroBatch

__all__ = ["ValueHead", "step_starts"]

CLIP = 0.5
"""How far V may move from its old value before the loss stops paying for it."""


class ValueHead(torch.nn.Module):
    """One linear function of the last hidden state, 0 at first; its gradient also reaches the backbone."""

    def __init__(self, lm: CausalLM) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(lm.model.config.get_text_config().hidden_size, 1, device=lm.device)
        torch.nn.init.zeros_(self.linear.weight)
        torch.nn.init.zeros_(self.linear.bias)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """V of hidden states (N, d), shape (N,), float32."""
        values: torch.Tensor = self.linear(states.float())[:, 0]
        return values

    def loss(self, states: torch.Tensor, batch: MicroBatch) -> torch.Tensor:
        """The sum over step starts of 0.5 max((V - R)^2, (V clipped to its old value +- 0.5 - R)^2) (``credit.value``)."""
        if batch.old_values is None or batch.value_targets is None:
            raise ValueError("a value head needs rows with old_values and value_targets")
        starts = torch.isfinite(batch.old_values)
        values, old, target = self(states[starts]), batch.old_values[starts], batch.value_targets[starts]
        near = torch.minimum(torch.maximum(values, old - CLIP), old + CLIP)
        return 0.5 * torch.maximum((values - target).square(), (near - target).square()).sum()


def step_starts(episode: Episode) -> NDArray[np.int64]:
    """The first token that the model wrote in each step, shape (K,). Raises ValueError for a step without tokens."""
    first: dict[int, int] = {}
    for step, kind, start, _ in episode.trace.spans:
        if kind not in ("prompt", "observation"):
            first.setdefault(step, start)
    if len(first) != len(episode.steps):
        raise ValueError(f"a value head needs tokens in every step: {len(first)} of {len(episode.steps)} have some")
    return np.array([first[step] for step in range(len(episode.steps))], dtype=np.int64)
