from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_gym.envs.webshop.analyser import analyse, segment


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("can't U.S. a:b 3.5 1,000 v1.5", ["can't", "U.S", "a:b", "3.5", "1,000", "v1.5"]),
        ("wi-fi/usb+hdmi & co", ["wi", "fi", "usb", "hdmi", "co"]),
        ("snake_case __ _x_", ["snake_case", "_x_"]),
        ("琥珀 ひら カタカナ", ["琥", "珀", "ひ", "ら", "カタカナ"]),
        ("❤️ ★★ 👨\u200d💼 ™", ["❤️", "★", "★", "👨\u200d💼", "™"]),
        ("½ cup m² 1⁄2 ①", ["cup", "m", "1⁄2"]),
        ("e\u0301te\u0301 x:\u0301y", ["e\u0301te\u0301", "x:\u0301y"]),
        ("🇩🇪🇫🇷", ["🇩🇪", "🇫🇷"]),
        ("don’t 360º", ["don’t", "360º"]),
    ],
)
def test_word_boundaries(text: str, words: list[str]) -> None:
    assert list(segment(text)) == words


def test_possessives_stop_words_and_stems() -> None:
    assert analyse("The women's & men’s shirts, it's THEIRS") == ["women", "men", "shirt", "their"]


def test_long_runs_are_cut() -> None:
    assert [len(word) for word in segment("x" * 600)] == [255, 255, 90]


@given(st.text())
def test_any_text_is_segmented_in_order(text: str) -> None:
    at = 0
    for word in segment(text):
        at = text.index(word, at) + len(word)
        assert word
        assert not word.isspace()


def test_the_recorded_tokens_of_every_document_and_query(official_shop: Any, golden: Any) -> None:
    recorded = golden("golden_tokens.json.gz")
    for asin, tokens in recorded["docs"]:
        assert analyse(official_shop.by_asin[asin].search_text) == tokens
    for query, tokens in recorded["queries"]:
        assert analyse(query) == tokens
