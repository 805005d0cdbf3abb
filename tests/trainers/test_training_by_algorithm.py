"""Every algorithm trains the laboratory's tiny agent on MathTools for a step or two, and leaves its own mark."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pytest
import torch

from agentic_gym.benchmarks.experiments import tiny
from agentic_gym.episodes import Episode, Group
from agentic_gym.policies.base import Sampling
from agentic_gym.policies.formats import InlineFormat
from agentic_gym.policies.transformers import TransformersPolicy
from agentic_gym.tasks import TaskSet
from agentic_gym.trainers.algorithm import Algorithm, LossVariant, trainable
from agentic_gym.trainers.algorithms import ALGORITHMS, make_algorithm
from agentic_gym.trainers.config import AlgorithmConfig, OptimizerConfig, TrainConfig
from agentic_gym.trainers.grpo import train
from agentic_gym.trainers.rollout import EnvPool, groups_of
from agentic_gym.trainers.run import Run
from agentic_gym.trainers.sft import demonstration_trace, supervised
from agentic_gym.trainers.update import Updater, training_rows
from agentic_gym.wrappers import RoleLabels, ToolFree
from agentic_gym.wrappers.record_episodes import RecordEpisodes

SIZE = 8


def few_tasks() -> TaskSet:
    """Four problems of each level."""
    tasks = tiny.tiny_tasks("train")
    return TaskSet([t for level in tiny.LEVELS for t in [t for t in tasks if t.level == level][::97][:4]], name="few")


TASKS = few_tasks()


def make_env(roles: bool) -> gym.Env[str, str]:
    env: gym.Env[str, str] = gym.make("agentic_gym/MathTools-v0", tasks=TASKS, max_turns=3, instructions="", cache=True)
    env = ToolFree(env, notice=tiny.NOTICE)
    return RoleLabels(env) if roles else env


class Start(NamedTuple):
    policy: TransformersPolicy
    weights: dict[str, Any]


def cold_start(steps: int) -> Start:
    torch.set_num_threads(1)
    tokenizer = tiny.build_tokenizer()
    model = tiny.build_model(tokenizer, seed=0)
    policy = TransformersPolicy(model, tokenizer, format=InlineFormat(tokenizer, tiny.TEMPLATE))
    traces = [demonstration_trace(e, policy) for e in tiny.demonstrations(TASKS, 200, seed=0)]
    config = OptimizerConfig(lr=3e-3, schedule="cosine", warmup=10, tokens_per_micro_batch=1500)
    supervised(policy, traces, config, steps=steps, batch=32)
    return Start(policy, copy.deepcopy(model.state_dict()))


@pytest.fixture(scope="module")
def start() -> Start:
    """An agent that knows the grammar and little else."""
    return cold_start(70)


class Result(NamedTuple):
    metrics: list[dict[str, float]]
    groups: list[Group]
    state: dict[str, Any]
    weights: dict[str, Any]


def run(start: Start, algorithm: Algorithm, folder: Path, iterations: int = 1, **changes: Any) -> Result:
    """Train from the cold start and read back what the run wrote."""
    policy = start.policy
    policy.model.load_state_dict(start.weights)
    config = TrainConfig(
        output=folder,
        algorithm=AlgorithmConfig(algorithm.name),
        sampling=Sampling(max_tokens=24),
        optimizer=OptimizerConfig(lr=1e-3, tokens_per_micro_batch=3000),
        iterations=iterations,
        tasks_per_iteration=3,
        checkpoint_every=1,
    )
    config = replace(config, **changes)
    roles = "triage" in algorithm.name
    with EnvPool(lambda: make_env(roles), threads=1) as pool, Run(config) as written:
        train(policy, pool, list(TASKS.ids), algorithm, config, written)
        metrics = written.metrics()
    checkpoint = sorted((folder / "checkpoints").glob("step-*"))[-1]
    return Result(
        metrics,
        groups_of(RecordEpisodes.load(folder / "episodes.jsonl"), algorithm.plan.group_size),
        json.loads((checkpoint / "state.json").read_text()),
        copy.deepcopy(policy.model.state_dict()),
    )


def small(name: str, **parameters: Any) -> Algorithm:
    if name in ("arpo", "aepo"):
        parameters = {"initial": 3, "beam": 3, "branch_probability": 0.9 if name == "arpo" else 0.1, **parameters}
    if name == "triage_scalar":
        parameters["scores"] = lambda episode: [1.0 - k for k in range(len(episode.steps))]
    return make_algorithm(name, group_size=SIZE, **parameters)


def same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return all(torch.equal(a[key], b[key]) for key in a)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_step_of_training(name: str, start: Start, tmp_path: Path) -> None:
    algorithm = small(name)
    result = run(start, algorithm, tmp_path)
    (row,) = result.metrics
    assert row["rollout/episodes"] == 3 * SIZE
    assert row["rollout/masked"] == 0
    assert all(np.isfinite(value) for value in row.values())
    assert same(result.weights, start.weights) == (row["credit/advantage_std"] == 0)
    assert set(result.state["algorithm"]) == ({"shaping"} if name == "otc" else set())


@pytest.mark.parametrize("name", ["arpo", "aepo"])
def test_arpo_and_aepo_really_branch(name: str, start: Start, tmp_path: Path) -> None:
    result = run(start, small(name), tmp_path)
    branches = [(group, row) for group in result.groups for row in group if row.parent is not None]
    assert branches
    for group, row in branches:
        parent = group.episodes[row.parent or 0]
        shared = max(span.end for span in row.trace.spans if span.step < row.branch_step)
        assert row.trace.token_ids[:shared] == parent.trace.token_ids[:shared]
        assert row.trace.logprobs[:shared] == parent.trace.logprobs[:shared]
        assert row.steps[row.branch_step - 1].tool is not None
    assert all(len(group) == SIZE for group in result.groups)


def test_otcs_optimum_only_falls_and_survives_a_resume(start: Start, tmp_path: Path) -> None:
    algorithm = small("otc")
    algorithm.shaping.optimal.update(dict.fromkeys(TASKS.ids, 3))  # type: ignore[attr-defined]
    first = run(start, algorithm, tmp_path, iterations=1)
    resumed = small("otc")
    second = run(start, resumed, tmp_path, iterations=2)
    before, after = first.state["algorithm"]["shaping"]["optimal"], second.state["algorithm"]["shaping"]["optimal"]
    assert set(before) == set(after) == set(TASKS.ids)
    assert all(after[task] <= before[task] <= 3 for task in before)
    assert len(second.metrics) == 2


def test_eapo_keeps_its_quota_and_forced_rows_call_nothing(start: Start, tmp_path: Path) -> None:
    result = run(start, small("eapo", tool_free=3), tmp_path)
    for group in result.groups:
        forced = [row for row in group if row.tool_free]
        assert len(forced) == 3
        assert all(row.tool_calls == 0 for row in forced)


def test_the_value_head_learns_the_outcome(start: Start, tmp_path: Path) -> None:
    algorithm = small("value_baseline", value_coefficient=1.0, bad_format=-1.0)
    result = run(start, algorithm, tmp_path, iterations=3)
    assert all("update/value_loss" in row for row in result.metrics)
    path = sorted((tmp_path / "checkpoints").glob("step-*"))[-1]
    head = torch.load(path / "optimizer.pt", weights_only=True)["value_head"]
    assert float(head["linear.weight"].abs().max()) > 0


def test_divergence_in_the_reward_is_zero_at_the_start_and_moves_later(start: Start, tmp_path: Path) -> None:
    plain = run(start, small("reinforce_pp"), tmp_path / "plain")
    charged = run(start, small("reinforce_pp", beta=1.0), tmp_path / "charged", iterations=2)
    for key, value in plain.weights.items():  # one step: the policy is still its own reference
        assert torch.isfinite(value).all(), key
    assert charged.metrics[0]["update/loss"] == pytest.approx(plain.metrics[0]["update/loss"], abs=1e-4)


def test_a_sampler_that_is_the_trainer_needs_no_correction(start: Start, tmp_path: Path) -> None:
    plain = run(start, small("grpo"), tmp_path / "plain")
    for kind in ("token", "sequence"):
        corrected = run(start, small("grpo", mismatch=kind), tmp_path / kind)
        for key in plain.weights:
            assert torch.allclose(plain.weights[key], corrected.weights[key], atol=5e-3), key


def test_a_wrong_sampler_is_weighed(start: Start, tmp_path: Path) -> None:
    result = run(start, small("grpo"), tmp_path)
    start.policy.model.load_state_dict(start.weights)
    algorithm = small("grpo", mismatch="token")
    credit = algorithm.credit(result.groups)
    for episode in trainable(result.groups):
        episode.trace.logprobs = [value - 1.0 * bool(value) for value in episode.trace.logprobs]
    plain = training_rows(credit, start.policy)
    rows = training_rows(credit, start.policy, variant=algorithm.loss)
    for a, b in zip(plain, rows):
        assert b.advantages == pytest.approx(2.0 * a.advantages, abs=1e-6)  # e is above the cap
        assert b.old_logprobs[b.loss_mask] == pytest.approx(a.old_logprobs[a.loss_mask] + 1.0, abs=1e-3)


def test_masked_tokens_change_no_gradient(start: Start, tmp_path: Path) -> None:
    """What the agent read is context: an update does not depend on what is written about it in the row."""
    result = run(start, small("grpo"), tmp_path)
    algorithm = small("grpo")
    weights = []
    for poison in (0.0, 5.0):
        start.policy.model.load_state_dict(start.weights)
        rows = training_rows(algorithm.credit(result.groups), start.policy)
        for row in rows:
            row.old_logprobs[~row.loss_mask] += poison
            row.advantages[~row.loss_mask] += poison
        updater = Updater(start.policy.lm, LossVariant(), OptimizerConfig(lr=1e-3), total_updates=1)
        updater.update(rows, np.random.default_rng(0))
        weights.append(copy.deepcopy(start.policy.model.state_dict()))
    assert same(*weights)


def test_entropy_scaling_does_not_depend_on_micro_batches(start: Start, tmp_path: Path) -> None:
    result = run(start, small("aepo"), tmp_path)
    weights = []
    for tokens in (200, 100_000):
        start.policy.model.load_state_dict(start.weights)
        algorithm = small("aepo")
        rows = training_rows(algorithm.credit(result.groups), start.policy)
        config = OptimizerConfig(lr=1e-3, tokens_per_micro_batch=tokens)
        updater = Updater(start.policy.lm, algorithm.loss, config, total_updates=1)
        updater.update(rows, np.random.default_rng(0))
        weights.append(copy.deepcopy(start.policy.model.state_dict()))
    for key in weights[0]:
        assert torch.allclose(weights[0][key], weights[1][key], atol=1e-3), key


def calls_on_easy(groups: list[Group]) -> float:
    free: list[Episode] = [row for group in groups for row in group if row.level == tiny.EASY and not row.tool_free]
    return float(np.mean([row.tool_calls for row in free]))


@pytest.mark.slow
def test_eapo_lowers_calls_where_the_agent_knows_the_answer(tmp_path: Path) -> None:
    """From one start, on problems it has learnt by heart, EAPO gives the tool up; GRPO keeps part of its calls."""
    start = cold_start(500)
    last = {}
    for name in ("grpo", "eapo"):
        optimizer = OptimizerConfig(lr=3e-4, tokens_per_micro_batch=3000)
        result = run(start, small(name), tmp_path / name, 40, optimizer=optimizer, tasks_per_iteration=12)
        first = calls_on_easy(result.groups[:12])
        last[name] = calls_on_easy(result.groups[-60:])
        assert 0.2 < first < 1.5
    assert last["eapo"] < 0.2
    assert last["grpo"] > last["eapo"] + 0.1
