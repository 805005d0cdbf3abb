"""The loop: resuming equals running straight, and what goes wrong is said once, with the last checkpoint intact."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from agentic_gym.policies.base import Sampling
from agentic_gym.trainers.algorithms import LossVariant, make_algorithm
from agentic_gym.trainers.checkpoint import CheckpointError, Checkpoints
from agentic_gym.trainers.config import AlgorithmConfig, OptimizerConfig, TrainConfig
from agentic_gym.trainers.grpo import choose_tasks, train
from agentic_gym.trainers.rollout import EnvPool
from agentic_gym.trainers.run import Run
from agentic_gym.trainers.update import TrainingError


def config(output: Path, **changes: object) -> TrainConfig:
    base = TrainConfig(
        output=output,
        algorithm=AlgorithmConfig("eapo"),
        sampling=Sampling(max_tokens=16),
        optimizer=OptimizerConfig(lr=1e-3, mini_batches=2, tokens_per_micro_batch=400),
        iterations=4,
        tasks_per_iteration=3,
        checkpoint_every=2,
    )
    return replace(base, **changes)


def algorithm(name: str = "eapo"):
    return make_algorithm(name, group_size=4, **({"tool_free": 1} if "eapo" in name else {}))


def run_training(policy, make_env, tasks, settings: TrainConfig, rule=None) -> Run:
    ids = [task.id for task in tasks]
    with EnvPool(make_env) as pool, Run(settings) as run:
        train(policy, pool, ids, rule or algorithm(settings.algorithm.name), settings, run)
    return run


def weights(policy) -> list[torch.Tensor]:
    return [p.detach().clone() for p in policy.model.parameters()]


class Interrupt(Exception):
    pass


def without_times(path: Path) -> list[dict]:
    """Recorded episodes but for the seconds that tools took."""
    episodes = [json.loads(line) for line in path.read_text().splitlines()]
    for episode in episodes:
        for step in episode["steps"]:
            if step["tool"]:
                step["tool"].pop("seconds")
    return episodes


@pytest.mark.parametrize("stop_at", [1, 2, 3])
def test_a_resumed_run_equals_the_straight_one(policy, make_env, tasks, tmp_path, stop_at):
    start = {k: v.clone() for k, v in policy.model.state_dict().items()}
    straight = run_training(policy, make_env, tasks, config(tmp_path / "straight"))
    expected, expected_metrics = weights(policy), straight.metrics()

    policy.model.load_state_dict(start)
    settings = config(tmp_path / "resumed")
    ids = [task.id for task in tasks]
    with EnvPool(make_env) as pool, Run(settings) as run:
        log = run.log

        def interrupted(iteration, *args):
            log(iteration, *args)
            if iteration == stop_at:
                raise Interrupt

        run.log = interrupted
        with pytest.raises(Interrupt):
            train(policy, pool, ids, algorithm(), settings, run)
    policy.model.load_state_dict(start)
    resumed = run_training(policy, make_env, tasks, settings)

    assert all(torch.equal(a, b) for a, b in zip(weights(policy), expected, strict=True))
    assert resumed.metrics() == expected_metrics
    assert without_times(tmp_path / "straight/episodes.jsonl") == without_times(tmp_path / "resumed/episodes.jsonl")


@pytest.mark.parametrize("name", ["grpo", "eapo", "triage", "eapo+triage"])
def test_every_algorithm_changes_the_policy(policy, make_env, tasks, tmp_path, name):
    before = weights(policy)
    run = run_training(policy, make_env, tasks, config(tmp_path, iterations=1, algorithm=AlgorithmConfig(name)))
    assert any(not torch.equal(a, b) for a, b in zip(before, weights(policy), strict=True))
    assert run.metrics()[0]["rollout/episodes"] == 12
    assert run.checkpoints.latest() is not None


@pytest.mark.parametrize("prompt", ["sampled", "normal"])
def test_tool_free_rows_can_be_trained_under_either_prompt(policy, make_env, tasks, tmp_path, prompt):
    settings = config(tmp_path, iterations=1, tool_free_prompt=prompt, optimizer=OptimizerConfig(lr=1e-3))
    run = run_training(policy, make_env, tasks, settings)
    # In the first update the sampler and the trainer are one policy, whatever the prompt.
    assert run.metrics()[0]["update/ratio_max"] == pytest.approx(1.0, abs=1e-4)


def test_a_kl_term_keeps_the_start_as_reference(policy, make_env, tasks, tmp_path):
    rule = replace(algorithm("triage"), loss=LossVariant(kl_coefficient=0.1))
    run_training(policy, make_env, tasks, config(tmp_path, iterations=2), rule)
    state = torch.load(tmp_path / "checkpoints/step-000002/optimizer.pt", weights_only=True)
    moved = [not torch.equal(v, state["reference"][k]) for k, v in policy.model.state_dict().items()]
    assert any(moved)
    run_training(policy, make_env, tasks, config(tmp_path, iterations=4), rule)
    again = torch.load(tmp_path / "checkpoints/step-000004/optimizer.pt", weights_only=True)
    assert all(torch.equal(v, again["reference"][k]) for k, v in state["reference"].items())


def test_a_loss_that_is_not_finite_stops_before_the_step(policy, make_env, tasks, tmp_path):
    run_training(policy, make_env, tasks, config(tmp_path, iterations=2))
    intact = Checkpoints(tmp_path / "checkpoints").latest()
    files = {p.name: p.read_bytes() for p in intact.iterdir()}
    settings = config(tmp_path, iterations=4)
    ids = [task.id for task in tasks]
    with EnvPool(make_env) as pool, Run(settings) as run:
        restore = run.restore

        def poisoned(policy, updater, algorithm):
            step = restore(policy, updater, algorithm)
            update = updater.update

            def broken(rows, rng):
                with torch.no_grad():
                    policy.model.get_output_embeddings().weight[5] = float("nan")
                return update(rows, rng)

            updater.update = broken
            return step

        run.restore = poisoned
        with pytest.raises(TrainingError, match="no step was taken"):
            train(policy, pool, ids, algorithm("triage"), settings, run)
    assert {p.name: p.read_bytes() for p in intact.iterdir()} == files


def test_a_full_disk_leaves_the_last_checkpoint(policy, make_env, tasks, tmp_path, monkeypatch):
    saves = []
    real = torch.save

    def full(state, path):
        saves.append(path)
        if len(saves) == 2:
            Path(path).write_bytes(b"half a file")
            raise OSError(28, "No space left on device")
        return real(state, path)

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(CheckpointError, match=r"No space left on device.*step-000002, is intact"):
        run_training(policy, make_env, tasks, config(tmp_path))
    assert [p.name for p in Checkpoints(tmp_path / "checkpoints").all()] == ["step-000002"]
    assert [p.name for p in (tmp_path / "checkpoints").iterdir()] == ["step-000002"]


def test_all_episodes_failing_stops_the_run(policy, make_env, tasks, tmp_path):
    def broken():
        env = make_env()
        env.unwrapped.step = lambda _: 1 / 0
        return env

    with pytest.raises(TrainingError, match=r"all 12 episodes failed.*division by zero"):
        run_training(policy, broken, tasks, config(tmp_path))


def test_every_task_is_drawn_once_an_epoch():
    tasks = [f"t{i}" for i in range(10)]
    drawn = [t for i in range(10) for t in choose_tasks(tasks, 3, i, seed=1)]
    assert all(sorted(drawn[k : k + 10]) == sorted(tasks) for k in (0, 10, 20))
    assert drawn[:10] != drawn[10:20]
    assert choose_tasks(tasks, 3, 2, seed=1) == drawn[6:9]


def test_a_run_is_not_continued_under_other_settings(policy, make_env, tasks, tmp_path):
    run_training(policy, make_env, tasks, config(tmp_path, iterations=2))
    before = (tmp_path / "config.json").read_text()
    other = config(tmp_path, iterations=4, optimizer=OptimizerConfig(lr=1e-5, mini_batches=2, tokens_per_micro_batch=400))
    with pytest.raises(ValueError, match=r"begun with other settings \(optimizer\.lr 0\.001 -> 1e-05\)"):
        run_training(policy, make_env, tasks, other)
    assert (tmp_path / "config.json").read_text() == before
    run_training(policy, make_env, tasks, config(tmp_path, iterations=3, checkpoint_every=1))


def test_prompts_longer_than_the_window_stop_the_run(policy, make_env, tasks, tmp_path):
    policy.max_length = 5
    with pytest.raises(TrainingError, match="no prompt fits into the policy's window of 5 tokens"):
        run_training(policy, make_env, tasks, config(tmp_path))


def test_a_checkpoint_remembers_how_the_model_was_prompted(policy, make_env, tasks, tmp_path):
    from agentic_gym.policies.transformers import TransformersPolicy

    run = run_training(policy, make_env, tasks, config(tmp_path, iterations=1))
    loaded = TransformersPolicy.from_pretrained(run.checkpoints.latest(), dtype="float32", device="cpu")
    assert loaded.format.describe() == policy.format.describe()
    assert loaded.format.prompt_ids("", "12+34=?") == policy.format.prompt_ids("", "12+34=?")
