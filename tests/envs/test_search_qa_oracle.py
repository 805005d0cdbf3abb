"""Oracle roles of SearchQA."""

import pytest

from agentic_gym.envs.search_qa import SearchQA
from agentic_gym.envs.search_qa_oracle import is_relevant
from agentic_gym.roles import Role
from agentic_gym.tasks import Task, TaskSet
from agentic_gym.tools.search import Passage, SearchUnavailable
from agentic_gym.wrappers import RoleLabels, ToolBudget

LIBRARY = {
    "first": [Passage("g1", "Loa", "Loa lies on the Ebb."), Passage("x1", "Other", "noise")],
    "second": [Passage("g1", "Loa", "Loa lies on the Ebb."), Passage("g2", "Ebb", "The Ebb rises in Norland.")],
    "noise": [Passage("x1", "Other", "noise"), Passage("x2", "More", "noise")],
    "nothing": [],
}


class Library:
    def search(self, queries, k):
        if queries == ["down"]:
            raise SearchUnavailable("down")
        return [LIBRARY[query] for query in queries]


def roles(task, actions, wrap=lambda env: env):
    env = RoleLabels(wrap(SearchQA(TaskSet([task]), retriever=Library(), max_turns=20)))
    env.reset(seed=0)
    return [env.step(action)[4]["role"] for action in actions]


D, E, N, R = Role.DECISIVE, Role.EXPLORATION, Role.NO_PROGRESS, Role.REGRESSION
GOLD = Task("t", "In which land does Loa's river rise?", ("Norland",), info={"gold": ["g1", "g2"]})


def search(*queries):
    return [f"<search>{query}</search>" for query in queries]


def test_each_rule():
    actions = [*search("first", "noise", "nothing", "second", "first", "second"), "hm", "<answer>Norland</answer>"]
    assert roles(GOLD, actions) == [E, N, N, E, R, R, N, D]


def test_known_passages_in_another_order_bring_nothing():
    assert roles(GOLD, search("second", "first")) == [E, N]


def test_a_wrong_answer():
    assert roles(GOLD, ["<answer>Sudland</answer>"]) == [R]


def test_a_refused_call_is_harmless():
    assert roles(GOLD, search("first", "second"), lambda env: ToolBudget(env, 1)) == [E, N]


def test_an_unavailable_engine_is_not_judged():
    assert roles(GOLD, search("down")) == [None]


def test_gold_by_title_and_mirror():
    by_title = Task("t", "?", ("Norland",), info={"gold_titles": ["Ebb"]})
    assert roles(by_title, search("first", "second")) == [N, E]
    mirrored = Task("t", "?", ("Norland",), info={"gold": ["g1"], "relevant": ["g2"]})
    assert roles(mirrored, search("first", "second")) == [E, E]


def test_without_gold_passages_the_answer_tells():
    assert roles(Task("t", "?", ("Norland", "the North")), search("first", "second")) == [N, E]


def test_a_verdict_cannot_be_found_in_a_text():
    assert roles(Task("t", "Is it?", "yes"), [*search("first", "nothing", "first"), "<answer>Yes.</answer>"]) == [None, N, R, D]


@pytest.mark.parametrize(
    ("text", "relevant"),
    [("born in Ulm.", True), ("of Ulm", True), ("Ulmen", False), ("an ulm-like town", False), ("", False)],
)
def test_answers_are_found_as_whole_words(text, relevant):
    assert is_relevant(Passage("p", "", text), Task("t", "?", "Ulm")) is relevant
