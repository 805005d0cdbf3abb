"""The scripted experts of SearchQA."""

from collections import Counter

import pytest

from agentic_gym.envs.search_qa import SearchQA
from agentic_gym.envs.search_qa_expert import NoisySearchExpert, SearchExpert
from agentic_gym.envs.search_world import shared_world
from agentic_gym.episodes import Episode
from agentic_gym.policies import Policy, Sampling
from agentic_gym.roles import Role
from agentic_gym.tasks import Task, TaskSet
from agentic_gym.tools.retrieval import Corpus
from agentic_gym.tools.search import Passage
from agentic_gym.wrappers import RoleLabels, ToolFree


def play(env, expert, task, seed=0, options=None):
    observation, info = env.reset(seed=seed, options={"task": task, **(options or {})})
    episode = Episode(info["task_id"], info["instructions"], observation, info["level"], seed, bool(options), info=info)
    while not episode.done:
        (response,) = expert.respond([episode], Sampling())
        episode.record(response, *env.step(response.text))
    return episode


@pytest.fixture(scope="module")
def tasks():
    return shared_world().tasks("test", levels=range(5), per_level=40)


@pytest.fixture
def env(tasks):
    return RoleLabels(SearchQA(tasks, retriever=shared_world().retriever, max_turns=5))


def test_the_expert_solves_everything_with_one_search_a_hop(env, tasks):
    expert = SearchExpert(tasks)
    assert isinstance(expert, Policy)
    for task in tasks:
        episode = play(env, expert, task.id)
        assert (episode.success, episode.tool_calls) == (True, task.level), task
        assert episode.steps[-1].role is Role.DECISIVE


def test_every_search_of_the_expert_brings_evidence(env, tasks):
    """All but a few: a passage may come early, with the search for another."""
    found = Counter(step.role for task in tasks for step in play(env, SearchExpert(tasks), task.id).steps[:-1])
    assert found[Role.EXPLORATION] > 0.95 * found.total()


def test_it_answers_what_it_found_when_turns_run_out(tasks):
    env = SearchQA(tasks, retriever=shared_world().retriever, max_turns=3)
    task = next(task for task in tasks if task.level == 3)
    episode = play(env, SearchExpert(tasks), task.id)
    assert episode.steps[-1].action.endswith(f"<answer>{task.info['chain'][1]['object']}</answer>")
    assert episode.outcome == "failed"


def test_without_tools_it_knows_the_easy_band_only(tasks):
    env = ToolFree(SearchQA(tasks, retriever=shared_world().retriever))
    for task in (tasks.filter(levels=0)[0], tasks.filter(levels=2)[0]):
        episode = play(env, SearchExpert(tasks), task.id, options={"tool_free": True})
        assert (episode.success, episode.tool_calls) == (task.level == 0, 0)


def test_noise_makes_mixed_groups_and_every_role(env, tasks):
    expert = NoisySearchExpert(tasks, noise=0.4)
    episodes = [play(env, expert, task.id, seed) for task in tasks.filter(levels=2)[:10] for seed in range(6)]
    solved = sum(episode.success for episode in episodes) / len(episodes)
    assert 0.2 < solved < 0.9
    assert {step.role for episode in episodes for step in episode.steps} == set(Role)


def test_noise_is_repeatable(env, tasks):
    task = tasks.filter(levels=3)[0]
    runs = [[s.action for s in play(env, NoisySearchExpert(tasks, seed=seed), task.id, 3).steps] for seed in (1, 1)]
    assert runs[0] == runs[1]
    assert len({tuple(s.action for s in play(env, NoisySearchExpert(tasks, noise=0.5), task.id, s).steps) for s in range(8)}) > 1


def test_no_noise_is_the_expert(env, tasks):
    task = tasks.filter(levels=3)[1]
    noisy, plain = NoisySearchExpert(tasks, noise=0), SearchExpert(tasks)
    assert [s.action for s in play(env, noisy, task.id).steps] == [s.action for s in play(env, plain, task.id).steps]


def test_gold_passages_without_a_chain():
    corpus = Corpus([Passage("a", "Loa", "x"), Passage("b", "Ebb", "y")])
    by_id = Task("t", "Where?", ("there",), info={"gold": ["b"]})
    tasks = TaskSet([by_id, Task("u", "Who?", "me", info={"gold_titles": ["Loa"]})])
    expert = SearchExpert(tasks, corpus=corpus)
    assert [lookup.query for lookup in expert._plan(tasks["t"])] == ["Where?", "Ebb"]
    assert [lookup.query for lookup in expert._plan(tasks["u"])] == ["Who?", "Loa"]


@pytest.mark.parametrize("noise", [-0.1, 1.5])
def test_bad_settings(noise, tasks):
    with pytest.raises(ValueError, match="noise in"):
        NoisySearchExpert(tasks, noise=noise)
    with pytest.raises(ValueError, match="at least two"):
        NoisySearchExpert(tasks[:1])
