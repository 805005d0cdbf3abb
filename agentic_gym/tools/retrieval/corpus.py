"""Corpora: ordered passages with a content hash, in memory or in a JSONL file that is read in place.

- ``Corpus``: passages in memory.
- ``FileCorpus``: a memory-mapped JSONL file; only the line offsets are held, so millions of passages cost little.
- ``as_corpus``: either of them, from whatever a user has at hand.

A line is an object with ``id`` and either ``title`` and ``text`` or Search-R1's ``contents`` (title, newline, text).
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agentic_gym.files import reading
from agentic_gym.tools.search import Passage

__all__ = ["Corpus", "FileCorpus", "as_corpus", "passage_from_record"]

CORPUS_FILE = "give a JSONL file of id, title, text"
_CHUNK_BYTES = 1 << 24


class Corpus:
    """Passages in memory, in a fixed order.

    Raises:
        ValueError: no passages.

    Example:
        >>> corpus = Corpus([Passage("a", "Loa", "Loa lies on the Ebb."), Passage("b", "Ebb", "A river.")])
        >>> len(corpus), corpus[1].title, corpus.position("b")
        (2, 'Ebb', 1)
    """

    def __init__(self, passages: Iterable[Passage]) -> None:
        self._passages = tuple(passages)
        if not self._passages:
            raise ValueError("a corpus needs at least one passage, got none")

    def __len__(self) -> int:
        return len(self._passages)

    def __getitem__(self, index: int) -> Passage:
        return self._passages[index]

    def __iter__(self) -> Iterator[Passage]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} passages, {self.content_hash[:12]})"

    @cached_property
    def content_hash(self) -> str:
        """A hash (hex) of every passage in order, the same on every machine."""
        digest = hashlib.blake2b(digest_size=20)
        for passage in self._passages:
            digest.update(json.dumps([passage.id, passage.title, passage.text]).encode() + b"\n")
        return digest.hexdigest()

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {passage.id: i for i, passage in enumerate(self)}

    def position(self, passage_id: str) -> int:
        """Where a passage stands. The first call reads the whole corpus. Raises KeyError for an unknown id."""
        return self._positions[passage_id]


class FileCorpus(Corpus):
    """A JSONL file of passages, memory-mapped: lines are parsed when asked for.

    The file must not change while it is open. Its content hash is that of its bytes.

    Raises:
        OSError: no such file, or one that may not be read.
        ValueError: an empty file; later, a line that is no passage (the message names file and line).
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        with reading(self.path, "corpus", fix=CORPUS_FILE), self.path.open("rb") as file:
            if not os.fstat(file.fileno()).st_size:
                raise ValueError(f"the corpus {self.path} is empty: {CORPUS_FILE}")
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._starts, self._hash = _scan_lines(self._map)

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, index: int) -> Passage:
        index = range(len(self))[index]
        line = self._map[int(self._starts[index]) : int(self._starts[index + 1])]
        try:
            return passage_from_record(json.loads(line.decode("utf-8")))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{self.path}, line {index + 1} is not a passage: {error}; {CORPUS_FILE}") from None

    def __reduce__(self) -> tuple[Any, ...]:
        return FileCorpus, (self.path,)

    @cached_property
    def content_hash(self) -> str:
        """A hash (hex) of the file's bytes."""
        return self._hash


def _scan_lines(data: mmap.mmap) -> tuple[npt.NDArray[np.int64], str]:
    """Where each line starts, with the end of the last one appended; and the hash of it all, in one pass."""
    digest = hashlib.blake2b(digest_size=20)
    ends: list[npt.NDArray[np.int64]] = []
    for offset in range(0, len(data), _CHUNK_BYTES):
        chunk = data[offset : offset + _CHUNK_BYTES]
        digest.update(chunk)
        ends.append(np.flatnonzero(np.frombuffer(chunk, np.uint8) == ord("\n")) + offset + 1)
    starts = np.concatenate([np.zeros(1, np.int64), *ends])
    if starts[-1] != len(data):
        starts = np.append(starts, len(data))
    return starts, digest.hexdigest()


def passage_from_record(record: Any) -> Passage:
    """Read ``{"id", "title", "text"}`` or Search-R1's ``{"id", "contents"}``. Raises ValueError for anything else."""
    if not isinstance(record, Mapping):
        raise ValueError(f"expected an object, got {record!r:.60}")
    title, text = record.get("title", ""), record.get("text")
    if text is None and isinstance(record.get("contents"), str):
        title, _, text = record["contents"].partition("\n")
        title = title.strip('"')
    if not isinstance(title, str) or not isinstance(text, str) or "id" not in record:
        raise ValueError(f"expected id, title and text (or contents), got {sorted(map(str, record))}")
    return Passage(str(record["id"]), title, text)


def as_corpus(source: Corpus | str | Path | Iterable[Passage]) -> Corpus:
    """A corpus from a corpus, the path of a JSONL file, or passages."""
    if isinstance(source, Corpus):
        return source
    return FileCorpus(source) if isinstance(source, (str, Path)) else Corpus(source)
