"""Index terms."""

from hypothesis import given, settings
from hypothesis import strategies as st

from agentic_gym.tools.retrieval.words import index_terms


def test_case_accents_and_function_words():
    assert index_terms("The Mayor of São Paulo — who was it in 1999?") == ["mayor", "sao", "paulo", "1999"]


def test_unspaced_scripts_give_characters():
    assert index_terms("tokyo東京tower") == ["tokyo", "東", "京", "tower"]


@settings(deadline=None)
@given(st.text())
def test_terms_do_not_depend_on_case_or_composition(text):
    import unicodedata

    assert index_terms(unicodedata.normalize("NFD", text)) == index_terms(unicodedata.normalize("NFC", text))
