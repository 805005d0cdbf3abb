"""One policy update: credited episodes in, new weights and their figures out."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from agentic_gym.episodes import Episode
from agentic_gym.policies.causal_lm import CausalLM
from agentic_gym.policies.transformers import TransformersPolicy
from agentic_gym.trainers.algorithm import Algorithm, BatchCredit, LossVariant, Readings
from agentic_gym.trainers.batching import MicroBatch, TrainRow, micro_batches, mini_batches, padding_share
from agentic_gym.trainers.config import OptimizerConfig
from agentic_gym.trainers.credit import mismatch
from agentic_gym.trainers.objective import divergence, loss_weights, policy_loss, token_logprobs
from agentic_gym.trainers.value_head import ValueHead, step_starts

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
        keep_reference: keep the starting policy even without a divergence in the loss (``Algorithm.needs_reference``).
    """

    def __init__(
        self,
        lm: CausalLM,
        variant: LossVariant,
        config: OptimizerConfig,
        *,
        total_updates: int,
        temperature: float = 1.0,
        keep_reference: bool = False,
    ) -> None:
        self.lm, self.variant, self.config = lm, variant, config
        self.total_updates, self.temperature = total_updates, temperature
        self.optimizer = make_optimizer(lm.model, config)
        self.updates = 0
        keep = keep_reference or variant.kl_coefficient > 0
        self.reference = CausalLM(copy.deepcopy(lm.model).eval()) if keep else None
        self.value_head: ValueHead | None = None
        if variant.value_coefficient > 0:
            self.value_head = ValueHead(lm)
            self.optimizer.add_param_group({"params": list(self.value_head.parameters())})

    def update(self, rows: Sequence[TrainRow], rng: np.random.Generator) -> dict[str, float]:
        """Train on ``rows``; returns the update's figures. Raises TrainingError on a loss that is not finite."""
        rows = [row for row in rows if row.loss_mask[1:].any()]
        if not rows:
            return {}
        self.lm.prepare_training()
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
        n_starts = sum(int(np.isfinite(row.old_values).sum()) for row in rows if row.old_values is not None)
        # Every row's weight depends on the whole mini-batch, so micro-batches add up to the same loss however they are cut.
        weight_of = dict(zip(counts.tolist(), loss_weights(counts, aggregation, length=longest).tolist()))
        centre, scale = self._entropy_moments(rows) if self.variant.entropy_alpha else (None, 1.0)
        figures = dict.fromkeys(("loss", "ratio_max", "clip_share", "kl_sampler", "entropy"), 0.0)
        self.optimizer.zero_grad(set_to_none=True)
        for batch in micro_batches(rows, self.config.tokens_per_micro_batch, self.lm.device):
            states = self.lm.hidden(batch.token_ids)[batch.index]
            logprobs, entropy = token_logprobs(self.lm, batch, temperature=self.temperature, states=states)
            advantages = batch.advantages
            if centre is not None:
                advantages = advantages * (1.0 + self.variant.entropy_alpha * (entropy - centre) / scale).clamp_min(0.0)
            losses, clipped = policy_loss(logprobs, batch.old_logprobs, advantages, self.variant, batch.rows)
            if self.reference is not None and self.variant.kl_coefficient > 0:
                with torch.no_grad():
                    reference, _ = token_logprobs(self.reference, batch, temperature=self.temperature)
                losses = losses + self.variant.kl_coefficient * divergence(logprobs, reference, self.variant.kl_kind)
            per_row = torch.bincount(batch.rows, minlength=batch.n_rows).tolist()
            weights = losses.new_tensor([weight_of[n] for n in per_row])[batch.rows]
            loss = (losses * weights).sum()
            if self.value_head is not None:
                value_loss = self.value_head.loss(states, batch) / max(1, n_starts)
                loss = loss + self.variant.value_coefficient * value_loss
                figures["value_loss"] = figures.get("value_loss", 0.0) + float(value_loss.detach())
            if not bool(torch.isfinite(loss)):
                raise TrainingError(
                    f"the loss is {float(loss.detach())}: no step was taken. Start another run with a lower optimizer.lr or "
                    "grad_clip, its model being the last checkpoint"
                )
            loss.backward()  # type: ignore[no-untyped-call]
            with torch.no_grad():
                shift = (logprobs - batch.old_logprobs).clamp(-20, 20)
                figures["loss"] += float(loss)
                figures["clip_share"] += float(clipped.sum()) / n_tokens
                figures["kl_sampler"] += float((shift.exp() - shift - 1).sum()) / n_tokens
                figures["entropy"] += float(entropy.sum()) / n_tokens
                figures["ratio_max"] = max(figures["ratio_max"], float(shift.exp().max()))
        figures["grad_norm"] = clipped_step(self.optimizer, self.config, self.updates, self.total_updates)
        self.updates += 1
        return figures

    @torch.no_grad()
    def _entropy_moments(self, rows: Sequence[TrainRow]) -> tuple[float, float]:
        """Mean and standard deviation (1 where it is 0) of the present policy's entropy over a mini-batch's trained tokens.

        A pass of its own, so that the result does not depend on how the mini-batch is cut into micro-batches.
        """
        parts = [
            token_logprobs(self.lm, batch, temperature=self.temperature)[1]
            for batch in micro_batches(rows, self.config.tokens_per_micro_batch, self.lm.device)
        ]
        entropies = torch.cat(parts).double()
        return float(entropies.mean()), float(entropies.std(correction=0)) or 1.0

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint has to keep."""
        return {
            "optimizer": self.optimizer.state_dict(),
            "updates": self.updates,
            "reference": None if self.reference is None else self.reference.model.state_dict(),
            "value_head": None if self.value_head is None else self.value_head.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse of ``state_dict``."""
        self.optimizer.load_state_dict(state["optimizer"])
        self.updates = state["updates"]
        if self.reference is not None:
            self.reference.model.load_state_dict(state["reference"])
        if self.value_head is not None:
            self.value_head.load_state_dict(state["value_head"])

    def readings(self, algorithm: Algorithm, episodes: Sequence[Episode]) -> Readings:
        """What the model has to tell before ``algorithm`` can give credit to ``episodes``."""
        if not (algorithm.needs_reference or algorithm.needs_values):
            return Readings()
        rows = [_row(episode, np.zeros(len(episode.trace))) for episode in episodes]
        budget = self.config.tokens_per_micro_batch
        reference = values = None
        if algorithm.needs_reference:
            if self.reference is None:
                raise TrainingError(
                    "the algorithm needs the starting policy: make the Updater with keep_reference=True"
                )
            lm = self.reference
            reference = read_tokens(lm, rows, lambda b: token_logprobs(lm, b, temperature=self.temperature)[0], budget)
        if algorithm.needs_values:
            head = self.value_head
            if head is None:
                raise TrainingError("the algorithm needs a value head: give the Updater the algorithm's loss variant")
            at_tokens = read_tokens(self.lm, rows, lambda b: head(self.lm.hidden(b.token_ids)[b.index]), budget)
            values = [at[step_starts(episode)] for at, episode in zip(at_tokens, episodes)]
        return Readings(reference, values)


def training_rows(
    credit: BatchCredit,
    policy: TransformersPolicy,
    *,
    tool_free_prompt: str = "sampled",
    temperature: float = 1.0,
    variant: LossVariant | None = None,
    max_tokens: int = 16_384,
) -> list[TrainRow]:
    """The rows of a batch, one an episode.

    With ``tool_free_prompt="normal"`` a forced tool-free episode is trained as if it had been answered under the normal
    instructions: its prompt is replaced, and its old log-probabilities are recomputed with the present weights. A mismatch
    correction (``variant.mismatch``) multiplies the advantages, since the loss is linear in them.
    """
    rows: list[TrainRow] = []
    moved: list[int] = []
    for index, (episode, advantages) in enumerate(zip(credit.episodes, credit.advantages)):
        trace = episode.trace
        row = _row(episode, advantages)
        if credit.values is not None:
            row = _with_values(row, episode, credit.values[index], float(credit.rewards[index]))
        if tool_free_prompt == "normal" and episode.base_instructions is not None and trace.spans:
            prompt = policy.format.prompt_ids(episode.base_instructions, episode.observation)
            moved.append(len(rows))
            row = _with_prompt(row, prompt, trace.spans[0].end)
        rows.append(row)
    if moved:
        fresh = recomputed(policy, [rows[i] for i in moved], temperature=temperature, max_tokens=max_tokens)
        for i, row in zip(moved, fresh):
            rows[i] = row
    if variant is not None and variant.mismatch is not None:
        apart = [i for i in range(len(rows)) if i not in set(moved)]
        own = recomputed(policy, [rows[i] for i in apart], temperature=temperature, max_tokens=max_tokens)
        for i, row in zip(apart, own):
            rows[i] = _corrected(row, rows[i].old_logprobs, variant)
    return rows


def recomputed(
    policy: TransformersPolicy, rows: Sequence[TrainRow], *, temperature: float = 1.0, max_tokens: int = 16_384
) -> list[TrainRow]:
    """``rows`` with old log-probabilities under the present weights."""
    fresh = read_tokens(
        policy.lm, rows, lambda batch: token_logprobs(policy.lm, batch, temperature=temperature)[0], max_tokens
    )
    return [replace(row, old_logprobs=old) for row, old in zip(rows, fresh)]


@torch.no_grad()
def read_tokens(
    lm: CausalLM, rows: Sequence[TrainRow], read: Callable[[MicroBatch], torch.Tensor], max_tokens: int
) -> list[NDArray[np.float64]]:
    """What ``read`` says about each trained token, (T,) a row and 0 elsewhere; ``read`` maps a micro-batch to (N,)."""
    lm.model.eval()
    result = [np.zeros(len(row.token_ids)) for row in rows]
    for batch in micro_batches(rows, max_tokens, lm.device):
        values = read(batch).cpu().double().numpy()
        row, column = (part.cpu().numpy() for part in batch.index)
        for place, index in enumerate(batch.source):
            mine = row == place
            result[index][column[mine] + 1] = values[mine]
    return result


def _row(episode: Episode, advantages: NDArray[np.float64]) -> TrainRow:
    trace = episode.trace
    return TrainRow(
        np.asarray(trace.token_ids, dtype=np.int64),
        np.asarray(trace.loss_mask, dtype=np.bool_),
        np.asarray(trace.logprobs, dtype=np.float64),
        np.asarray(advantages, dtype=np.float64),
    )


def _with_values(row: TrainRow, episode: Episode, values: NDArray[np.float64], target: float) -> TrainRow:
    old = np.full(len(row.token_ids), np.nan)
    old[step_starts(episode)] = values
    return replace(row, old_values=old, value_targets=np.full(len(row.token_ids), target))


def _corrected(row: TrainRow, sampled: NDArray[np.float64], variant: LossVariant) -> TrainRow:
    """Weigh a row whose sampler was not the trainer; ``row`` has the trainer's log-probabilities."""
    rule = mismatch.token_truncated if variant.mismatch == "token" else mismatch.sequence_masked
    weights = rule(row.old_logprobs[None], sampled[None], row.loss_mask[None], cap=variant.mismatch_cap)[0]
    return replace(row, advantages=row.advantages * weights)


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


def clipped_step(optimizer: torch.optim.Optimizer, config: OptimizerConfig, step: int, total: int) -> float:
    """Clip the gradients and take update ``step`` of ``total``; returns the norm before clipping.

    Raises TrainingError, without a step, when the norm is not finite.
    """
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    norm = float(torch.nn.utils.clip_grad_norm_(parameters, config.grad_clip))
    if not math.isfinite(norm):
        raise TrainingError(
            f"the gradient norm is {norm}: no step was taken. Start another run with a lower optimizer.lr, its model being the "
            "last checkpoint"
        )
    for group in optimizer.param_groups:
        group["lr"] = config.lr * schedule_factor(config, step, total)
    optimizer.step()
    return norm


def _with_prompt(row: TrainRow, prompt: list[int], old_end: int) -> TrainRow:
    def swap(values: Any, fill: Any) -> Any:
        return np.concatenate([np.asarray(fill, dtype=values.dtype), values[old_end:]])

    empty, missing = np.zeros(len(prompt)), np.full(len(prompt), np.nan)
    return TrainRow(
        swap(row.token_ids, prompt),
        swap(row.loss_mask, empty),
        swap(row.old_logprobs, empty),
        swap(row.advantages, empty),
        None if row.old_values is None else swap(row.old_values, missing),
        None if row.value_targets is None else swap(row.value_targets, empty),
    )
