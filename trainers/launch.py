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
from agentic_gym.trainers.algorithms import make_algorithm
from agentic_gym.trainers.config import EnvConfig, TrainConfig
from agentic_gym.trainers.grpo import train
from agentic_gym.trainers.rollout import EnvPool
from agentic_gym.trainers.run import Run
from agentic_gym.trainers.sft import demonstration_trace, supervised
from agentic_gym.wrappers import RecordEpisodes, RoleLabels, ToolBudget, ToolFree

__all__ = ["launch", "load_policy", "make_env"]


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
        policy = load_policy(config)
        with Run(config, console=console, context={"tasks": base.tasks.content_hash}) as run:
            if run.checkpoints.latest() is None:
                cold_start(config, policy)
            train(policy, pool, [task.id for task in base.tasks], algorithm, config, run)
            latest = run.checkpoints.latest()
    if latest is None:
        raise RuntimeError(f"the run in {config.output} ended without a checkpoint")
    return latest


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
