"""The settings of a training run: typed, frozen, each field explained.

Read from YAML and the command line by ``agentic-gym train`` (an unknown key is an error).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from agentic_gym.policies.base import Sampling

__all__ = ["AlgorithmConfig", "EnvConfig", "FormatConfig", "OptimizerConfig", "SFTConfig", "TrainConfig"]


def _at_least(settings: Any, **least: float) -> None:
    """Raise ValueError for the first of these settings that is below its least value; None passes."""
    for name, bound in least.items():
        value = getattr(settings, name)
        if value is not None and not value >= bound:
            raise ValueError(f"{name} must be at least {bound}, got {value}")


@dataclass(frozen=True)
class EnvConfig:
    """Which environment, in which wrappers."""

    id: str = "agentic_gym/MathTools-v0"
    """A Gymnasium id."""
    kwargs: Annotated[dict[str, Any], tyro.conf.Suppress] = field(default_factory=dict)
    """Arguments of ``gym.make`` (in a file; on the command line see the next)."""
    settings: Annotated[tuple[str, ...], tyro.conf.arg(name="with", metavar="NAME=VALUE")] = ()
    """Further arguments, read as YAML: levels=[0,1] cache=true."""
    tool_budget: int | None = None
    """Most tool calls an episode (``ToolBudget``); None is no limit."""
    roles: bool = False
    """Label steps with the environment's oracle (``RoleLabels``); TRIAGE needs it."""
    threads: int = 16
    """Environments stepped at once where a step waits for a tool."""

    def __post_init__(self) -> None:
        _at_least(self, threads=1, tool_budget=0)


@dataclass(frozen=True)
class FormatConfig:
    """How an episode becomes tokens."""

    kind: Literal["auto", "chat", "inline"] = "auto"
    """auto: the chat template where the tokenizer has one, else inline."""
    template: str = "{instructions}\n\n{observation}\n"
    """inline: the prompt."""


@dataclass(frozen=True)
class AlgorithmConfig:
    """A credit rule and its parameters."""

    name: str = "grpo"
    """grpo, dr_grpo, rloo, reinforce_pp, reinforce_pp_baseline, otc, toolstar, arpo, aepo, gigpo, eapo, triage,
    triage_scalar, value_baseline or eapo+triage."""
    parameters: Annotated[dict[str, Any], tyro.conf.Suppress] = field(default_factory=dict)
    """For example group_size, tool_free, beta, lam (in a file; on the command line see the next)."""
    settings: Annotated[tuple[str, ...], tyro.conf.arg(name="with", metavar="NAME=VALUE")] = ()
    """Further parameters: group_size=16 beta=0.5."""


@dataclass(frozen=True)
class OptimizerConfig:
    """AdamW and how a batch is cut."""

    lr: float = 1e-6
    """Peak learning rate."""
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """After the warm-up; linear and cosine end at 0."""
    warmup: int = 0
    """Updates over which the rate rises from 0."""
    betas: tuple[float, float] = (0.9, 0.999)
    """AdamW's decay rates."""
    weight_decay: float = 0.0
    """AdamW's decoupled decay."""
    grad_clip: float = 1.0
    """Largest gradient norm."""
    mini_batches: int = 1
    """Optimiser steps an epoch over a batch of episodes."""
    epochs: int = 1
    """Passes over a batch of episodes."""
    tokens_per_micro_batch: int = 16_384
    """Padded tokens forwarded at once: lower it when memory runs out."""

    def __post_init__(self) -> None:
        _at_least(self, lr=0, warmup=0, weight_decay=0, mini_batches=1, epochs=1, tokens_per_micro_batch=1)
        if not self.grad_clip > 0:  # 0 would stop the training, a negative one turn the gradient
            raise ValueError(f"grad_clip must be above 0, got {self.grad_clip}")
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas must be from 0 to below 1, got {self.betas}")


@dataclass(frozen=True)
class SFTConfig:
    """Cold start on demonstrations before RL."""

    demonstrations: Path | None = None
    """A JSONL file of recorded episodes; only solved ones are used."""
    epochs: float = 3.0
    """Passes over the demonstrations."""
    batch: int = 64
    """Episodes an update."""
    optimizer: OptimizerConfig = OptimizerConfig(lr=7e-6, schedule="cosine", warmup=10)
    """Its mini_batches and epochs are not used."""

    def __post_init__(self) -> None:
        _at_least(self, batch=1)
        if not self.epochs > 0:
            raise ValueError(f"epochs must be above 0, got {self.epochs}")


@dataclass(frozen=True)
class TrainConfig:
    """Everything that decides a run."""

    model: str = ""
    """A directory, a .gguf file or a hub id."""
    output: Path = Path("runs/train")
    """Checkpoints, metrics and episodes go here; a run found here is resumed."""
    env: EnvConfig = EnvConfig()
    """What to play."""
    format: FormatConfig = FormatConfig()
    """How it is shown to the model."""
    algorithm: AlgorithmConfig = AlgorithmConfig()
    """How credit is given."""
    sampling: Sampling = field(default_factory=Sampling)
    """How actions are drawn; training needs top_p = 1 and a temperature above 0."""
    optimizer: OptimizerConfig = OptimizerConfig()
    """How the policy is updated."""
    sft: SFTConfig = SFTConfig()
    """Cold start; skipped without demonstrations."""
    iterations: int = 100
    """Rollout-and-update rounds."""
    tasks_per_iteration: int = 16
    """Groups a round."""
    tool_free_prompt: Literal["sampled", "normal"] = "sampled"
    """The prompt under which tool-free rows are trained: the one they were sampled with, or the normal one."""
    seed: int = 0
    """Fixes tasks, sampling and mini-batches."""
    checkpoint_every: int = 10
    """Rounds between checkpoints; the last round always has one."""
    keep_checkpoints: int = 2
    """Older ones are removed."""
    record_episodes: bool = True
    """Append every episode to episodes.jsonl."""
    device: str | None = None
    """cpu, cuda, ...; None takes CUDA where it is."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Of the weights and of AdamW's state; auto: float32. In bfloat16 most steps below about 1e-4 are rounded away."""

    def __post_init__(self) -> None:
        if self.sampling.top_p != 1.0 or self.sampling.temperature <= 0:
            raise ValueError(
                "training needs sampling.top_p = 1 and sampling.temperature > 0 (a truncated distribution biases the "
                f"probability ratio); got top_p {self.sampling.top_p}, temperature {self.sampling.temperature}"
            )
        _at_least(self, iterations=1, tasks_per_iteration=1, seed=0, checkpoint_every=1, keep_checkpoints=1)
