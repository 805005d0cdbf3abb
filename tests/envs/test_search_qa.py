"""SearchQA: the contract, repeated queries, scoring, hostile passages, failing servers, shared indexes."""

import gc
import json
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agentic_gym  # noqa: F401
from agentic_gym.actions import Grammar
from agentic_gym.check_env import check_text_env
from agentic_gym.envs.search_qa import SearchQA
from agentic_gym.envs.search_world import SearchWorld, shared_world
from agentic_gym.tasks import Task, TaskSet
from agentic_gym.tools.retrieval import BM25Retriever, HTTPRetriever
from agentic_gym.tools.search import Passage, SearchUnavailable
from tests.tools.retrieval.search_servers import http_reply, raw_server, read_request

QUESTION = TaskSet([Task("q", "Where is Loa?", ("the Ebb valley", "Ebb Valley, Norland"))], name="one")


class Fixed:
    """A retriever that always returns the same passages."""

    def __init__(self, *passages):
        self.passages = list(passages)
        self.asked = []

    def search(self, queries, k):
        self.asked += queries
        return [self.passages[:k] for _ in queries]


def make(*passages, **settings):
    env = SearchQA(QUESTION, retriever=Fixed(*passages), **settings)
    env.reset(seed=0)
    return env


def test_the_contract_holds():
    check_text_env(gym.make("agentic_gym/SearchQA-v0"))
    check_text_env(SearchQA("world-test", levels=[2]))


def test_search_read_answer():
    env = make(Passage("1", "Loa", "Loa lies in the Ebb valley."), Passage("2", "Ebb", "A river."))
    observation, reward, terminated, truncated, info = env.step("<think>Hm.</think><search>Loa valley</search>")
    assert observation == (
        "<result>Doc 1(Title: Loa) Loa lies in the Ebb valley.\nDoc 2(Title: Ebb) A river.</result>"
    )
    assert (reward, terminated, truncated, info["tool_calls"]) == (0.0, False, False, 1)
    assert (info["search"].query, info["search"].new, info["search"].repeated) == ("Loa valley", ("1", "2"), False)
    _, reward, terminated, truncated, info = env.step("<answer>Ebb Valley</answer>")
    assert (reward, terminated, truncated, info["success"], info["outcome"]) == (1.0, True, False, True, "solved")


def test_a_repeated_query_is_answered_from_memory_and_flagged():
    env = make(Passage("1", "Loa", "text"))
    first = env.step("<search>Where is  LOA</search>")[0]
    observation, _, _, _, info = env.step('<tool_call>{"name": "search", "arguments": {"query": "where is Loa"}}</tool_call>')
    assert observation == first.replace("</result>", "\n(You asked this before.)</result>")
    assert (info["search"].repeated, info["search"].new, info["tool_calls"]) == (True, (), 2)
    assert env.retriever.asked == ["Where is LOA"]
    env.reset()
    assert env.step("<search>where is loa</search>")[4]["search"].repeated is False


@pytest.mark.parametrize(
    ("answer", "em", "f1"),
    [("The Ebb Valley!", 1.0, 1.0), ("ebb", 0.0, 2 / 3), ("Ebb Valley Norland", 1.0, 1.0), ("nowhere", 0.0, 0.0)],
)
@pytest.mark.parametrize("metric", ["em", "f1"])
def test_rewards(metric, answer, em, f1):
    _, reward, _, _, info = make(metric=metric).step(f"<answer>{answer}</answer>")
    assert reward == info["score"] == pytest.approx(em if metric == "em" else f1)
    assert (info["success"], info["outcome"]) == (bool(em), "solved" if em else "failed")


def test_four_turns_by_default():
    env = make()
    flags = [env.step(f"<search>q{i}</search>")[2:4] for i in range(4)]
    assert flags == [(False, False)] * 3 + [(False, True)]


def test_same_seed_same_task():
    first, second = gym.make("agentic_gym/SearchQA-v0"), gym.make("agentic_gym/SearchQA-v0")
    for seed in range(5):
        assert first.reset(seed=seed)[0] == second.reset(seed=seed)[0]


# Hostile passages.

NAMES = ["result", "answer", "search", "think", "tool_call"]
TAGS = [*[f"<{name}>" for name in NAMES], *[f"</{name}>" for name in NAMES], "<|im_end|>"]
NOISE = ["< / result >", "</RESULT>", "<Answer>", "\x00", "\x1b[2J", "\u202e", "\r", "\n", "a", "<"]
HOSTILE = st.lists(st.sampled_from([*TAGS, *NOISE]))


@settings(max_examples=200, deadline=None)
@given(HOSTILE.map("".join), HOSTILE.map("".join))
def test_no_passage_closes_a_result_or_writes_a_tag(title, text):
    env = make(Passage("1", title, text))
    observation, _, terminated, truncated, _ = env.step("<search>x</search>")
    assert (terminated, truncated) == (False, False)
    assert observation.startswith("<result>Doc 1(Title: ")
    assert observation.endswith("</result>")
    inner = observation.removeprefix("<result>").removesuffix("</result>")
    assert Grammar(tools=("search",)).parse(inner).kind == "malformed"
    assert not any(tag in inner.lower() for tag in TAGS)
    assert not any(ord(c) < 32 or c in "\x7f\u202e" for c in inner)


@pytest.mark.parametrize("text", ["word " * 200_000, "<answer>" * 130_000, "\x00" * 1_000_000])
def test_a_megabyte_passage_fits_the_budget(text):
    env = make(Passage("1", text, text), Passage("2", "Loa", "short"))
    observation, _, terminated, _, _ = env.step("<search>x</search>")
    assert len(observation) < 10_000
    assert "Doc 2(Title: Loa) short" in observation
    assert not terminated
    assert env.step("<answer>Ebb Valley</answer>")[4]["success"]


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=2000))
def test_no_action_raises(text):
    env = make(Passage("1", "a", "b"))
    env.step(text)


# Failing servers: real sockets.


def test_a_server_that_fails_midway_masks_those_episodes_and_no_others():
    """Six environments, six kinds of behaviour from the second request on; the server is the only thing that differs."""
    good = http_reply({"result": [[{"document": {"id": "1", "contents": "Loa\nIn the Ebb valley."}, "score": 1.0}]]})

    def behave(connection, stop):
        query = read_request(connection)["queries"][0]
        kind = query.rpartition(" ")[2] if "again" in query else "good"
        if kind == "hang":
            stop.wait(30)
        elif kind == "500":
            connection.sendall(http_reply(b"", "500 Internal Server Error"))
        elif kind == "garbage":
            connection.sendall(b"\x00\xff" * 500)
        elif kind == "half":
            connection.sendall(good[: len(good) // 2])
        elif kind == "good":
            connection.sendall(good)
        # "die": closes without a word

    kinds = ["good", "hang", "500", "garbage", "half", "die"]
    with raw_server(behave) as url:
        retriever = HTTPRetriever(url, timeout=2.0, retries=1, backoff=0.01)
        envs = {kind: SearchQA(QUESTION, retriever=retriever) for kind in kinds}

        def play(kind):
            env = envs[kind]
            env.reset(seed=0)
            first = env.step("<search>Loa</search>")
            return first, env.step(f"<search>Loa again {kind}</search>")

        with ThreadPoolExecutor(len(kinds)) as pool:
            played = dict(zip(kinds, pool.map(play, kinds)))
        for kind, (first, second) in played.items():
            assert first[4]["tool"].status == "ok"
            _, reward, terminated, truncated, info = second
            if kind == "good":
                assert (terminated, truncated) == (False, False)
                assert envs[kind].step("<answer>Ebb valley</answer>")[4]["outcome"] == "solved"
            else:
                assert (reward, terminated, truncated, info["outcome"]) == (0.0, False, True, "masked"), kind
                assert info["tool"].status == "unavailable"
                envs[kind].reset(seed=1)
                assert envs[kind].step("<search>Loa</search>")[4]["tool"].status == "ok"


def test_an_unavailable_reply_is_not_remembered():
    class Flaky(Fixed):
        def search(self, queries, k):
            if not self.asked:
                self.asked += queries
                raise SearchUnavailable("down")
            return super().search(queries, k)

    env = SearchQA(QUESTION, retriever=Flaky(Passage("1", "a", "b")))
    env.reset(seed=0)
    assert env.step("<search>x</search>")[4]["outcome"] == "masked"
    env.reset(seed=0)
    assert env.step("<search>x</search>")[4]["tool"].status == "ok"


# Sharing.


def test_a_thousand_environments_share_one_index():
    world = shared_world()
    SearchQA().reset(seed=0)
    gc.collect()
    tracemalloc.start()
    envs = [SearchQA() for _ in range(1000)]
    for seed, env in enumerate(envs):
        env.reset(seed=seed)
    grown = tracemalloc.get_traced_memory()[0] / len(envs)
    tracemalloc.stop()
    assert grown < 100_000  # bytes
    assert len({id(env.retriever) for env in envs}) == 1
    assert envs[0].retriever is world.retriever


def test_vectorised():
    envs = gym.make_vec("agentic_gym/SearchQA-v0", num_envs=3, vectorization_mode="sync")
    observations, _ = envs.reset(seed=[1, 2, 3])
    assert len(observations) == 3
    results, rewards, *_ = envs.step(["<search>river</search>", "<answer>x</answer>", "nonsense"])
    assert results[0].startswith("<result>Doc 1")
    assert results[1] == "Wrong."
    assert np.all(rewards == 0)
    envs.close()


# Tasks and retrievers by name.


def test_tasks_from_a_file_and_a_corpus_by_path(tmp_path, monkeypatch):
    monkeypatch.setenv("AGENTIC_GYM_CACHE", str(tmp_path / "cache"))
    (tmp_path / "c.jsonl").write_text('{"id": "p", "title": "Loa", "text": "Loa lies on the Ebb."}\n')
    (tmp_path / "q.jsonl").write_text(json.dumps({"id": "x", "question": "Where is Loa?", "golden_answers": ["Ebb"]}) + "\n")
    env = SearchQA(tmp_path / "q.jsonl", retriever=tmp_path / "c.jsonl")
    question, info = env.reset(seed=0)
    assert question == "Where is Loa?"
    assert "Loa lies on the Ebb." in env.step("<search>Loa</search>")[0]
    again = SearchQA(str(tmp_path / "q.jsonl"), retriever=str(tmp_path / "c.jsonl"))
    assert again.retriever is env.retriever
    assert info["task_id"] == "q-test-x"


def test_real_questions(shared_data, tmp_path):
    retriever = BM25Retriever(shared_data / "qa" / "corpus.jsonl", cache=tmp_path)
    env = SearchQA(shared_data / "qa" / "questions.jsonl", retriever=retriever)
    assert len(env.tasks) == 150
    env.reset(options={"task": 0})
    info = env.step(f"<search>{env.task.prompt}</search>")[4]
    assert set(info["search"].new) & set(env.task.info["gold"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"metric": "bleu"}, "metric must be 'em', 'f1' or None, got 'bleu'"),
        ({"tasks": QUESTION}, "pass retriever="),
        ({"levels": [7]}, "levels must be numbers from 0 to 4"),
        ({"levels": ["hard"]}, "levels must be numbers from 0 to 4"),
        ({"tasks": TaskSet([Task("q", "?")]), "retriever": Fixed()}, "task 'q' of 'tasks' has no answer"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        SearchQA(**arguments)


def test_an_unknown_data_set_is_named():
    with pytest.raises(FileNotFoundError, match=r"'hotpot'; known data sets: nq, .*hotpotqa"):
        SearchQA("hotpot", retriever=Fixed())


def test_a_world_of_ones_own():
    world = SearchWorld(seed=5, passages=600)
    env = SearchQA(world.tasks("dev", levels=[1], per_level=3), retriever=world.retriever)
    question, _ = env.reset(seed=0)
    assert env.step(f"<search>{question}</search>")[4]["search"].passages[0].id == env.task.info["gold"][0]
