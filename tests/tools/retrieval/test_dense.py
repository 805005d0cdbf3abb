"""Dense search with a small deterministic encoder; FAISS and sentence-transformers where they are installed."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentic_gym.tools.retrieval import DenseRetriever
from agentic_gym.tools.retrieval import dense as module
from agentic_gym.tools.retrieval.dense import prefixes_for
from agentic_gym.tools.search import Passage


class Hashing:
    """Bags of hashed words; remembers the texts it was given."""

    def __init__(self):
        self.seen = []

    def __call__(self, texts):
        self.seen += texts
        rows = np.zeros((len(texts), 64))
        for row, text in zip(rows, texts):
            for word in text.lower().split():
                row[hashlib.blake2b(word.encode(), digest_size=1).digest()[0] % 64] += 1
        return rows


PASSAGES = [Passage("a", "Loa", "a town on the river"), Passage("b", "", "mountains of snow"), Passage("c", "Ebb", "cold water")]


def test_nearest_passage_first_and_scores_are_cosines():
    found = DenseRetriever(PASSAGES, Hashing(), backend="numpy").search(["Loa a town on the river", "snow mountains of"], k=2)
    assert [row[0].id for row in found] == ["a", "b"]
    assert found[0][0].score == pytest.approx(1.0)
    assert [len(row) for row in found] == [2, 2]


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40), st.integers(1, 10), st.integers(0, 2**32 - 1), st.integers(1, 7))
def test_blocks_equal_a_full_sort(n, k, seed, block):
    rng = np.random.default_rng(seed)
    passages = rng.integers(-2, 3, (n, 4)).astype(np.float32)
    queries = rng.integers(-2, 3, (3, 4)).astype(np.float32)
    original, module._BLOCK_ROWS = module._BLOCK_ROWS, block
    try:
        scores, positions = module._nearest(queries, passages, k)
    finally:
        module._BLOCK_ROWS = original
    expected = np.argsort(-(queries @ passages.T), axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(positions, expected)
    np.testing.assert_array_equal(scores, np.take_along_axis(queries @ passages.T, expected, 1))


def test_prefixes_of_the_e5_family():
    assert prefixes_for("intfloat/e5-base-v2") == prefixes_for("intfloat/multilingual-e5-large") == ("query: ", "passage: ")
    query, passage = prefixes_for("intfloat/multilingual-e5-large-instruct")
    assert query.startswith("Instruct: ")
    assert query.endswith("\nQuery: ")
    assert passage == ""
    assert prefixes_for("BAAI/bge-small-en-v1.5") == ("", "")


def test_prefixes_reach_the_encoder():
    encoder = Hashing()
    DenseRetriever(PASSAGES, encoder, prefixes=("query: ", "passage: "), backend="numpy").search(["Where?"], 1)
    passages = ["passage: Loa\na town on the river", "passage: mountains of snow", "passage: Ebb\ncold water"]
    assert encoder.seen == [*passages, "query: Where?"]


def test_a_named_models_vectors_are_kept(tmp_path, monkeypatch):
    encoder = Hashing()
    monkeypatch.setattr(module, "_sentence_transformer", lambda name: encoder)
    first = DenseRetriever(PASSAGES, "some/e5-model", cache=tmp_path, backend="numpy").search(["cold water"], 1)
    encoded = len(encoder.seen)
    second = DenseRetriever(PASSAGES, "some/e5-model", cache=tmp_path, backend="numpy").search(["cold water"], 1)
    assert first == second
    assert len(encoder.seen) == encoded + 1  # the query alone


def test_bad_encoders_and_backends():
    with pytest.raises(ValueError, match=r"must return shape \(3, dimension\)"):
        DenseRetriever(PASSAGES, lambda texts: [1.0, 2.0], backend="numpy")
    with pytest.raises(ValueError, match="backend must be"):
        DenseRetriever(PASSAGES, Hashing(), backend="annoy")


def test_what_is_missing_is_named(monkeypatch):
    import sys

    for package in ("faiss", "sentence_transformers"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=r"pip install 'agentic-gym\[dense\]'"):
        DenseRetriever(PASSAGES, "intfloat/e5-small-v2")
    with pytest.raises(ImportError, match=r"pip install 'agentic-gym\[dense\]'"):
        DenseRetriever(PASSAGES, Hashing(), backend="faiss")


def test_faiss_agrees_with_numpy():
    pytest.importorskip("faiss")
    queries = ["cold water", "river town", "snow"]
    ids = [
        [[p.id for p in row] for row in DenseRetriever(PASSAGES, Hashing(), backend=backend).search(queries, 1)]
        for backend in ("faiss", "numpy")
    ]
    assert ids[0] == ids[1]


def test_a_real_sentence_transformer(tmp_path):
    """A tiny random BERT, saved and read as any model would be."""
    pytest.importorskip("sentence_transformers")
    from transformers import BertConfig, BertModel, BertTokenizerFast

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "query", "passage", ":", "cold", "water", "snow", "river", "town"]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    folder = tmp_path / "e5-tiny"
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    BertModel(BertConfig(vocab_size=len(words), **sizes)).save_pretrained(folder)
    BertTokenizerFast(str(tmp_path / "vocab.txt")).save_pretrained(folder)
    retriever = DenseRetriever(PASSAGES, str(folder), backend="numpy")
    assert retriever.prefixes == ("query: ", "passage: ")
    assert len(retriever.search(["cold water"], 3)[0]) == 3
