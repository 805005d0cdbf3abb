"""A run on disk: resuming after every kind of end, Ctrl-C in a real process, the same figures in every process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from agentic_gym.policies.base import Sampling
from agentic_gym.trainers.checkpoint import CheckpointError, Checkpoints
from agentic_gym.trainers.config import OptimizerConfig, TrainConfig
from agentic_gym.trainers.run import Run
from tests.processes import READABLE, alive, eventually, family

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = TrainConfig(
    sampling=Sampling(max_tokens=12),
    optimizer=OptimizerConfig(lr=1e-3, tokens_per_micro_batch=400),
    tasks_per_iteration=2,
    checkpoint_every=1,
)

SCRIPT = """
import hashlib, sys, warnings
from pathlib import Path
import gymnasium as gym, torch
import agentic_gym
from agentic_gym.benchmarks.experiments import tiny
from agentic_gym.policies.base import Sampling, as_policy
from agentic_gym.policies.formats import InlineFormat
from agentic_gym.policies.transformers import TransformersPolicy
from agentic_gym.trainers.algorithms import make_algorithm
from agentic_gym.trainers.config import OptimizerConfig, SFTConfig, TrainConfig
from agentic_gym.trainers.grpo import train
from agentic_gym.trainers.rollout import EnvPool, group_requests, rollout
from agentic_gym.trainers.run import Run
from agentic_gym.trainers.sft import demonstration_trace, supervised
from agentic_gym.wrappers import ToolFree

torch.set_num_threads(1)
what, output, iterations = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
tasks = tiny.tiny_tasks("train", per_level=10)


def make_env():
    env = gym.make("agentic_gym/MathTools-v0", tasks=tasks, max_turns=3, instructions="", timeout=8.0)
    return ToolFree(env, notice=tiny.NOTICE)


tokenizer = tiny.build_tokenizer()
policy = TransformersPolicy(
    tiny.build_model(tokenizer, width=32, layers=1), tokenizer, format=InlineFormat(tokenizer, tiny.TEMPLATE)
)
ids = [task.id for task in tasks]
with EnvPool(make_env) as pool:
    rollout(as_policy(lambda *_: "<python>1</python>"), pool, group_requests(ids[:2], group_size=1), Sampling())
    if what == "hang":
        print("ready", flush=True)
        endless = as_policy(lambda *_: "<python>while True: pass</python>")
        rollout(endless, pool, group_requests(ids[:2], group_size=1), Sampling())
    if what == "warm":
        traces = [demonstration_trace(e, policy) for e in tiny.demonstrations(tasks, 300)]
        supervised(policy, traces, OptimizerConfig(lr=1e-2, warmup=5), steps=40, batch=32)
    config = TrainConfig(
        output=output, sampling=Sampling(max_tokens=12), iterations=iterations, tasks_per_iteration=2, checkpoint_every=1,
        optimizer=OptimizerConfig(lr=1e-3, mini_batches=2, tokens_per_micro_batch=400),
    )
    print("ready", flush=True)
    with Run(config) as run:
        train(policy, pool, ids, make_algorithm("eapo", group_size=4, tool_free=1), config, run)
weights = torch.cat([p.detach().flatten() for p in policy.model.parameters()])
print(hashlib.sha256(weights.numpy().tobytes()).hexdigest(), flush=True)
"""


def start(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), **environment}
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
    )


@pytest.mark.skipif(not READABLE, reason="looks at processes by /proc")
@pytest.mark.parametrize("what", ["train", "hang"])
def test_ctrl_c_leaves_the_last_checkpoint_and_no_process(tmp_path, what):
    process = start(what, str(tmp_path), "100000")
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        checkpoints = Checkpoints(tmp_path / "checkpoints")
        if what == "train":
            assert eventually(lambda: len(checkpoints.all()) == 2, 300)
        else:
            time.sleep(1.0)  # into the endless call
        children = family(process.pid)
        assert children, "the tool runs in processes of its own"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    finally:
        process.kill()
        process.wait()
    assert process.returncode != 0
    assert "KeyboardInterrupt" in errors
    assert eventually(lambda: not any(map(alive, children)), 60), "processes are left"
    if what == "train":
        latest = checkpoints.latest()
        assert latest is not None
        assert not list((tmp_path / "checkpoints").glob(".*"))
        step = json.loads((latest / "state.json").read_text())["step"]
        Run(replace(SETTINGS, output=tmp_path))._truncate(step)
        lines = Run(replace(SETTINGS, output=tmp_path)).metrics()
        assert [line["iteration"] for line in lines] == list(range(step))


@pytest.mark.slow
def test_every_process_trains_to_the_same_weights(tmp_path):
    runs = [start("warm", str(tmp_path / seed), "3", PYTHONHASHSEED=seed) for seed in ("1", "2")]
    outputs = [run.communicate(timeout=400) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], outputs[0][1][-2000:]
    digests = [out.split()[-1] for out, _ in outputs]
    assert len(digests[0]) == 64
    assert digests[0] == digests[1]
    metrics = [(tmp_path / seed / "metrics.jsonl").read_text() for seed in ("1", "2")]
    assert metrics[0] == metrics[1]
    assert '"rollout/calls": 0.0,' not in metrics[0].splitlines()[0]


@pytest.mark.parametrize("rest", ['{"iteration": 2, "a": 1', '{"iteration": 2}', "\0\0\0"])
def test_a_line_cut_short_does_not_stop_the_resuming(tmp_path, rest):
    settings = replace(SETTINGS, output=tmp_path)
    with Run(settings) as run:
        for iteration in range(2):
            run.log(iteration, {"a": float(iteration), "rollout/episodes": 2.0})
        with (tmp_path / "metrics.jsonl").open("a") as file:
            file.write(rest)
        assert [row["iteration"] for row in run.metrics()] == [0, 1]
        run._truncate(1)
        run.log(1, {"a": 5.0})
        assert [row["a"] for row in run.metrics()] == [0.0, 5.0]
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 2


def test_without_a_checkpoint_everything_begins_again(tmp_path, policy):
    with Run(replace(SETTINGS, output=tmp_path)) as run:
        run.log(0, {"a": 1.0})
    with Run(replace(SETTINGS, output=tmp_path)) as run:
        assert run.restore(policy, None, None) == 0
        assert run.metrics() == []


def test_a_folder_that_cannot_be_written_names_the_last_checkpoint(tmp_path):
    with Run(replace(SETTINGS, output=tmp_path)) as run:
        (tmp_path / "metrics.jsonl").mkdir()
        with pytest.raises(CheckpointError, match=r"cannot write to .*The last checkpoint is None"):
            run.log(0, {"a": 1.0})


def test_the_configuration_stands_beside_the_run(tmp_path):
    with Run(replace(SETTINGS, output=tmp_path), context={"tasks": "abc"}):
        pass
    written = json.loads((tmp_path / "config.json").read_text())
    assert written["tasks"] == "abc"
    assert written["config"]["optimizer"]["lr"] == 1e-3
    assert written["config"]["output"] == str(tmp_path)


@pytest.mark.parametrize("damage", [b"garbage}\n", bytes(range(128, 256)) + b"}\n"])
def test_damaged_metrics_are_named_with_their_line(tmp_path, damage):
    run = Run(replace(SETTINGS, output=tmp_path))
    (tmp_path / "metrics.jsonl").write_bytes(b'{"iteration": 0}\n' + damage)
    with pytest.raises(ValueError, match=r"metrics.jsonl, line 2 holds no metrics \(.*\); mend or delete the line"):
        run.metrics()


def test_episodes_of_a_resumed_run_are_cut_whatever_they_hold(tmp_path):
    run = Run(replace(SETTINGS, output=tmp_path))
    rows = [f'{{"iteration": {i}, "rollout/episodes": 1}}\n' for i in range(2)]
    (tmp_path / "metrics.jsonl").write_text("".join(rows))
    (tmp_path / "episodes.jsonl").write_bytes(b"\xff\xfe\n\xfd\n")
    run._truncate(1)
    assert (tmp_path / "episodes.jsonl").read_bytes() == b"\xff\xfe\n"
