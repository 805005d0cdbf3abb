"""The benchmark runs, and many environments in one process keep their memory."""

import random
import resource

import pytest

from agentic_gym.benchmarks.speed.alfworld import main
from agentic_gym.envs.alfworld.env import ALFWorld
from agentic_gym.envs.alfworld.tasks import generated_tasks


def test_the_benchmark_prints_a_table(capsys):
    assert main(["--games", "1", "--steps", "200", "--memory-steps", "5", "--stock-steps", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].startswith("fast")


@pytest.mark.slow
def test_a_million_steps_of_64_environments_do_not_grow():
    tasks = generated_tasks(64)
    envs = [ALFWorld(tasks) for _ in range(64)]
    rng = random.Random(0)
    infos = [env.reset(seed=i, options={"task": i})[1] for i, env in enumerate(envs)]
    memory = []
    for step in range(1_000_000 // 64):
        for i, env in enumerate(envs):
            *_, terminated, truncated, infos[i] = env.step(rng.choice(infos[i]["admissible_actions"]))
            if terminated or truncated:
                infos[i] = env.reset()[1]
        if step % 2500 == 2499:
            memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    # By the first reading all 64 games and their commands are in memory; the peak may then move by a few pages only.
    assert memory[-1] < memory[1] * 1.03
