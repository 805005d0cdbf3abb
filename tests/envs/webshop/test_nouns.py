from agentic_gym.envs.webshop import nouns
from agentic_gym.envs.webshop.nouns import TitleNouns, content_words
from tests.envs.webshop.records import products


def test_content_words_are_lower_case_without_numbers_and_function_words() -> None:
    assert content_words("Set of 2 Men's Shirts, 100% Cotton") == ("set", "men's", "shirts", "cotton")


def test_the_sidecar_comes_first_then_words_without_spacy(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(nouns, "_spacy_tagger", lambda: None)
    known, unknown = products({}, {"name": "A Desk"})
    table = TitleNouns({"A0": ["lantern"]})
    assert (table(known), table.source(known)) == (("lantern",), "sidecar")
    assert (table(unknown), table.source(unknown)) == (("desk",), "content_words")


def test_spacy_is_used_where_it_is_installed(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    class Token:
        def __init__(self, text: str, pos_: str) -> None:
            self.text, self.pos_ = text, pos_

    tokens = [Token("Big", "ADJ"), Token("Desk", "NOUN"), Token("Velno", "PROPN")]
    monkeypatch.setattr(nouns, "_spacy_tagger", lambda: lambda title: tokens)
    (product,) = products({})
    table = TitleNouns()
    assert (table(product), table.source(product)) == (("desk", "velno"), "spacy")
