"""The random policy and the scripted expert of MathTools."""

from collections.abc import Iterator

import gymnasium as gym
import pytest

from agentic_gym.actions import Grammar
from agentic_gym.envs.math_tasks import generate_arithmetic
from agentic_gym.episodes import Episode
from agentic_gym.policies import Policy, RandomPolicy, Sampling, ScriptedMathPolicy
from agentic_gym.tasks import Task, TaskSet
from agentic_gym.trainers.rollout import EnvPool, EpisodeRequest, rollout
from agentic_gym.wrappers import ToolFree
from tests.toys import Corridor, Sums

TASKS = generate_arithmetic(3)


@pytest.fixture(scope="module")
def pool() -> Iterator[EnvPool]:
    def make() -> gym.Env[str, str]:
        return ToolFree(gym.make("agentic_gym/MathTools-v0", tasks=TASKS, cache=True))

    with EnvPool(make) as pool:
        yield pool


def play(policy: Policy, pool: EnvPool, *, tool_free: bool = False) -> list[Episode]:
    requests = [EpisodeRequest(task.id, seed, tool_free) for seed, task in enumerate(TASKS)]
    return rollout(policy, pool, requests, Sampling())


def test_the_expert_solves_every_level_with_one_call(pool: EnvPool) -> None:
    episodes = play(ScriptedMathPolicy(TASKS), pool)
    assert [(e.success, e.tool_calls, len(e.steps), e.well_formed) for e in episodes] == [(True, 1, 2, True)] * len(
        TASKS
    )


def test_the_expert_reads_results_and_not_answers(pool: EnvPool) -> None:
    lies = TaskSet([Task(task.id, task.prompt, "-77", task.level, dict(task.info)) for task in TASKS])
    assert all(episode.success for episode in play(ScriptedMathPolicy(lies), pool))


def test_mistakes_come_at_their_rate_and_from_the_seed(pool: EnvPool) -> None:
    runs = [play(ScriptedMathPolicy(TASKS, mistake_rate=0.5, seed=seed), pool) for seed in (1, 1, 2)]
    actions = [[step.action for episode in run for step in episode.steps] for run in runs]
    assert actions[0] == actions[1] != actions[2]
    solved = sum(episode.success for episode in runs[0])
    assert 0 < solved < len(TASKS)
    assert {step.kind for episode in runs[0] for step in episode.steps} == {"tool", "answer", "malformed"}
    assert not any(episode.success for episode in play(ScriptedMathPolicy(TASKS, mistake_rate=1.0), pool))


def test_a_tool_free_episode_is_guessed(pool: EnvPool) -> None:
    episodes = play(ScriptedMathPolicy(TASKS), pool, tool_free=True)
    assert all(e.tool_calls == 0 and len(e.steps) == 1 and e.well_formed for e in episodes)


def test_thoughts_can_be_left_out() -> None:
    policy = ScriptedMathPolicy(TASKS, thoughts=False)
    assert policy.respond([Episode(TASKS[0].id, "", "")], Sampling())[0].text.startswith("<python>")


def test_tasks_without_a_program_are_refused() -> None:
    policy = ScriptedMathPolicy(TaskSet([Task("gsm-1", "How many?", "3")]))
    with pytest.raises(ValueError, match="'gsm-1' has neither a program nor an expression"):
        policy.respond([Episode("gsm-1", "", "")], Sampling())


def test_an_expression_is_printed() -> None:
    policy = ScriptedMathPolicy(TaskSet([Task("t", "", info={"expression": "1 + 1"})]), thoughts=False)
    assert policy.respond([Episode("t", "", "")], Sampling())[0].text == "<python>print(1 + 1)</python>"


@pytest.mark.parametrize("rate", [-0.1, 1.1])
def test_a_bad_rate_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="mistake_rate is a chance from 0 to 1"):
        ScriptedMathPolicy(TASKS, mistake_rate=rate)


def test_random_actions_are_admissible_and_repeat() -> None:
    def run(seed: int) -> list[list[str]]:
        with EnvPool(Corridor) as pool:
            requests = [EpisodeRequest(i % 3, i) for i in range(12)]
            episodes = rollout(RandomPolicy(seed), pool, requests, Sampling())
        assert all("cannot" not in step.observation for episode in episodes for step in episode.steps)
        return [[step.action for step in episode.steps] for episode in episodes]

    assert run(0) == run(0) != run(1)


def test_random_blocks_are_well_formed_and_of_every_kind() -> None:
    instructions = Sums().instructions
    grammar = Grammar(tools=("python", "search"))
    policy = RandomPolicy(3)
    texts = [policy.respond([Episode("t", instructions, "", seed=i)], Sampling())[0].text for i in range(60)]
    parsed = [grammar.parse(text) for text in texts]
    assert {(p.kind, p.name) for p in parsed} == {("tool", "python"), ("tool", "search"), ("answer", "")}
    assert len(set(texts)) > 20


def test_a_random_action_does_not_depend_on_its_neighbours() -> None:
    episodes = [Episode(str(i), Sums().instructions, "", seed=i) for i in range(5)]
    together = RandomPolicy().respond(episodes, Sampling())
    assert together == [RandomPolicy().respond([episode], Sampling())[0] for episode in episodes]
    assert RandomPolicy().respond([Episode("t", "", "")], Sampling())[0].text.startswith("<answer>")
