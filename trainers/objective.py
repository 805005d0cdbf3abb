"""The objective: log-probabilities of trained tokens only, and the clipped, masked policy loss on them.

The head runs on trained positions alone, in chunks, so memory does not grow with prompt or observation text times vocabulary.
The numpy reference is ``trainers.credit.losses``; a test holds the two equal.
"""

from __future__ import annotations

import torch
from torch.utils.checkpoint import checkpoint

from agentic_gym.policies.causal_lm import CausalLM
from agentic_gym.trainers.algorithm import LossVariant
from agentic_gym.trainers.batching import MicroBatch

__all__ = ["AGGREGATIONS", "divergence", "loss_weights", "policy_loss", "token_logprobs"]

AGGREGATIONS = ("token-mean", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm")
_CHUNK_ELEMENTS = 1 << 25
"""Logits computed at once; more are chunked and recomputed in the backward pass."""


def token_logprobs(
    lm: CausalLM, batch: MicroBatch, *, temperature: float = 1.0, states: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probability and entropy of each trained token, (N,) each, float32, nats. Gradients flow through the first only.

    ``states`` are the hidden states that predict them, (N, d), where the caller has them already.
    """
    if states is None:
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
    logprobs: torch.Tensor,
    old_logprobs: torch.Tensor,
    advantages: torch.Tensor,
    variant: LossVariant,
    rows: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Clipped loss of each token, and whether the clip was active; both (N,).

    r = exp(clamp(logp - logp_old, -20, 20)); L = max(-A r, -A clip(r, 1 - low, 1 + high)); where A < 0, L = min(L, -A c)
    (dual clip). With ``variant.ratio == "sequence"`` r is one number a row, exp of the mean over its tokens, and ``rows``
    (N,) says which row a token belongs to.
    """
    shift = logprobs - old_logprobs
    if variant.ratio == "sequence":
        if rows is None:
            raise ValueError("a sequence ratio needs rows: which row each token belongs to")
        sums = torch.zeros(int(rows.max()) + 1, dtype=shift.dtype, device=shift.device).index_add(0, rows, shift)
        shift = (sums / torch.bincount(rows).clamp_min(1))[rows]
    ratio = shift.clamp(-20.0, 20.0).exp()
    plain = -advantages * ratio
    upper = 1.0 + variant.clip_high
    bounded = ratio.clamp(1.0 - variant.clip_low, upper)
    if variant.keep_clipped_gradient:
        # Above the range: the clipped value, and the gradient of the log-probability as if the ratio were that value.
        bounded = torch.where(ratio > upper, upper * ratio / ratio.detach(), bounded)
    clipped = -advantages * bounded
    loss = torch.maximum(plain, clipped)
    if variant.dual_clip is not None:
        loss = torch.where(advantages < 0, torch.minimum(loss, -advantages * variant.dual_clip), loss)
    return loss, clipped.detach() > plain.detach()


def divergence(logprobs: torch.Tensor, reference: torch.Tensor, kind: str) -> torch.Tensor:
    """Estimate of KL(policy || reference) at each token, (N,); ``credit.kl`` is its numpy reference."""
    d = logprobs - reference
    if kind == "k1":
        return d
    k2 = 0.5 * d.square()
    if kind == "k2":
        return k2
    inverse = (-d).clamp(-20.0, 20.0)
    k3 = (inverse.exp() - inverse - 1.0).clamp(-10.0, 10.0)
    if kind == "k3":
        return k3
    if kind == "k3+":
        return k2 + (k3 - k2).detach()
    raise ValueError(f"kl_kind must be one of k1, k2, k3, k3+, got {kind!r}")


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
