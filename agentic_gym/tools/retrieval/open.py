"""One function from what a user has (a path, an address, a retriever) to a retriever, shared within the process."""

from __future__ import annotations

import threading
from functools import lru_cache
from pathlib import Path

from agentic_gym.files import reading
from agentic_gym.tools.retrieval.bm25 import BM25Retriever
from agentic_gym.tools.retrieval.corpus import CORPUS_FILE
from agentic_gym.tools.retrieval.http import HTTPRetriever
from agentic_gym.tools.search import Retriever

__all__ = ["open_retriever"]

_lock = threading.Lock()


def open_retriever(source: Retriever | str | Path) -> Retriever:
    """Return a retriever as it is; open an address over HTTP and a JSONL file with BM25.

    Equal addresses and unchanged files give the same object, so a thousand environments share one index.
    """
    if isinstance(source, str) and source.startswith(("http://", "https://")):
        return _client(source)
    if isinstance(source, (str, Path)):
        path = Path(source).resolve()
        with reading(Path(source), "corpus", fix=f"{CORPUS_FILE}, or http://host:port"):
            stat = path.stat()
            path.open("rb").close()
        with _lock:  # two threads must not index one file at once
            return _index(path, stat.st_size, stat.st_mtime_ns)
    if isinstance(source, Retriever):
        return source
    raise TypeError(f"expected a retriever, a path or an address, got {source!r:.80}")


@lru_cache(maxsize=64)
def _client(url: str) -> HTTPRetriever:
    return HTTPRetriever(url)


@lru_cache(maxsize=8)
def _index(path: Path, size: int, mtime_ns: int) -> BM25Retriever:
    """Keyed by size and time too, so that a rewritten file is read anew."""
    return BM25Retriever(path)
