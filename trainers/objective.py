"""The objective: log-probabilities of trained tokens only, and the clipped, masked policy loss on them.

The head runs on trained positions alone, in chunks, so memory does not grow with prompt or observation text times vocabulary.
The numpy reference is ``trainers.credit.losses``; a test holds the two equal.
"""

from __future__ import annotations

import torch
from torch.utils.checkpoint import checkpoint

from agentic_gym.policies.causal_lm import CausalLM
from agentic_gym.trainers.algorithms import LossVariant
from agentic_gym.trainers.batching import MicroBatch

__all__ = ["AGGREGATIONS", "loss_weights", "policy_loss", "token_logprobs"]

AGGREGATIONS = ("token-mean", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm")
_CHUNK_ELEMENTS = 1 << 25
"""Logits computed at once; more are chunked and recomputed in the backward pass."""


def token_logprobs(lm: CausalLM, batch: MicroBatch, *, temperature: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probability and entropy of each trained token, (N,) each, float32, nats. Gradients flow through the first only."""
    states = lm.hidden(batch.token_ids)[batch.index]
    vocabulary = lm.model.config.get_text_config().vocab_size
    size = max(1, _CHUNK_ELEMENTS // vocabulary)

    def head(chunk: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        logprobs = torch.log_softmax(lm.logits(chunk).float() / temperature, dim=-1)
        with torch.no_grad():
            entropy = -(logprobs.exp() * logprobs).sum(-1)
        return logprobs.gather(1, targets[:, None])[:, 0], entropy

    if len(states) <= size:
        return head(states, batch.targets)
    parts = [
        checkpoint(head, chunk, targets, use_reentrant=False)
        for chunk, targets in zip(torch.split(states, size), torch.split(batch.targets, size))
    ]
    return torch.cat([p[0] for p in parts]), torch.cat([p[1] for p in parts])


def policy_loss(
    logprobs: torch.Tensor, old_logprobs: torch.Tensor, advantages: torch.Tensor, variant: LossVariant
) -> tuple[torch.Tensor, torch.Tensor]:
    """Clipped loss of each token, and whether the clip was active; both (N,).

    r = exp(clamp(logp - logp_old, -20, 20)); L = max(-A r, -A clip(r, 1 - low, 1 + high)); where A < 0, L = min(L, -A c)
    (dual clip).
    """
    ratio = (logprobs - old_logprobs).clamp(-20.0, 20.0).exp()
    plain = -advantages * ratio
    clipped = -advantages * ratio.clamp(1.0 - variant.clip_low, 1.0 + variant.clip_high)
    loss = torch.maximum(plain, clipped)
    if variant.dual_clip is not None:
        loss = torch.where(advantages < 0, torch.minimum(loss, -advantages * variant.dual_clip), loss)
    return loss, clipped.detach() > plain.detach()


def loss_weights(counts: torch.Tensor, aggregation: str, *, length: int | None = None) -> torch.Tensor:
    """The weight of each token of a row, by the row, so that a weighted sum over a mini-batch is the aggregate.

    Args:
        counts: trained tokens of each row of the *mini-batch*, (B,).
        aggregation: one of ``AGGREGATIONS``.
        length: the constant that "seq-mean-token-sum-norm" divides by; None takes the longest row.

    Returns: (B,).
    """
    counts = counts.float()
    rows = max(1, int((counts > 0).sum()))
    if aggregation == "token-mean":
        return torch.full_like(counts, 1.0 / max(float(counts.sum()), 1.0))
    if aggregation == "seq-mean-token-sum":
        return torch.full_like(counts, 1.0 / rows)
    if aggregation == "seq-mean-token-mean":
        return 1.0 / counts.clamp_min(1.0) / rows
    if aggregation == "seq-mean-token-sum-norm":
        return torch.full_like(counts, 1.0 / rows / max(length or int(counts.max()), 1))
    raise ValueError(f"aggregation must be one of {', '.join(AGGREGATIONS)}, got {aggregation!r}")
