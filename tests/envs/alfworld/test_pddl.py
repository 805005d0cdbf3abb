import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_gym.envs.alfworld.pddl import atoms, parse, section

words = st.text("abcdefghijklmnopqrstuvwxyz?-_0123456789", min_size=1, max_size=8)
expressions = st.recursive(words, lambda inner: st.lists(inner, max_size=5), max_leaves=30)


def write(expression):
    return expression if isinstance(expression, str) else "(" + " ".join(write(e) for e in expression) + ")"


@given(st.lists(expressions, max_size=5))
def test_parsing_undoes_writing(expression):
    assert parse(write(expression)) == expression
    assert parse("; (a comment\n" + write(expression).upper()) == expression


@given(st.lists(expressions, max_size=5), st.data())
def test_a_text_that_is_cut_off_is_refused(expression, data):
    text = write(expression)
    end = data.draw(st.integers(0, len(text) - 1))
    with pytest.raises(ValueError, match="PDDL"):
        parse(text[:end])


@pytest.mark.parametrize("text", ["", ")", "(a))", "(a) (b)", "a"])
def test_anything_but_one_expression_is_refused(text):
    with pytest.raises(ValueError, match="PDDL"):
        parse(text)


def test_sections_and_facts():
    problem = parse("(define (problem p) (:init (a x) (= (total-cost) 0) (not (b))))")
    assert atoms(section(problem, ":init")) == [("a", "x")]
    with pytest.raises(ValueError, match=":goal"):
        section(problem, ":goal")
