"""From a configuration to a run: build what the loop needs, cold-start if asked, train."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
from rich.console import Console
from transformers.utils.logging import disable_progress_bar

from agentic_gym.configs import assignments
from agentic_gym.envs.registration import check_arguments
from agentic_gym.policies.devices import default_device
from agentic_gym.policies.formats import ChatFormat, Format, InlineFormat
from agentic_gym.policies.transformers import TransformersPolicy
from agentic_gym.text_env import TextEnv
from agentic_gym.trainers.advantages import RoleCredit
from agentic_gym.trainers.algorithm import Algorithm
from agentic_gym.trainers.algorithms import make_algorithm
from agentic_gym.trainers.config import EnvConfig, TrainConfig
from agentic_gym.trainers.grpo import train
from agentic_gym.trainers.rollout import EnvPool
from agentic_gym.trainers.run import Run
from agentic_gym.trainers.sft import demonstration_trace, supervised
from agentic_gym.wrappers import RecordEpisodes, RoleLabels, ToolBudget, ToolFree

__all__ = ["check_together", "launch", "load_policy", "make_env"]


def launch(config: TrainConfig, console: Console | None = None) -> Path:
    """Train as ``config`` says and return the newest checkpoint.

    Raises ValueError for a configuration that cannot work, before anything heavy is done.
    """
    if not config.model:
        raise ValueError("say which model to train: a directory, a .gguf file or a hub id (model: ... or --model ...)")
    algorithm = make_algorithm(
        config.algorithm.name, **{**config.algorithm.parameters, **assignments(config.algorithm.settings)}
    )
    disable_progress_bar()  # those of loading would break up ours
    with EnvPool(lambda: make_env(config.env), threads=config.env.threads) as pool:
        first = pool.take()
        pool.give_back(first)
        base = first.unwrapped
        if not isinstance(base, TextEnv):
            raise ValueError(f"{config.env.id} is not a TextEnv: call trainers.grpo.train with environments of your own")
        check_together(algorithm, config.env, base)
        policy = load_policy(config)
        with Run(config, console=console, context={"tasks": base.tasks.content_hash}) as run:
            if run.checkpoints.latest() is None:
                cold_start(config, policy)
            train(policy, pool, [task.id for task in base.tasks], algorithm, config, run)
            latest = run.checkpoints.latest()
    if latest is None:
        raise RuntimeError(f"the run in {config.output} ended without a checkpoint")
    return latest


def check_together(algorithm: Algorithm, config: EnvConfig, env: TextEnv) -> None:
    """Raise ValueError for an algorithm and an environment that do not fit, naming the setting to change."""
    name, free = algorithm.name, algorithm.plan.tool_free
    if free and not env.tools:
        raise ValueError(
            f"{name} forces {free} episodes of a group to do without tools, and {config.id} has none: set tool_free=0, or "
            "take another algorithm"
        )
    if isinstance(algorithm.segments, RoleCredit) and not config.roles:
        raise ValueError(f"{name} gives credit by the role of a step: set env.roles to true (--env.roles)")
    limit = getattr(algorithm.shaping, "limit", None)
    if limit is not None and config.tool_budget not in (None, limit):
        raise ValueError(
            f"{name} counts with at most limit={limit} calls an episode, and env.tool_budget allows {config.tool_budget}: "
            "make them equal"
        )


def load_policy(config: TrainConfig) -> TransformersPolicy:
    """The model of ``config`` in its format.

    In float32 unless told otherwise: AdamW steps the weights themselves, and in bfloat16 most weights are so coarse that a step
    of the usual size (1e-6) is rounded away.
    """
    device = config.device or default_device()
    dtype = "float32" if config.dtype == "auto" else config.dtype
    policy = TransformersPolicy.from_pretrained(config.model, dtype=dtype, device=device)
    chosen: Format
    if config.format.kind == "inline":
        chosen = InlineFormat(policy.tokenizer, config.format.template)
    elif config.format.kind == "chat":
        chosen = ChatFormat(policy.tokenizer)
    else:
        chosen = policy.format
    policy.format = chosen
    return policy


def make_env(config: EnvConfig) -> gym.Env[str, str]:
    """One environment with the wrappers that ``config`` names; forced tool-free episodes are always possible."""
    arguments: dict[str, Any] = {**config.kwargs, **assignments(config.settings)}
    check_arguments(config.id, arguments)
    env: gym.Env[str, str] = gym.make(config.id, **arguments)
    if config.tool_budget is not None:
        env = ToolBudget(env, config.tool_budget)
    if isinstance(env.unwrapped, TextEnv) and env.unwrapped.tools:
        env = ToolFree(env)
    return RoleLabels(env) if config.roles else env


def cold_start(config: TrainConfig, policy: TransformersPolicy) -> None:
    """Supervised training on the solved episodes of ``config.sft.demonstrations``, if there are any."""
    sft = config.sft
    if sft.demonstrations is None:
        return
    solved = [episode for episode in RecordEpisodes.load(sft.demonstrations) if episode.success]
    if not solved:
        raise ValueError(f"{sft.demonstrations} holds no solved episode to learn from")
    traces = [demonstration_trace(episode, policy) for episode in solved]
    steps = max(1, round(sft.epochs * len(traces) / sft.batch))
    supervised(policy, traces, sft.optimizer, steps=steps, batch=min(sft.batch, len(traces)), seed=config.seed)
