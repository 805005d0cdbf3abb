"""BM25 in process: the index of ``bm25s``, kept on disk, memory-mapped, and scanned by one NumPy loop.

``bm25s`` computes every term's score in every passage once, when the index is built, so that a query only adds up the
columns of its terms. At a million passages ``bm25s``'s own query path spends most of its time in ``np.add.at`` and in selecting
from all scores; adding column by column (a passage occurs once a column) and ``top_positive`` need a twentieth
of that. Figures: ``docs/search_qa.md``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agentic_gym.files import user_cache
from agentic_gym.tools.retrieval.cache import build_once
from agentic_gym.tools.retrieval.corpus import Corpus, FileCorpus, as_corpus
from agentic_gym.tools.retrieval.ranking import top_positive
from agentic_gym.tools.retrieval.words import index_terms
from agentic_gym.tools.search import Passage

__all__ = ["BM25Retriever"]

_FORMAT = 1  # part of the cache key: raise it when terms or arrays change
_ARRAYS = ("term_hashes", "term_columns", "column_starts", "positions", "scores")

Index = dict[str, npt.NDArray[np.generic]]
"""``term_hashes`` (V,) uint64 ascending, ``term_columns`` (V,) the column of each; column c holds ``positions`` and ``scores``
from ``column_starts[c]`` to ``column_starts[c + 1]``."""


class BM25Retriever:
    """Lexical search with BM25 (Lucene's variant) over title and text.

    Build one and share it among all environments: queries are thread-safe and hold no state. Several processes share one copy of
    the index through the page cache.

    Args:
        corpus: a corpus, the path of a JSONL file, or passages.
        k1: term-frequency saturation, above 0.
        b: length normalisation, in [0, 1].
        cache: where the index is kept: True is ``user_cache()`` for a file and memory for passages in memory, a path is a folder,
            False is memory always. A place that cannot be written raises OSError.

    Raises:
        ValueError: ``k1`` or ``b`` out of range.
        ImportError: without bm25s.

    Example:
        >>> retriever = BM25Retriever([Passage("a", "Loa", "Loa lies on the Ebb."), Passage("b", "Ebb", "A cold river.")])
        >>> [passage.id for passage in retriever.search(["Where is Loa?"], k=3)[0]]
        ['a']
    """

    def __init__(
        self,
        corpus: Corpus | str | Path | Iterable[Passage],
        *,
        k1: float = 1.5,
        b: float = 0.75,
        cache: bool | str | Path = True,
    ) -> None:
        if k1 <= 0 or not 0 <= b <= 1:
            raise ValueError(f"BM25 needs k1 > 0 and b in [0, 1], got k1={k1}, b={b}")
        self.corpus = as_corpus(corpus)
        self._folder: Path | None = None
        if cache is False or (cache is True and not isinstance(self.corpus, FileCorpus)):
            self._index = _build(self.corpus, k1, b)
        else:
            root = user_cache() if cache is True else Path(cache)
            folder = root / "bm25" / f"{self.corpus.content_hash}-k1_{k1:g}-b_{b:g}-v{_FORMAT}"
            self._folder = build_once(folder, lambda new: _save(_build(self.corpus, k1, b), new))
            self._index = _load(self._folder)

    def __getstate__(self) -> dict[str, Any]:
        # An index on disk travels as its path: the receiving process maps the same pages.
        return self.__dict__ if self._folder is None else {**self.__dict__, "_index": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self._folder is not None:
            self._index = _load(self._folder)

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """The at most ``k`` best passages of each query; passages without a term of the query never appear."""
        results = []
        for query in queries:
            scores = self.scores(query)
            results.append([replace(self.corpus[int(i)], score=float(scores[i])) for i in top_positive(scores, k)])
        return results

    def scores(self, query: str) -> npt.NDArray[np.float32]:
        """BM25 of every passage for ``query``, shape (len(corpus),)."""
        scores = np.zeros(len(self.corpus), np.float32)
        starts, positions, values = (self._index[name] for name in ("column_starts", "positions", "scores"))
        for column in self._columns(dict.fromkeys(index_terms(query))):
            here = slice(int(starts[column]), int(starts[column + 1]))
            scores[positions[here]] += values[here]
        return scores

    def _columns(self, terms: Iterable[str]) -> list[int]:
        """The columns of the terms that the corpus knows, in the order of the terms (float sums depend on it)."""
        hashes = np.array([_hash(term) for term in terms], np.uint64)
        known = self._index["term_hashes"]
        at = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
        return [int(self._index["term_columns"][i]) for i, h in zip(at, hashes) if known[i] == h]


def _hash(term: str) -> int:
    """64 bits that stand for a term, so that the vocabulary is an array on disk and no dictionary in memory."""
    return int.from_bytes(hashlib.blake2b(term.encode(), digest_size=8).digest(), "little")


def _build(corpus: Corpus, k1: float, b: float) -> Index:
    try:
        import bm25s
    except ImportError as error:
        raise ImportError("BM25Retriever needs bm25s: pip install bm25s") from error
    vocabulary: dict[str, int] = {}
    terms = [
        [vocabulary.setdefault(term, len(vocabulary)) for term in index_terms(f"{passage.title} {passage.text}")]
        for passage in corpus
    ]
    if not vocabulary:
        raise ValueError(f"{corpus!r} holds no word to index")
    engine = bm25s.BM25(method="lucene", k1=k1, b=b, csc_backend="numpy")
    engine.index((terms, vocabulary), create_empty_token=False, show_progress=False)
    hashes = np.array([_hash(term) for term in vocabulary], np.uint64)
    order = np.argsort(hashes, kind="stable")
    return {
        "term_hashes": hashes[order],
        "term_columns": order.astype(np.int64),
        "column_starts": np.asarray(engine.scores["indptr"], np.int64),
        "positions": np.asarray(engine.scores["indices"], np.int32),
        "scores": np.asarray(engine.scores["data"], np.float32),
    }


def _load(folder: Path) -> Index:
    return {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in _ARRAYS}


def _save(index: Index, folder: Path) -> None:
    for name, array in index.items():
        np.save(folder / f"{name}.npy", array)
