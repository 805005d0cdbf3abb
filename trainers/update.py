"""One policy update: credited episodes in, new weights and their figures out."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from agentic_gym.policies.causal_lm import CausalLM
from agentic_gym.policies.transformers import TransformersPolicy
from agentic_gym.trainers.algorithms import BatchCredit, LossVariant
from agentic_gym.trainers.batching import TrainRow, micro_batches, mini_batches, padding_share
from agentic_gym.trainers.config import OptimizerConfig
from agentic_gym.trainers.objective import loss_weights, policy_loss, token_logprobs

__all__ = ["TrainingError", "Updater", "clipped_step", "make_optimizer", "schedule_factor", "training_rows"]


class TrainingError(RuntimeError):
    """Training cannot go on; the message says why and what to do."""


class Updater:
    """The optimiser and the objective of a run.

    Args:
        lm: the policy's model.
        variant: the loss.
        config: optimiser settings.
        total_updates: optimiser steps of the whole run, for the schedule.
        temperature: of the sampling that the old log-probabilities come from.
    """

    def __init__(
        self,
        lm: CausalLM,
        variant: LossVariant,
        config: OptimizerConfig,
        *,
        total_updates: int,
        temperature: float = 1.0,
    ) -> None:
        self.lm, self.variant, self.config = lm, variant, config
        self.total_updates, self.temperature = total_updates, temperature
        self.optimizer = make_optimizer(lm.model, config)
        self.updates = 0
        self.reference = CausalLM(copy.deepcopy(lm.model).eval()) if variant.kl_coefficient > 0 else None

    def update(self, rows: Sequence[TrainRow], rng: np.random.Generator) -> dict[str, float]:
        """Train on ``rows``; returns the update's figures. Raises TrainingError on a loss that is not finite."""
        rows = [row for row in rows if row.loss_mask[1:].any()]
        if not rows:
            return {}
        self.lm.model.train()
        totals: dict[str, float] = {}
        for _ in range(self.config.epochs):
            for part in mini_batches(len(rows), self.config.mini_batches, rng):
                figures = self._mini_batch([rows[i] for i in part])
                for name, value in figures.items():
                    totals[name] = totals.get(name, 0.0) + value
        n = self.config.epochs * min(self.config.mini_batches, len(rows))
        metrics = {f"update/{name}": value / n for name, value in totals.items()}
        metrics["update/lr"] = self.optimizer.param_groups[0]["lr"]
        metrics["update/trained_tokens"] = float(sum(row.loss_mask[1:].sum() for row in rows))
        metrics["update/padding"] = padding_share(rows, self.config.tokens_per_micro_batch)
        return metrics

    def _mini_batch(self, rows: Sequence[TrainRow]) -> dict[str, float]:
        counts = torch.tensor([int(row.loss_mask[1:].sum()) for row in rows])
        aggregation = self.variant.aggregation
        longest = int(counts.max())
        n_tokens = int(counts.sum())
        # Every row's weight depends on the whole mini-batch, so micro-batches add up to the same loss however they are cut.
        weight_of = dict(zip(counts.tolist(), loss_weights(counts, aggregation, length=longest).tolist()))
        figures = dict.fromkeys(("loss", "ratio_max", "clip_share", "kl_sampler", "entropy"), 0.0)
        self.optimizer.zero_grad(set_to_none=True)
        for batch in micro_batches(rows, self.config.tokens_per_micro_batch, self.lm.device):
            logprobs, entropy = token_logprobs(self.lm, batch, temperature=self.temperature)
            losses, clipped = policy_loss(logprobs, batch.old_logprobs, batch.advantages, self.variant)
            if self.reference is not None:
                with torch.no_grad():
                    reference, _ = token_logprobs(self.reference, batch, temperature=self.temperature)
                losses = losses + self.variant.kl_coefficient * _k3(logprobs, reference)
            per_row = torch.bincount(batch.rows, minlength=batch.n_rows).tolist()
            weights = losses.new_tensor([weight_of[n] for n in per_row])[batch.rows]
            loss = (losses * weights).sum()
            if not bool(torch.isfinite(loss)):
                raise TrainingError(
                    f"the loss is {float(loss.detach())}: no step was taken. Lower optimizer.lr or raise grad clipping, and "
                    "resume from the last checkpoint"
                )
            loss.backward()  # type: ignore[no-untyped-call]
            with torch.no_grad():
                shift = (logprobs - batch.old_logprobs).clamp(-20, 20)
                figures["loss"] += float(loss)
                figures["clip_share"] += float(clipped.sum()) / n_tokens
                figures["kl_sampler"] += float((shift.exp() - shift - 1).sum()) / n_tokens
                figures["entropy"] += float(entropy.sum()) / n_tokens
                figures["ratio_max"] = max(figures["ratio_max"], float(shift.exp().max()))
        figures["grad_norm"] = clipped_step(
            self.lm.model, self.optimizer, self.config, self.updates, self.total_updates
        )
        self.updates += 1
        return figures

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint has to keep."""
        return {
            "optimizer": self.optimizer.state_dict(),
            "updates": self.updates,
            "reference": None if self.reference is None else self.reference.model.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse of ``state_dict``."""
        self.optimizer.load_state_dict(state["optimizer"])
        self.updates = state["updates"]
        if self.reference is not None:
            self.reference.model.load_state_dict(state["reference"])


def training_rows(
    credit: BatchCredit, policy: TransformersPolicy, *, tool_free_prompt: str = "sampled", temperature: float = 1.0
) -> list[TrainRow]:
    """The rows of a batch, one an episode.

    With ``tool_free_prompt="normal"`` a forced tool-free episode is trained as if it had been answered under the normal
    instructions: its prompt is replaced, and its old log-probabilities are recomputed with the present weights.
    """
    rows: list[TrainRow] = []
    moved: list[int] = []
    for episode, advantages in zip(credit.episodes, credit.advantages):
        trace = episode.trace
        row = TrainRow(
            np.asarray(trace.token_ids, dtype=np.int64),
            np.asarray(trace.loss_mask, dtype=np.bool_),
            np.asarray(trace.logprobs, dtype=np.float64),
            np.asarray(advantages, dtype=np.float64),
        )
        if tool_free_prompt == "normal" and episode.base_instructions is not None and trace.spans:
            prompt = policy.format.prompt_ids(episode.base_instructions, episode.observation)
            moved.append(len(rows))
            row = _with_prompt(row, prompt, trace.spans[0].end)
        rows.append(row)
    if moved:
        fresh = recomputed(policy, [rows[i] for i in moved], temperature=temperature)
        for i, row in zip(moved, fresh):
            rows[i] = row
    return rows


@torch.no_grad()
def recomputed(policy: TransformersPolicy, rows: Sequence[TrainRow], *, temperature: float = 1.0) -> list[TrainRow]:
    """``rows`` with old log-probabilities under the present weights."""
    policy.model.eval()
    result = []
    for row in rows:
        (batch,) = micro_batches([row], len(row.token_ids), policy.lm.device)
        logprobs, _ = token_logprobs(policy.lm, batch, temperature=temperature)
        old = np.zeros(len(row.token_ids))
        old[batch.index[1].cpu().numpy() + 1] = logprobs.cpu().double().numpy()
        result.append(TrainRow(row.token_ids, row.loss_mask, old, row.advantages))
    return result


def make_optimizer(model: torch.nn.Module, config: OptimizerConfig) -> torch.optim.AdamW:
    """AdamW over all parameters that are trained."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    return torch.optim.AdamW(parameters, lr=config.lr, betas=config.betas, weight_decay=config.weight_decay)


def schedule_factor(config: OptimizerConfig, step: int, total: int) -> float:
    """What the peak rate is multiplied with at update ``step`` (from 0) of ``total``."""
    if step < config.warmup:
        return (step + 1) / (config.warmup + 1)
    if config.schedule == "constant":
        return 1.0
    done = min(1.0, (step - config.warmup) / max(1, total - config.warmup))
    return 1.0 - done if config.schedule == "linear" else 0.5 * (1.0 + math.cos(math.pi * done))


def clipped_step(
    model: torch.nn.Module, optimizer: torch.optim.Optimizer, config: OptimizerConfig, step: int, total: int
) -> float:
    """Clip the gradients and take update ``step`` of ``total``; returns the norm before clipping.

    Raises TrainingError, without a step, when the norm is not finite.
    """
    norm = float(torch.nn.utils.clip_grad_norm_(model.parameters(), config.grad_clip))
    if not math.isfinite(norm):
        raise TrainingError(
            f"the gradient norm is {norm}: no step was taken. Lower optimizer.lr, and resume from the last checkpoint"
        )
    for group in optimizer.param_groups:
        group["lr"] = config.lr * schedule_factor(config, step, total)
    optimizer.step()
    return norm


def _with_prompt(row: TrainRow, prompt: list[int], old_end: int) -> TrainRow:
    def swap(values: Any, fill: Any) -> Any:
        return np.concatenate([np.asarray(fill, dtype=values.dtype), values[old_end:]])

    empty = np.zeros(len(prompt))
    return TrainRow(
        swap(row.token_ids, prompt),
        swap(row.loss_mask, empty),
        swap(row.old_logprobs, empty),
        swap(row.advantages, empty),
    )


def _k3(logprobs: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """The low-variance estimate exp(d) - d - 1 with d = reference - logprobs in [-20, 20], at most 10."""
    d = (reference - logprobs).clamp(-20.0, 20.0)
    return (d.exp() - d - 1.0).clamp(-10.0, 10.0)
