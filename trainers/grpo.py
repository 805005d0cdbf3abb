"""The training loop, whole: roll out, give credit, update.

Every random choice of iteration i comes from (seed, i) alone, so a run that resumes equals the straight run.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agentic_gym.episodes import Episode
from agentic_gym.policies.transformers import TransformersPolicy
from agentic_gym.trainers.algorithm import Algorithm, trainable
from agentic_gym.trainers.branching import group_rollout
from agentic_gym.trainers.config import TrainConfig
from agentic_gym.trainers.evaluation import summarise
from agentic_gym.trainers.rollout import EnvPool, groups_of
from agentic_gym.trainers.run import Run
from agentic_gym.trainers.update import TrainingError, Updater, training_rows

__all__ = ["choose_tasks", "train"]


def train(
    policy: TransformersPolicy,
    pool: EnvPool,
    tasks: Sequence[str],
    algorithm: Algorithm,
    config: TrainConfig,
    run: Run,
) -> None:
    """Train ``policy`` in place.

    Args:
        pool: environments, wrapped as the algorithm needs them (``ToolFree`` for a tool-free quota, ``RoleLabels`` for TRIAGE).
        tasks: ids to draw from.
        config: how long, how fast; ``config.algorithm`` is only a label here.
        run: where metrics and checkpoints go; an earlier part of the run found there is continued.
    """
    updater = Updater(
        policy.lm,
        algorithm.loss,
        config.optimizer,
        total_updates=config.iterations * config.optimizer.epochs * config.optimizer.mini_batches,
        temperature=config.sampling.temperature,
        keep_reference=algorithm.needs_reference,
    )
    plan = algorithm.plan
    for iteration in run.iterations(run.restore(policy, updater, algorithm)):
        chosen = choose_tasks(tasks, config.tasks_per_iteration, iteration, config.seed)
        episodes = group_rollout(
            policy,
            pool,
            chosen,
            plan,
            config.sampling,
            vocabulary=len(policy.tokenizer),
            seed=(config.seed, iteration),
        )
        policy.forget()  # the update needs the memory of the keys and values
        check_usable(episodes, policy.max_length)
        groups = groups_of(episodes, plan.group_size)
        credit = algorithm.credit(groups, updater.readings(algorithm, trainable(groups)))
        rows = training_rows(
            credit,
            policy,
            tool_free_prompt=config.tool_free_prompt,
            temperature=config.sampling.temperature,
            variant=algorithm.loss,
            max_tokens=config.optimizer.tokens_per_micro_batch,
        )
        figures = updater.update(rows, np.random.default_rng((config.seed, iteration, 1)))
        run.log(iteration, {**rollout_figures(episodes), **credit.metrics, **figures}, episodes)
        run.checkpoint(iteration + 1, policy, updater, algorithm)


def choose_tasks(tasks: Sequence[str], n: int, iteration: int, seed: int) -> list[str]:
    """The ``n`` tasks of an iteration: every pass over ``tasks`` is in a new order, none is left out."""
    if not tasks:
        raise ValueError("there is no task to train on")
    orders: dict[int, np.ndarray] = {}
    chosen = []
    for position in range(iteration * n, iteration * n + n):
        epoch, place = divmod(position, len(tasks))
        if epoch not in orders:
            orders[epoch] = np.random.default_rng((seed, epoch, 2)).permutation(len(tasks))
        chosen.append(tasks[int(orders[epoch][place])])
    return chosen


def check_usable(episodes: Sequence[Episode], window: int) -> None:
    """Raise TrainingError when no episode can teach anything: all failed for infrastructure's sake, or no prompt fits.

    Args:
        window: tokens that the policy can see, for the message.
    """
    if all(episode.outcome == "context_limit" and not episode.steps for episode in episodes):
        raise TrainingError(
            f"no prompt fits into the policy's window of {window} tokens: shorten the environment's instructions "
            "(env.kwargs), or take a model with a longer window"
        )
    if all(episode.masked for episode in episodes):
        raise TrainingError(f"all {len(episodes)} episodes failed; the first: {episodes[0].error}")


def rollout_figures(episodes: Sequence[Episode]) -> dict[str, float]:
    """The figures of an iteration's episodes; free rows (not forced to be tool-free) by level."""
    summary = summarise(episodes)
    figures = {
        "rollout/episodes": float(len(episodes)),
        "rollout/success": summary.success,
        "rollout/score": summary.score,
        "rollout/calls": summary.calls,
        "rollout/turns": summary.turns,
        "rollout/tokens": summary.tokens,
        "rollout/ill_formed": summary.ill_formed,
        "rollout/masked": float(summary.masked),
        "rollout/context_limit": sum(episode.outcome == "context_limit" for episode in episodes) / max(1, len(episodes)),
    }
    free = [episode for episode in episodes if not episode.tool_free and episode.level is not None]
    for level in sorted({str(episode.level) for episode in free}):
        part = summarise([episode for episode in free if str(episode.level) == level])
        figures[f"level {level}/success"] = part.success
        figures[f"level {level}/calls"] = part.calls
    return figures
