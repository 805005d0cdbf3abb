"""BM25 over the catalogue with the exact arithmetic, and so the exact order, of Lucene 9.

Lucene keeps each document's length in one byte (exact below 40, then four significant bits), computes a term's score in
single precision, adds the terms up in double precision and rounds the sum to single precision. Ties are broken by asin.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentic_gym.envs.webshop.analyser import analyse

__all__ = ["SearchIndex", "quantised_length"]

_K1 = np.float32(0.9)
_B = np.float32(0.4)
_BLOCKS = 512


def quantised_length(length: int) -> int:
    """The length that Lucene's one-byte code stands for.

    >>> [quantised_length(n) for n in (7, 39, 41, 100, 1000)]
    [7, 39, 40, 96, 984]
    """
    # Lengths below 24 have a code each; from there the rest is a float of 4 significant bits.
    rest = length - 24
    if rest < 16:
        return length
    shift = rest.bit_length() - 4
    return ((rest >> shift) << shift) + 24


class SearchIndex:
    """Immutable inverted index in compressed sparse rows; thread-safe, and shared by every environment of a process.

    Arrays: ``offsets`` (terms + 1,); per posting ``documents`` (its number), ``saturation`` (the factor
    ``tf / (k1 * (1 - b + b * length / average))``) and ``scores`` (what a term adds that occurs once in the query); ``tie_order``
    (documents,), the rank of a document's asin.
    """

    _ARRAYS = ("offsets", "documents", "saturation", "scores", "tie_order")

    def __init__(self, vocabulary: Sequence[str], arrays: dict[str, NDArray[Any]]) -> None:
        self.vocabulary = {term: number for number, term in enumerate(vocabulary)}
        self.offsets, self.documents, self.saturation, self.scores, self.tie_order = (
            arrays[name] for name in self._ARRAYS
        )

    @classmethod
    def build(cls, asins: Sequence[str], texts: Iterable[str]) -> SearchIndex:
        """Analyse and index one text per asin."""
        vocabulary: dict[str, int] = {}
        term_parts, document_parts, frequency_parts = [], [], []
        lengths = np.zeros(len(asins), np.int64)
        for document, text in enumerate(texts):
            counts = Counter(analyse(text))
            lengths[document] = counts.total()
            numbers = [vocabulary.setdefault(term, len(vocabulary)) for term in counts]
            term_parts.append(np.array(numbers, np.int32))
            frequency_parts.append(np.array(list(counts.values()), np.float32))
            document_parts.append(np.full(len(numbers), document, np.int32))
        terms = _concatenate(term_parts, np.int32)
        order = np.argsort(terms, kind="stable")  # postings of a term, documents ascending
        documents = _concatenate(document_parts, np.int32)[order]
        frequencies = _concatenate(frequency_parts, np.float32)[order]
        counts_per_term = np.bincount(terms, minlength=len(vocabulary))
        average = np.float32(lengths.sum() / max(1, len(asins)))
        quantised = np.array([quantised_length(int(n)) for n in lengths], np.float32)
        # Lucene caches 1 / (k1 * ((1 - b) + b * length / average)) in single precision.
        inverse_norm = np.float32(1) / (_K1 * ((np.float32(1) - _B) + _B * quantised / max(average, np.float32(1))))
        tie_order = np.empty(len(asins), np.int32)
        tie_order[np.argsort(np.array(asins, dtype=np.str_), kind="stable")] = np.arange(len(asins), dtype=np.int32)
        saturation = frequencies * inverse_norm[documents]
        idf = np.array([_idf(len(asins), int(matches)) for matches in counts_per_term], np.float32)
        arrays: dict[str, NDArray[Any]] = {
            "offsets": np.concatenate(([0], np.cumsum(counts_per_term))).astype(np.int64),
            "documents": documents,
            "saturation": saturation,
            "scores": _term_scores(np.repeat(idf, counts_per_term), saturation),
            "tie_order": tie_order,
        }
        return cls(list(vocabulary), arrays)

    def top(self, query: str, k: int = 50) -> list[int]:
        """Document numbers of the best k matches, best first; empty when no term of the query is indexed."""
        return [int(document) for document in self.top_scored(query, k)[0]]

    def top_scored(self, query: str, k: int = 50) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The best k matches of a query: (document numbers, scores), best first, ties by asin."""
        total = len(self.tie_order)
        documents, parts = [], []
        for term, multiplicity in Counter(analyse(query)).items():
            number = self.vocabulary.get(term)
            if number is None:
                continue
            postings = slice(self.offsets[number], self.offsets[number + 1])
            documents.append(self.documents[postings])
            if multiplicity == 1:
                parts.append(self.scores[postings])
            else:
                weight = np.float32(multiplicity) * _idf(total, len(documents[-1]))
                parts.append(_term_scores(weight, self.saturation[postings]))
        if not parts:
            return np.zeros(0, np.int64), np.zeros(0, np.float32)
        sums = np.bincount(np.concatenate(documents), np.concatenate(parts), minlength=total)
        scores = sums.astype(np.float32)
        floor = _lower_bound(scores, k)
        matched = np.flatnonzero(scores >= floor if floor > 0 else scores)
        if len(matched) > k:
            found = scores[matched]
            matched = matched[found >= np.partition(found, len(found) - k)[len(found) - k]]
        order = np.lexsort((self.tie_order[matched], -scores[matched]))[:k]
        best = matched[order]
        return best, scores[best]

    def save(self, folder: Path) -> None:
        """Write the index as a vocabulary file and one ``.npy`` per array into an existing folder."""
        (folder / "vocabulary.txt").write_text("\n".join(self.vocabulary), encoding="utf-8", newline="\n")
        for name in self._ARRAYS:
            np.save(folder / f"{name}.npy", getattr(self, name))

    @classmethod
    def load(cls, folder: Path) -> SearchIndex:
        """Open a saved index; the postings are memory-mapped, not read."""
        vocabulary = (folder / "vocabulary.txt").read_text(encoding="utf-8").split("\n")
        # Plain views of the maps: slices of the memmap class itself cost more than a short query.
        arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r").view(np.ndarray) for name in cls._ARRAYS}
        return cls(vocabulary, arrays)


def _concatenate(parts: list[NDArray[Any]], dtype: type[np.generic]) -> NDArray[Any]:
    return np.concatenate(parts) if parts else np.zeros(0, dtype)


def _idf(documents: int, matches: int) -> np.float32:
    idf: np.float32 = np.float32(math.log(1 + (documents - matches + 0.5) / (matches + 0.5)))
    return idf


def _term_scores(weight: np.float32 | NDArray[np.float32], saturation: NDArray[np.float32]) -> NDArray[np.float32]:
    scores: NDArray[np.float32] = weight - weight / (np.float32(1) + saturation)
    return scores


def _lower_bound(scores: NDArray[np.float32], k: int) -> float:
    """A score that at least k documents reach: the k-th best of the maxima of many blocks; 0 for a small index.

    It leaves few candidates for the exact selection, which would otherwise take as long as the scoring.
    """
    size = len(scores) // _BLOCKS
    if size < 2 or k > _BLOCKS:
        return 0.0
    maxima = scores[: size * _BLOCKS].reshape(_BLOCKS, size).max(axis=1)
    return float(np.partition(maxima, _BLOCKS - k)[_BLOCKS - k])
