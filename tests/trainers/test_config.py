"""Settings: frozen, explained, and refused where they cannot work."""

import dataclasses
import inspect

import pytest

pytest.importorskip("torch")

from agentic_gym.policies.base import Sampling
from agentic_gym.trainers import config as module
from agentic_gym.trainers.config import EnvConfig, OptimizerConfig, SFTConfig, TrainConfig

CLASSES = [getattr(module, name) for name in module.__all__]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_setting_is_frozen_and_explained(cls):
    instance = cls()
    lines = [line.strip() for line in inspect.getsource(cls).splitlines()]
    for field in dataclasses.fields(cls):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(instance, field.name, None)
        place = next(i for i, line in enumerate(lines) if line.startswith(f"{field.name}:"))
        assert lines[place + 1].startswith('"""'), f"{cls.__name__}.{field.name} is not explained"


@pytest.mark.parametrize("sampling", [Sampling(top_p=0.9), Sampling(temperature=0.0)])
def test_sampling_that_biases_the_ratio_is_refused(sampling):
    with pytest.raises(ValueError, match=r"top_p = 1 and sampling.temperature > 0.*got top_p"):
        TrainConfig(sampling=sampling)


@pytest.mark.parametrize("name", ["iterations", "tasks_per_iteration", "checkpoint_every", "keep_checkpoints"])
def test_counts_begin_at_one(name):
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
        TrainConfig(**{name: 0})


@pytest.mark.parametrize(
    ("cls", "name", "value"),
    [
        (OptimizerConfig, "grad_clip", 0.0),
        (OptimizerConfig, "grad_clip", -1.0),
        (OptimizerConfig, "lr", float("nan")),
        (OptimizerConfig, "epochs", 0),
        (OptimizerConfig, "betas", (0.9, 1.0)),
        (SFTConfig, "epochs", 0.0),
        (SFTConfig, "batch", 0),
        (EnvConfig, "tool_budget", -1),
        (TrainConfig, "seed", -1),
    ],
)
def test_what_would_train_nothing_or_backwards_is_refused(cls, name, value):
    with pytest.raises(ValueError, match=f"{name} must be .*, got "):
        cls(**{name: value})
