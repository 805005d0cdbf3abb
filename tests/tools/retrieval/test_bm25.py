"""BM25: against bm25s itself, on disk, across processes."""

import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentic_gym.tools.retrieval import BM25Retriever, FileCorpus, open_retriever
from agentic_gym.tools.retrieval.cache import CACHE_VARIABLE
from agentic_gym.tools.retrieval.words import index_terms
from agentic_gym.tools.search import Passage

WORDS = ["ash", "birch", "cedar", "elm", "fir", "oak", "pine"]
documents = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join), min_size=2, max_size=30)


def passages_of(texts):
    return [Passage(str(i), "", text) for i, text in enumerate(texts)]


@settings(max_examples=50, deadline=None)
@given(documents, st.lists(st.sampled_from([*WORDS, "unknown"]), max_size=5, unique=True))
def test_scores_are_those_of_bm25s(texts, query):
    retriever = BM25Retriever(passages_of(texts))
    reference = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    reference.index([index_terms(text) for text in texts], show_progress=False)
    known = [word for word in query if word in reference.vocab_dict]
    expected = reference.get_scores(known) if known else np.zeros(len(texts))
    np.testing.assert_allclose(retriever.scores(" ".join(query)), expected, rtol=1e-5, atol=1e-6)


def test_batches_equal_single_queries_and_k_bounds():
    retriever = BM25Retriever(passages_of(["oak elm", "oak", "pine"]))
    both = retriever.search(["oak", "pine", "unknown", ""], k=5)
    assert both == [retriever.search([q], 5)[0] for q in ("oak", "pine", "unknown", "")]
    assert [[p.id for p in found] for found in both] == [["1", "0"], ["2"], [], []]
    assert both[0][0].score > both[0][1].score > 0


@pytest.fixture
def corpus_file(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(f'{{"id": "{i}", "title": "T{i}", "text": "{WORDS[i % 7]} number {i}"}}\n' for i in range(500)))
    return path


def test_an_index_is_built_once_and_mapped(corpus_file, tmp_path, monkeypatch):
    first = BM25Retriever(corpus_file)
    import agentic_gym.tools.retrieval.bm25 as module

    monkeypatch.setattr(module, "_build", lambda *args: pytest.fail("built twice"))
    again = BM25Retriever(corpus_file)
    assert again.search(["oak number 5"], 3) == first.search(["oak number 5"], 3)
    assert all(isinstance(array, np.memmap) for array in again._index.values())
    assert [p.name[:40] for p in (tmp_path / "cache" / "bm25").iterdir()] == [FileCorpus(corpus_file).content_hash]


def test_a_pickled_index_maps_the_same_files(corpus_file):
    retriever = BM25Retriever(corpus_file)
    data = pickle.dumps(retriever)
    assert len(data) < 2000
    assert pickle.loads(data).search(["elm"], 2) == retriever.search(["elm"], 2)


def test_a_failed_build_leaves_nothing(corpus_file, tmp_path):
    corpus_file.write_text('{"id": "1", "title": "", "text": "the of"}\n')
    with pytest.raises(ValueError, match="no word to index"):
        BM25Retriever(corpus_file)
    assert list((tmp_path / "cache" / "bm25").iterdir()) == []


def test_two_processes_build_at_once(corpus_file, tmp_path):
    code = "import sys; from agentic_gym.tools.retrieval import *; print(BM25Retriever(sys.argv[1]).search(['fir'], 3))"
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-c", code, str(corpus_file)]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, env={**env, "PYTHONHASHSEED": str(i)}) for i in range(2)]
    outputs = [run.communicate(timeout=60)[0] for run in runs]
    assert outputs[0] == outputs[1]
    assert b"Passage" in outputs[0]
    assert len(list((tmp_path / "cache" / "bm25").iterdir())) == 1


def test_threads_share_one(corpus_file):
    with ThreadPoolExecutor(8) as pool:
        retrievers = list(pool.map(lambda _: open_retriever(corpus_file), range(16)))
        assert len(set(map(id, retrievers))) == 1
        expected = retrievers[0].search(["oak number"], 5)
        assert all(found == expected for found in pool.map(lambda r: r.search(["oak number"], 5), retrievers))


def test_a_rewritten_file_is_read_anew(corpus_file):
    before = open_retriever(corpus_file)
    corpus_file.write_text('{"id": "new", "title": "", "text": "larch"}\n')
    after = open_retriever(str(corpus_file))
    assert after is not before
    assert after.search(["larch"], 1)[0][0].id == "new"


def test_bad_settings_name_the_value():
    with pytest.raises(ValueError, match="k1=0"):
        BM25Retriever(passages_of(["oak"]), k1=0)
    with pytest.raises(FileNotFoundError, match="no corpus at nowhere"):
        open_retriever("nowhere")
    with pytest.raises(TypeError, match="expected a retriever"):
        open_retriever(7)


def test_recall_on_real_questions(shared_data, tmp_path):
    import json

    retriever = BM25Retriever(shared_data / "qa" / "corpus.jsonl", cache=tmp_path)
    questions = [json.loads(line) for line in (shared_data / "qa" / "questions.jsonl").open(encoding="utf-8")]
    found = retriever.search([question["question"] for question in questions], 5)
    recalls = [len({p.id for p in row} & set(q["gold"])) / len(set(q["gold"])) for row, q in zip(found, questions)]
    assert sum(recalls) / len(recalls) > 0.6


def test_a_cache_that_cannot_be_written_is_named_with_the_variable(tmp_path, monkeypatch):
    (tmp_path / "corpus.jsonl").write_text('{"id": "1", "title": "Oak", "text": "a tree"}\n')
    (tmp_path / "taken").write_text("")
    monkeypatch.setenv("AGENTIC_GYM_CACHE", str(tmp_path / "taken" / "cache"))
    with pytest.raises(NotADirectoryError, match=r"taken.*choose another path: AGENTIC_GYM_CACHE may name a folder"):
        BM25Retriever(tmp_path / "corpus.jsonl").search(["oak"], 1)
