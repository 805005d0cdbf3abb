"""The settings of a training run: typed, frozen, each field explained.

Read from YAML and the command line by ``agentic-gym train`` (an unknown key is an error).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from agentic_gym.policies.base import Sampling
from agentic_gym.ranges import Checked, Count, Natural, NonNegative, Positive, Range

__all__ = ["AlgorithmConfig", "EnvConfig", "FormatConfig", "OptimizerConfig", "SFTConfig", "TrainConfig"]

DecayRate = Annotated[float, Range(least=0, below=1)]


@dataclass(frozen=True)
class EnvConfig(Checked):
    """Which environment, in which wrappers."""

    id: str = "agentic_gym/MathTools-v0"
    """A Gymnasium id; on the command line a short name like MathTools will do."""
    kwargs: Annotated[dict[str, Any], tyro.conf.Suppress] = field(default_factory=dict)
    """Arguments of ``gym.make`` (in a file; on the command line see the next)."""
    settings: Annotated[tuple[str, ...], tyro.conf.arg(name="with", metavar="NAME=VALUE")] = ()
    """Further arguments, read as YAML: levels=[0,1] cache=true."""
    tool_budget: Natural | None = None
    """Most tool calls an episode (``ToolBudget``); None is no limit."""
    roles: bool = False
    """Label steps with the environment's oracle (``RoleLabels``); TRIAGE needs it."""
    threads: Count = 16
    """Environments stepped at once where a step waits for a tool."""


@dataclass(frozen=True)
class FormatConfig(Checked):
    """How an episode becomes tokens."""

    kind: Literal["auto", "chat", "inline"] = "auto"
    """auto: the chat template where the tokenizer has one, else inline."""
    template: str = "{instructions}\n\n{observation}\n"
    """inline: the prompt."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if "{observation}" not in self.template:
            raise ValueError(f"template must hold {{observation}}, got {self.template!r}")


@dataclass(frozen=True)
class AlgorithmConfig(Checked):
    """A credit rule and its parameters."""

    name: str = "grpo"
    """grpo, dr_grpo, rloo, reinforce_pp, reinforce_pp_baseline, otc, toolstar, arpo, aepo, gigpo, eapo, triage,
    triage_scalar, value_baseline or eapo+triage."""
    parameters: Annotated[dict[str, Any], tyro.conf.Suppress] = field(default_factory=dict)
    """For example group_size, tool_free, beta, lam (in a file; on the command line see the next)."""
    settings: Annotated[tuple[str, ...], tyro.conf.arg(name="with", metavar="NAME=VALUE")] = ()
    """Further parameters: group_size=16 beta=0.5."""


@dataclass(frozen=True)
class OptimizerConfig(Checked):
    """AdamW and how a batch is cut."""

    lr: NonNegative = 1e-6
    """Peak learning rate."""
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """After the warm-up; linear and cosine end at 0."""
    warmup: Natural = 0
    """Updates over which the rate rises from 0."""
    betas: tuple[DecayRate, DecayRate] = (0.9, 0.999)
    """AdamW's decay rates."""
    weight_decay: NonNegative = 0.0
    """AdamW's decoupled decay."""
    grad_clip: Annotated[float, Range(above=0, infinite=True)] = 1.0
    """Largest gradient norm; infinity clips nothing."""
    mini_batches: Count = 1
    """Optimiser steps an epoch over a batch of episodes."""
    epochs: Count = 1
    """Passes over a batch of episodes."""
    tokens_per_micro_batch: Count = 16_384
    """Padded tokens forwarded at once: lower it when memory runs out."""


@dataclass(frozen=True)
class SFTConfig(Checked):
    """Cold start on demonstrations before RL."""

    demonstrations: Path | None = None
    """A JSONL file of recorded episodes; only solved ones are used."""
    epochs: Positive = 3.0
    """Passes over the demonstrations."""
    batch: Count = 64
    """Episodes an update."""
    optimizer: OptimizerConfig = OptimizerConfig(lr=7e-6, schedule="cosine", warmup=10)
    """Its mini_batches and epochs are not used."""


@dataclass(frozen=True)
class TrainConfig(Checked):
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
    iterations: Count = 100
    """Rollout-and-update rounds."""
    tasks_per_iteration: Count = 16
    """Groups a round."""
    tool_free_prompt: Literal["sampled", "normal"] = "sampled"
    """The prompt under which tool-free rows are trained: the one they were sampled with, or the normal one."""
    seed: Natural = 0
    """Fixes tasks, sampling and mini-batches."""
    checkpoint_every: Count = 10
    """Rounds between checkpoints; the last round always has one."""
    keep_checkpoints: Count = 2
    """Older ones are removed."""
    record_episodes: bool = True
    """Append every episode to episodes.jsonl."""
    device: str | None = None
    """cpu, cuda, ...; None takes CUDA where it is."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Of the weights and of AdamW's state; auto: float32. In bfloat16 most steps below about 1e-4 are rounded away."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sampling.top_p != 1.0 or self.sampling.temperature <= 0:
            raise ValueError(
                "training needs sampling.top_p = 1 and sampling.temperature > 0 (a truncated distribution biases the "
                f"probability ratio); got top_p {self.sampling.top_p}, temperature {self.sampling.temperature}"
            )
