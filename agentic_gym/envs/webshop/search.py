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

    Arrays: ``offsets`` (terms + 1,), ``documents`` (postings,) document numbers, ``saturation`` (postings,) the factor
    ``tf / (k1 * (1 - b + b * length / average))``, ``tie_order`` (documents,) the rank of a document's asin.
    """

    def __init__(self, vocabulary: Sequence[str], arrays: dict[str, NDArray[Any]]) -> None:
        self.vocabulary = {term: number for number, term in enumerate(vocabulary)}
        self.offsets = arrays["offsets"]
        self.documents = arrays["documents"]
        self.saturation = arrays["saturation"]
        self.tie_order = arrays["tie_order"]

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
        arrays: dict[str, NDArray[Any]] = {
            "offsets": np.concatenate(([0], np.cumsum(counts_per_term))).astype(np.int64),
            "documents": documents,
            "saturation": frequencies * inverse_norm[documents],
            "tie_order": tie_order,
        }
        return cls(list(vocabulary), arrays)

    def top(self, query: str, k: int = 50) -> list[int]:
        """Document numbers of the best k matches, best first; empty when no term of the query is indexed."""
        return [int(document) for document in self.top_scored(query, k)[0]]

    def top_scored(self, query: str, k: int = 50) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The best k matches of a query: (document numbers, scores), best first, ties by asin."""
        total = len(self.tie_order)
        sums = np.zeros(total, np.float64)
        for term, multiplicity in Counter(analyse(query)).items():
            number = self.vocabulary.get(term)
            if number is None:
                continue
            start, end = self.offsets[number], self.offsets[number + 1]
            matches = end - start
            idf = np.float32(math.log(1 + (total - matches + 0.5) / (matches + 0.5)))
            weight = np.float32(multiplicity) * idf
            sums[self.documents[start:end]] += weight - weight / (np.float32(1) + self.saturation[start:end])
        scores = sums.astype(np.float32)
        matched = np.flatnonzero(scores)
        if len(matched) > k:
            found = scores[matched]
            threshold = np.partition(found, len(found) - k)[len(found) - k]
            matched = matched[found >= threshold]
        order = np.lexsort((self.tie_order[matched], -scores[matched]))[:k]
        best = matched[order]
        return best, scores[best]

    def save(self, folder: Path) -> None:
        """Write the index as a vocabulary file and one ``.npy`` per array into an existing folder."""
        (folder / "vocabulary.txt").write_text("\n".join(self.vocabulary), encoding="utf-8", newline="\n")
        for name in ("offsets", "documents", "saturation", "tie_order"):
            np.save(folder / f"{name}.npy", getattr(self, name))

    @classmethod
    def load(cls, folder: Path) -> SearchIndex:
        """Open a saved index; the postings are memory-mapped, not read."""
        vocabulary = (folder / "vocabulary.txt").read_text(encoding="utf-8").split("\n")
        names = ("offsets", "documents", "saturation", "tie_order")
        return cls(vocabulary, {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in names})


def _concatenate(parts: list[NDArray[Any]], dtype: type[np.generic]) -> NDArray[Any]:
    return np.concatenate(parts) if parts else np.zeros(0, dtype)
