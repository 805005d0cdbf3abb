"""Corpora in memory and in files."""

import json
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentic_gym.tools.retrieval.corpus import Corpus, FileCorpus, as_corpus, passage_from_record
from agentic_gym.tools.search import Passage

passages = st.lists(
    st.builds(lambda i, title, text: Passage(str(i), title, text), st.integers(0, 99), st.text(), st.text()), min_size=1
)


def write(path, passages, ascii=False, end="\n"):
    lines = [json.dumps({"id": p.id, "title": p.title, "text": p.text}, ensure_ascii=ascii) for p in passages]
    path.write_text("\n".join(lines) + end, encoding="utf-8", newline="")
    return path


@settings(max_examples=50, deadline=None)
@given(passages, st.booleans(), st.sampled_from(["", "\n"]))
def test_a_file_reads_back(tmp_path_factory, passages, ascii, end):
    path = write(tmp_path_factory.mktemp("corpus") / "c.jsonl", passages, ascii, end)
    corpus = FileCorpus(path)
    assert list(corpus) == passages
    assert len(corpus) == len(passages)
    assert list(pickle.loads(pickle.dumps(corpus))) == passages


def test_non_ascii_lines(tmp_path):
    passages = [Passage("1", "Køge", "Køge ligger\u2028ved vandet."), Passage("2", "東京", "都市")]
    corpus = FileCorpus(write(tmp_path / "c.jsonl", passages))
    assert list(corpus) == passages
    assert corpus.position("2") == 1
    assert corpus[-1].title == "東京"
    with pytest.raises(IndexError):
        corpus[2]


def test_the_hash_tells_contents_apart(tmp_path):
    first, second = [Passage("1", "a", "b")], [Passage("1", "a", "c")]
    assert Corpus(first).content_hash == Corpus(list(first)).content_hash != Corpus(second).content_hash
    paths = [write(tmp_path / f"{i}.jsonl", p) for i, p in enumerate([first, first, second])]
    hashes = [FileCorpus(path).content_hash for path in paths]
    assert hashes[0] == hashes[1] != hashes[2]


@pytest.mark.parametrize("line", ["not json", "[1]", '{"id": 1, "title": "x"}', "", '{"title": "x", "text": "y"}'])
def test_a_bad_line_is_named(tmp_path, line):
    path = tmp_path / "c.jsonl"
    path.write_text('{"id": "1", "title": "a", "text": "b"}\n' + line + "\n")
    with pytest.raises(ValueError, match=r"c\.jsonl, line 2 is not a passage"):
        list(FileCorpus(path))


def test_missing_and_empty_sources(tmp_path):
    with pytest.raises(FileNotFoundError, match="no corpus at"):
        as_corpus(tmp_path / "none.jsonl")
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(ValueError, match="is empty"):
        as_corpus(tmp_path / "empty.jsonl")
    with pytest.raises(ValueError, match="at least one passage"):
        as_corpus([])


def test_search_r1_records():
    record = {"id": 7, "contents": '"Aaron"\nAaron is a prophet.\nSecond line.'}
    assert passage_from_record(record) == Passage("7", "Aaron", "Aaron is a prophet.\nSecond line.")
