"""Settings: frozen, explained, and refused where they cannot work."""

import dataclasses
import inspect

import pytest

pytest.importorskip("torch")

from agentic_gym.benchmarks.experiments.quickstart import QuickstartConfig
from agentic_gym.benchmarks.runner import BenchmarkConfig
from agentic_gym.commands.suite import ArithmeticSuite
from agentic_gym.configs import ConfigError, load_config
from agentic_gym.policies.base import Sampling
from agentic_gym.tools.retrieval.server import ServeSearch
from agentic_gym.trainers import config as module
from agentic_gym.trainers.config import EnvConfig, FormatConfig, OptimizerConfig, SFTConfig, TrainConfig

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


@pytest.mark.parametrize("cls", [*CLASSES, Sampling, BenchmarkConfig, QuickstartConfig, ArithmeticSuite, ServeSearch])
def test_every_setting_has_a_type(cls):
    given = {"corpus": "x.jsonl"} if cls is ServeSearch else {}
    for field in dataclasses.fields(cls):
        with pytest.raises(ValueError, match=f"^{field.name} must be ") as error:
            cls(**{**given, field.name: object()})
        assert "got <object object" in str(error.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: OptimizerConfig(lr=-1e-4), "lr must be at least 0, got -0.0001"),
        (lambda: OptimizerConfig(lr=float("nan")), "lr must be a finite number of at least 0, got nan"),
        (lambda: OptimizerConfig(betas=(0.9, 1.0)), "betas must be a list of 2, each a finite number from 0 to below 1"),
        (lambda: OptimizerConfig(betas=(0.9,)), "betas must be a list of 2"),
        (lambda: OptimizerConfig(grad_clip=0), "grad_clip must be above 0, got 0"),
        (lambda: OptimizerConfig(weight_decay=-1), "weight_decay must be at least 0, got -1"),
        (lambda: OptimizerConfig(warmup=-1), "warmup must be at least 0, got -1"),
        (lambda: OptimizerConfig(mini_batches=0), "mini_batches must be at least 1, got 0"),
        (lambda: OptimizerConfig(epochs=1.5), "epochs must be a whole number of at least 1, got 1.5"),
        (lambda: OptimizerConfig(tokens_per_micro_batch=0), "tokens_per_micro_batch must be at least 1, got 0"),
        (lambda: OptimizerConfig(schedule="warm"), "schedule must be 'constant', 'linear' or 'cosine', got 'warm'"),
        (lambda: SFTConfig(epochs=0), "epochs must be above 0, got 0"),
        (lambda: SFTConfig(batch=0), "batch must be at least 1, got 0"),
        (lambda: EnvConfig(tool_budget=-1), "tool_budget must be at least 0, got -1"),
        (lambda: EnvConfig(threads=0), "threads must be at least 1, got 0"),
        (lambda: FormatConfig(template="x"), "template must hold {observation}, got 'x'"),
        (lambda: TrainConfig(seed=-1), "seed must be at least 0, got -1"),
        (lambda: TrainConfig(dtype="float16"), "dtype must be 'auto', 'float32' or 'bfloat16', got 'float16'"),
        (lambda: Sampling(max_tokens=0), "max_tokens must be at least 1, got 0"),
        (lambda: Sampling(top_p=0), "top_p must be above 0 and at most 1, got 0"),
        (lambda: Sampling(stop="</answer>"), "stop must be a list, each a text, got '</answer>'"),
        (lambda: ArithmeticSuite(samples=0), "samples must be at least 1, got 0"),
        (lambda: ServeSearch("x.jsonl", port=70_000), "port must be from 0 to 65535, got 70000"),
    ],
)
def test_settings_out_of_range_are_refused_by_name(make, message):
    with pytest.raises(ValueError, match="must") as error:
        make()
    assert str(error.value).startswith(message)


def test_no_clipping_is_an_infinite_norm():
    assert OptimizerConfig(grad_clip=float("inf")).grad_clip == float("inf")


def test_a_file_and_flags_are_checked_like_a_call(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("optimizer: {lr: -1.0}")
    with pytest.raises(ConfigError, match=r"config.yaml: optimizer: lr must be at least 0, got -1.0"):
        load_config(TrainConfig, path)
    path.write_text("optimizer: {lr: 1e-4, betas: [0.9, 0.95]}\nseed: 3")
    config = load_config(TrainConfig, path, ["--optimizer.warmup", "4", "--env.threads", "2"])
    assert (config.optimizer.lr, config.optimizer.betas, config.optimizer.warmup) == (1e-4, (0.9, 0.95), 4)
    assert (config.env.threads, config.seed) == (2, 3)


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
