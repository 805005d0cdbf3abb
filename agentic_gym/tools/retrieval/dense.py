"""Dense search: passages and queries as vectors, nearest by inner product.

- ``DenseRetriever``: exact search with FAISS where it is installed, else with NumPy in blocks.
- ``Encoder``: what turns texts into vectors: any function, or the name of a sentence-transformers model.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from agentic_gym.files import user_cache
from agentic_gym.tools.retrieval.cache import build_once
from agentic_gym.tools.retrieval.corpus import Corpus, FileCorpus, as_corpus
from agentic_gym.tools.search import Passage

__all__ = ["DenseRetriever", "Encoder", "prefixes_for"]

Vectors = npt.NDArray[np.float32]
Encoder = Callable[[Sequence[str]], Any]
"""Texts in, array of shape (len(texts), dimension) out."""

_BATCH = 1024
_BLOCK_ROWS = 65_536


def prefixes_for(model: str) -> tuple[str, str]:
    """The (query, passage) prefixes a model was trained with.

    The E5 family wants ``query: `` and ``passage: `` (its README); its *instruct* models want an instruction before the
    query and nothing before a passage; other models are given plain texts.

    >>> prefixes_for("intfloat/e5-base-v2")
    ('query: ', 'passage: ')
    """
    name = model.lower().rsplit("/", 1)[-1]
    if not ("e5-" in name or name == "e5"):
        return "", ""
    if "instruct" in name:
        return "Instruct: Given a question, retrieve passages that answer it\nQuery: ", ""
    return "query: ", "passage: "


class DenseRetriever:
    """Nearest passages by the inner product of unit vectors (cosine similarity).

    Args:
        corpus: a corpus, the path of a JSONL file, or passages.
        encoder: a function of texts, or the name or folder of a sentence-transformers model.
        prefixes: put before each query and each passage; None asks ``prefixes_for`` (none for a function).
        backend: "faiss" (an exact flat index), "numpy", or "auto": FAISS where it is installed.
        cache: where passage vectors are kept, as for ``BM25Retriever``; those of a function never are: nothing names it.

    Raises:
        ImportError: a model's name without sentence-transformers, or ``backend="faiss"`` without FAISS.

    Example:
        >>> letters = lambda texts: [[text.count("a"), text.count("e")] for text in texts]
        >>> retriever = DenseRetriever([Passage("1", "", "banana"), Passage("2", "", "eel")], letters, backend="numpy")
        >>> retriever.search(["tree"], k=1)[0][0].id
        '2'
    """

    def __init__(
        self,
        corpus: Corpus | str | Path | Iterable[Passage],
        encoder: Encoder | str = "intfloat/e5-base-v2",
        *,
        prefixes: tuple[str, str] | None = None,
        backend: Literal["auto", "faiss", "numpy"] = "auto",
        cache: bool | str | Path = True,
    ) -> None:
        if backend not in ("auto", "faiss", "numpy"):
            raise ValueError(f"backend must be 'auto', 'faiss' or 'numpy', got {backend!r}")
        if backend == "auto":
            backend = "faiss" if importlib.util.find_spec("faiss") else "numpy"
        self.corpus = as_corpus(corpus)
        model = encoder if isinstance(encoder, str) else None
        self.prefixes = prefixes or (prefixes_for(model) if model else ("", ""))
        self._encode = _sentence_transformer(encoder) if isinstance(encoder, str) else encoder
        self._vectors = self._passage_vectors(model, cache)
        self._faiss = _faiss_index(self._vectors) if backend == "faiss" else None

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """The ``k`` nearest passages of each query; fewer only in a smaller corpus."""
        if not queries:
            return []
        vectors = self._unit([self.prefixes[0] + query for query in queries])
        k = min(k, len(self.corpus))
        scores, positions = self._faiss.search(vectors, k) if self._faiss is not None else _nearest(vectors, self._vectors, k)
        return [
            [replace(self.corpus[int(i)], score=float(score)) for i, score in zip(row, row_scores)]
            for row, row_scores in zip(positions, scores)
        ]

    def _passage_vectors(self, model: str | None, cache: bool | str | Path) -> Vectors:
        if model is None or cache is False or (cache is True and not isinstance(self.corpus, FileCorpus)):
            return self._encode_corpus()
        root = user_cache() if cache is True else Path(cache)
        key = hashlib.blake2b(f"{self.corpus.content_hash}\n{model}\n{self.prefixes}".encode(), digest_size=20).hexdigest()
        folder = build_once(root / "dense" / key, lambda new: np.save(new / "vectors.npy", self._encode_corpus()))
        vectors: Vectors = np.load(folder / "vectors.npy", mmap_mode="r")
        return vectors

    def _encode_corpus(self) -> Vectors:
        parts = []
        for start in range(0, len(self.corpus), _BATCH):
            batch = (self.corpus[i] for i in range(start, min(start + _BATCH, len(self.corpus))))
            parts.append(self._unit([self.prefixes[1] + f"{p.title}\n{p.text}".strip() for p in batch]))
        return np.concatenate(parts)

    def _unit(self, texts: Sequence[str]) -> Vectors:
        vectors: Vectors = np.asarray(self._encode(texts), np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise ValueError(f"the encoder must return shape ({len(texts)}, dimension), got {vectors.shape}")
        norms: Vectors = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = vectors / np.maximum(norms, np.finfo(np.float32).tiny)
        return vectors


def _nearest(queries: Vectors, passages: Vectors, k: int) -> tuple[Vectors, npt.NDArray[np.int64]]:
    """Scores and positions, each (Q, k), best first, earlier position first among equals; passages go by in blocks."""
    scores = np.empty((len(queries), 0), np.float32)
    positions = np.empty((len(queries), 0), np.int64)
    for start in range(0, len(passages), _BLOCK_ROWS):
        block = queries @ passages[start : start + _BLOCK_ROWS].T
        here = np.broadcast_to(np.arange(start, start + block.shape[1]), block.shape)
        scores, positions = np.hstack([scores, block]), np.hstack([positions, here])
        best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        scores, positions = np.take_along_axis(scores, best, 1), np.take_along_axis(positions, best, 1)
    return scores, positions


def _faiss_index(vectors: Vectors) -> Any:
    try:
        import faiss
    except ImportError as error:
        raise ImportError("backend='faiss' needs FAISS: pip install 'agentic-gym[dense]'") from error
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(np.ascontiguousarray(vectors))
    return index


def _sentence_transformer(model: str) -> Encoder:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise ImportError(
            f"the encoder {model!r} needs sentence-transformers: pip install 'agentic-gym[dense]'; "
            "or pass a function from texts to vectors"
        ) from error
    encoder = SentenceTransformer(model)
    return lambda texts: encoder.encode(list(texts), show_progress_bar=False, convert_to_numpy=True)
