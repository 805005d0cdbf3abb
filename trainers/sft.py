"""Cold start: supervised training on demonstrations, with loss on the agent's tokens only."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from agentic_gym.actions import Grammar
from agentic_gym.episodes import Episode, Response, TokenTrace
from agentic_gym.policies.formats import encode
from agentic_gym.policies.transformers import TransformersPolicy
from agentic_gym.trainers.batching import TrainRow, micro_batches
from agentic_gym.trainers.config import OptimizerConfig
from agentic_gym.trainers.objective import token_logprobs
from agentic_gym.trainers.update import TrainingError, clipped_step, make_optimizer

__all__ = ["demonstration_trace", "supervised"]


def demonstration_trace(episode: Episode, policy: TransformersPolicy) -> TokenTrace:
    """Tokens of a text episode as ``policy`` would have seen and written them."""
    trace = TokenTrace()
    played = Episode(episode.task_id, episode.instructions, episode.observation, trace=trace)
    parser = Grammar(tuple(sorted({s.tool.name for s in episode.steps if s.tool is not None})), commands=True)
    end = list(policy.format.end_ids)
    for index, step in enumerate(episode.steps):
        trace.append_context(index, policy.context_ids(played))
        ids = encode(policy.tokenizer, step.action) + end
        blank = [0.0] * len(ids)
        ends = policy.spell(ids)[1]
        trace.append_action(index, Response(step.action, (), ids, blank, blank, ends), parser.parse(step.action))
        played.steps.append(step)
    return trace


def supervised(
    policy: TransformersPolicy,
    traces: Sequence[TokenTrace],
    config: OptimizerConfig,
    *,
    steps: int,
    batch: int,
    seed: int = 0,
    on_step: Callable[[int, float], None] | None = None,
) -> float:
    """Maximise the likelihood of the agent's tokens; returns the mean loss (nats a token) of the last tenth.

    Args:
        traces: demonstrations; each epoch visits them in a new order.
        steps: optimiser steps.
        batch: demonstrations a step.
        on_step: called with (step, loss).
    """
    if not traces:
        raise ValueError("there is no demonstration to learn from: record solved episodes first")
    rng = np.random.default_rng((seed, 0x5F7))
    rows = [
        TrainRow(np.asarray(t.token_ids), np.asarray(t.loss_mask, dtype=np.bool_), np.zeros(len(t)), np.ones(len(t)))
        for t in traces
    ]
    model = policy.model
    optimizer = make_optimizer(model, config)
    order: list[int] = []
    losses = []
    policy.lm.prepare_training()
    for step in range(steps):
        while len(order) < batch:
            order += rng.permutation(len(rows)).tolist()
        chosen, order = [rows[i] for i in order[:batch]], order[batch:]
        total = max(1, sum(int(row.loss_mask[1:].sum()) for row in chosen))
        loss_sum = 0.0
        optimizer.zero_grad(set_to_none=True)
        for micro in micro_batches(chosen, config.tokens_per_micro_batch, policy.lm.device):
            logprobs, _ = token_logprobs(policy.lm, micro)
            loss = -logprobs.sum() / total
            if not bool(torch.isfinite(loss)):
                raise TrainingError(
                    f"the cold start's loss is {float(loss.detach())} at step {step}: lower the learning rate"
                )
            loss.backward()  # type: ignore[no-untyped-call]
            loss_sum += float(loss.detach())
        clipped_step(optimizer, config, step, steps)
        losses.append(loss_sum)
        if on_step is not None:
            on_step(step, loss_sum)
    policy.forget()
    return float(np.mean(losses[-max(1, len(losses) // 10) :]))
