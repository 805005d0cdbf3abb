"""A search server in Search-R1's protocol, over any retriever: ``agentic-gym serve search --corpus corpus.jsonl``.

- ``create_app``: the Starlette application (``POST /retrieve``, ``GET /health``).
- ``serve``: run it until interrupted; ``ServeSearch`` holds the command line's options.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from agentic_gym.ranges import Checked, Port, Range
from agentic_gym.tools.search import Passage, Retriever, SearchUnavailable

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

__all__ = ["ServeSearch", "create_app", "serve"]

MAX_BODY_BYTES = 8 << 20
MAX_TOP_K = 1000
MAX_QUERIES = 4096


def create_app(
    retriever: Retriever,
    *,
    default_top_k: int = 3,
    lifespan: Callable[[Any], AbstractAsyncContextManager[None]] | None = None,
) -> Starlette:
    """Build the application. A bad request gets 422 and says why; a retriever that fails gives 503.

    Raises ImportError without Starlette.
    """
    try:
        from starlette.applications import Starlette
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import JSONResponse
        from starlette.routing import Route
    except ImportError as error:
        raise ImportError("the search server needs Starlette: pip install 'agentic-gym[serve]'") from error

    async def retrieve(request: Request) -> Response:
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > MAX_BODY_BYTES:
                return JSONResponse({"detail": f"the request is longer than {MAX_BODY_BYTES} bytes"}, 413)
        try:
            queries, k, scored = _read_request(bytes(body), default_top_k)
        except ValueError as error:
            return JSONResponse({"detail": str(error)}, 422)
        try:
            found = await run_in_threadpool(retriever.search, queries, k)
        except SearchUnavailable as error:
            return JSONResponse({"detail": str(error)}, 503)
        return JSONResponse({"result": [[_document(passage, scored) for passage in passages] for passages in found]})

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    routes = [Route("/retrieve", retrieve, methods=["POST"]), Route("/health", health)]
    return Starlette(routes=routes, lifespan=lifespan)


def _read_request(body: bytes, default_top_k: int) -> tuple[list[str], int, bool]:
    try:
        request = json.loads(body)
    except (ValueError, RecursionError):
        raise ValueError("the request is not JSON") from None
    if not isinstance(request, dict):
        raise ValueError('expected {"queries": [...], "topk": 3, "return_scores": true}')
    queries, k = request.get("queries"), request.get("topk")
    scored = request.get("return_scores", False)
    if not isinstance(queries, list) or not all(isinstance(query, str) for query in queries):
        raise ValueError('"queries" must be a list of texts')
    if len(queries) > MAX_QUERIES:
        raise ValueError(f'"queries" may hold at most {MAX_QUERIES} texts, got {len(queries)}')
    k = k or default_top_k  # Search-R1 takes null and 0 as its default
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MAX_TOP_K:
        raise ValueError(f'"topk" must be an integer from 1 to {MAX_TOP_K}, got {k!r:.40}')
    if not isinstance(scored, bool):
        raise ValueError(f'"return_scores" must be true or false, got {scored!r:.40}')
    return queries, k, scored


def _document(passage: Passage, scored: bool) -> dict[str, Any]:
    title = " ".join(passage.title.split())  # the first line is the title, so it may hold no line break
    document = {"id": passage.id, "contents": f'"{title}"\n{passage.text}'}
    return {"document": document, "score": passage.score} if scored else document


@dataclass(frozen=True)
class ServeSearch(Checked):
    """Serve a corpus in Search-R1's protocol (``POST /retrieve``)."""

    corpus: Path
    """JSONL file of passages: id, title, text (or id, contents)."""
    host: str = "127.0.0.1"
    """Address to listen on."""
    port: Port = 8000
    """Port to listen on; 0 lets the system choose."""
    retriever: Literal["bm25", "dense", "hybrid"] = "bm25"
    """Search by words, by vectors, or by both."""
    encoder: str = "intfloat/e5-base-v2"
    """Name or folder of a sentence-transformers model, for dense and hybrid."""
    top_k: Annotated[int, Range(least=1, most=MAX_TOP_K)] = 3
    """Passages per query where a request names no number."""

    def build(self) -> Retriever:
        """Open the corpus and make the retriever; the index is built or read from the cache."""
        from agentic_gym.tools.retrieval.bm25 import BM25Retriever
        from agentic_gym.tools.retrieval.corpus import FileCorpus
        from agentic_gym.tools.retrieval.dense import DenseRetriever
        from agentic_gym.tools.retrieval.fusion import HybridRetriever

        corpus = FileCorpus(self.corpus)
        if self.retriever == "bm25":
            return BM25Retriever(corpus)
        dense = DenseRetriever(corpus, self.encoder)
        return dense if self.retriever == "dense" else HybridRetriever([BM25Retriever(corpus), dense])


def serve(options: ServeSearch) -> None:
    """Run the server until it is interrupted. Raises ImportError without uvicorn."""
    try:
        import uvicorn
    except ImportError as error:
        raise ImportError("the search server needs uvicorn: pip install 'agentic-gym[serve]'") from error
    app = create_app(options.build(), default_top_k=options.top_k)
    uvicorn.run(app, host=options.host, port=options.port, log_level="info", access_log=False)
