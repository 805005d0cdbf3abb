"""The search tool: formatting, budgets, failures."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentic_gym.tools.search import (
    Passage,
    SearchTool,
    SearchUnavailable,
    approximate_tokens,
    format_passages,
)

texts = st.text(max_size=300)


class Fixed:
    """A retriever that returns what it was given, or raises it."""

    def __init__(self, outcome):
        self.outcome = outcome
        self.asked = []

    def search(self, queries, k):
        self.asked += queries
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return [self.outcome[:k] for _ in queries]


def test_documents_are_numbered_lines():
    passages = [Passage("a", "Loa", "Loa lies\non the Ebb."), Passage("b", "Ebb", "A river.")]
    assert format_passages(passages) == "Doc 1(Title: Loa) Loa lies on the Ebb.\nDoc 2(Title: Ebb) A river."


def test_nothing_found_is_ok_and_says_so():
    reply = SearchTool(Fixed([])).run("anything")
    assert (reply.status, reply.text, reply.passages) == ("ok", "No passage found.", ())


@pytest.mark.parametrize("error", [SearchUnavailable("down"), OSError("disk"), ValueError("bug")])
def test_a_failing_engine_is_unavailable_not_empty(error):
    reply = SearchTool(Fixed(error)).run("anything")
    assert reply.status == "unavailable"
    assert str(error) in reply.text


@settings(deadline=None)
@given(st.lists(st.builds(Passage, st.just("x"), texts, texts), min_size=1, max_size=6), st.integers(1, 200))
def test_a_result_is_one_line_a_passage_and_within_budget(passages, budget):
    text = format_passages(passages, budget)
    assert len(text.split("\n")) == len(passages)
    # A passage keeps its " ..." even where its share is smaller than that.
    assert approximate_tokens(text) <= budget + approximate_tokens("...") * len(passages)


def test_a_long_passage_leaves_room_for_the_others():
    short = Passage("b", "Short", "word " * 20)
    text = format_passages([Passage("a", "Long", "word " * 5000), short, short], 300)
    first, second, third = text.split("\n")
    assert first.endswith(" ...")
    assert second.endswith("word")
    assert third.endswith("word")
    assert 280 <= approximate_tokens(text) <= 310


@pytest.mark.parametrize("body", ["word " * 200_000, "x" * 1_000_000, "\u4e2d" * 1_000_000, "<" * 1_000_000, " " * 1_000_000])
def test_a_megabyte_is_cut_quickly(body):
    start = time.perf_counter()
    text = format_passages([Passage("a", body, body)] * 3, 500)
    assert time.perf_counter() - start < 10
    assert len(text) < 500 * 16


def test_a_query_is_one_line_and_bounded():
    engine = Fixed([])
    SearchTool(engine).run("who\n\twrote  it? " + "z" * 100_000)
    assert engine.asked[0].startswith("who wrote it? zzz")
    assert len(engine.asked[0]) <= 1000


@pytest.mark.parametrize("setting", [{"top_k": 0}, {"max_tokens": 0}])
def test_settings_are_checked(setting):
    with pytest.raises(ValueError, match=f"{next(iter(setting))} must be at least 1, got 0"):
        SearchTool(Fixed([]), **setting)


def test_a_retriever_must_search():
    with pytest.raises(TypeError, match=r"search\(queries, k\)"):
        SearchTool("http://localhost")
