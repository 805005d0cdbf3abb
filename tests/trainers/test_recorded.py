"""Recorded rollouts: what is on disk after every batch, after a failure, and after Ctrl-C in the middle of a call."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from agentic_gym.policies.base import Sampling, as_policy
from agentic_gym.trainers.recorded import progress_bar, recorded_rollout
from agentic_gym.trainers.rollout import EnvPool, group_requests
from agentic_gym.wrappers import RecordEpisodes
from tests.processes import READABLE, alive, eventually, family
from tests.toys import Sums

ROOT = Path(__file__).resolve().parents[2]
REQUESTS = group_requests([0, 1, 2, 3, 4], group_size=1)


def test_each_batch_is_on_disk_before_the_next(tmp_path):
    path = tmp_path / "episodes.jsonl"
    seen = []

    def agent(observation, info):
        seen.append(len(RecordEpisodes.load(path)) if path.exists() else 0)
        return "<answer>1</answer>"

    ended = []
    with EnvPool(Sums) as pool:
        played = recorded_rollout(
            as_policy(agent), pool, REQUESTS, Sampling(), parallel=2, path=path, on_finished=ended.append
        )
    assert seen == [0, 0, 2, 2, 4]
    assert [e.task_id for e in played] == [f"sum-{i}" for i in range(5)]
    assert [e.to_dict() for e in RecordEpisodes.load(path)] == [e.to_dict() for e in played]
    assert ended == played


def test_what_had_ended_is_kept_when_the_policy_fails(tmp_path):
    path = tmp_path / "episodes.jsonl"

    def agent(observation, info):
        if "action" in info:
            raise RuntimeError("the server is gone")
        return "<answer>1</answer>" if "What is 1" in observation or "What is 2" in observation else "hm"

    with EnvPool(Sums) as pool, pytest.raises(RuntimeError, match="the server is gone"):
        recorded_rollout(as_policy(agent), pool, REQUESTS, Sampling(), parallel=5, path=path)
    assert [e.task_id for e in RecordEpisodes.load(path)] == ["sum-1", "sum-2"]


def test_no_bar_where_there_is_no_terminal():
    shown = io.StringIO()
    with progress_bar(Console(file=shown)) as progress:
        progress.add_task("episodes", total=3)
    assert shown.getvalue().strip() == ""


SCRIPT = """
import sys
from contextlib import contextmanager
from agentic_gym.commands import rollout
from agentic_gym.policies.base import as_policy
from agentic_gym.cli import main

def agent(observation, info):
    if "level" in info:
        return "<python>1</python>" if info["level"] else "<answer>1</answer>"
    print("hanging", flush=True)
    return "<python>while True: pass</python>"

@contextmanager
def opened(*arguments, **settings):
    yield as_policy(agent)

rollout.open_policy = opened
sys.exit(main(["rollout", "MathTools", "--with", "levels=[0, 1]", "timeout=60", "--episodes", "6",
               "--out", sys.argv[1], "--parallel", sys.argv[2], "--seed", sys.argv[3]]))
"""


@pytest.mark.skipif(not READABLE, reason="looks at processes by /proc")
@pytest.mark.parametrize(("parallel", "seed", "easy"), [("6", "0", 3), ("1", "1", 1)])
def test_ctrl_c_in_a_call_ends_at_once_loses_nothing_and_leaves_no_process(tmp_path, parallel, seed, easy):
    path = tmp_path / "episodes.jsonl"
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(path), parallel, seed],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "hanging\n"
        time.sleep(1.0)  # into the endless call
        children = family(process.pid)
        assert children, "the tool runs in processes of its own"
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        _, errors = process.communicate(timeout=50)
        waited = time.monotonic() - began
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, errors.splitlines()[-1]) == (130, "agentic-gym rollout: interrupted")
    assert waited < 10, "the call's limit is a minute; an idle machine takes half a second"
    assert eventually(lambda: not any(map(alive, children)), 10), "processes are left"
    kept = RecordEpisodes.load(path)
    assert [(e.level, e.outcome) for e in kept] == [(0, "failed")] * easy
