"""Retrieval: recall, milliseconds a query and queries a second, next to other engines and to a bare HTTP client in the same run.

    benchmarks/throughput.py search                      the real corpus where it lies beside the checkout, else the fictional one
    benchmarks/throughput.py search --passages 1000000   as many passages, of shuffled sentences (speed only)

A row for tantivy appears where it is installed.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sqlite3
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np

from agentic_gym.envs.search_world import SearchWorld
from agentic_gym.tools.retrieval import BM25Retriever, Corpus, FileCorpus, HTTPRetriever
from agentic_gym.tools.retrieval.words import index_terms

REAL = Path(__file__).resolve().parents[3] / "shared" / "data" / "qa"

Search = Callable[[str, int], Sequence[str]]
"""Query and k in, ids of passages out."""


@dataclass(frozen=True)
class Question:
    """A query and the ids of its gold passages (none: recall is not measured)."""

    text: str
    gold: frozenset[str]


def main(argv: list[str]) -> int:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="throughput.py search", description=__doc__)
    parser.add_argument("--corpus", type=Path, default=REAL / "corpus.jsonl", help="JSONL of id, title, text")
    parser.add_argument("--questions", type=Path, default=REAL / "questions.jsonl", help="JSONL of question and gold ids")
    parser.add_argument("--passages", type=int, default=0, help="make this many passages out of the corpus's sentences")
    parser.add_argument("--repeats", type=int, default=3, help="times each question is asked (default 3)")
    parser.add_argument("--engines", default="", help="only engines whose name contains this, such as BM25Retriever")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        corpus, questions = _data(options.corpus, options.questions)
        if options.passages:
            corpus = FileCorpus(_shuffled_sentences(corpus, options.passages, Path(folder) / "synthetic.jsonl"))
            questions = [Question(question.text, frozenset()) for question in questions]
        print(f"{len(corpus):,} passages, {len(questions)} questions, top 5\n")
        columns = f"{'build s':>9}{'p50 ms':>9}{'p95 ms':>9}{'cpu ms':>9}{'query/s':>9}{'recall@5':>10}{'p50 / client':>14}"
        print(f"{'engine':<34}{columns}")
        with _instant_stub() as url:
            baseline = _latencies(_bare_client(url), questions, options.repeats)
            _row("bare urllib, instant loopback stub", 0, baseline, baseline, questions, None)
            client = HTTPRetriever(url)
            ours = _latencies(lambda q, k: [p.id for p in client.search([q], k)[0]], questions, options.repeats)
            _row("HTTPRetriever, instant loopback stub", 0, ours, baseline, questions, None)
        for name, make in _engines(corpus, Path(folder)).items():
            if options.engines not in name:
                continue
            start = time.perf_counter()
            try:
                search = make()
            except ImportError:
                continue
            build = time.perf_counter() - start
            _row(name, build, _latencies(search, questions, options.repeats), baseline, questions, search)
    return 0


def _engines(corpus: Corpus, folder: Path) -> dict[str, Callable[[], Search]]:
    return {
        "BM25Retriever": lambda: _ours(corpus, folder),
        "bm25s (its own query path)": lambda: _bm25s(corpus),
        "tantivy": lambda: _tantivy(corpus),
        "SQLite FTS5": lambda: _sqlite(corpus),
    }


def _ours(corpus: Corpus, folder: Path) -> Search:
    retriever = BM25Retriever(corpus, cache=folder)
    return lambda query, k: [passage.id for passage in retriever.search([query], k)[0]]


def _bm25s(corpus: Corpus) -> Search:
    import bm25s

    vocabulary: dict[str, int] = {}
    terms = [[vocabulary.setdefault(t, len(vocabulary)) for t in index_terms(f"{p.title} {p.text}")] for p in corpus]
    engine = bm25s.BM25(csc_backend="numpy")
    engine.index((terms, vocabulary), show_progress=False)

    def search(query: str, k: int) -> list[str]:
        known = [vocabulary[term] for term in dict.fromkeys(index_terms(query)) if term in vocabulary]
        found = engine.retrieve([known], k=min(k, len(corpus)), show_progress=False).documents[0] if known else []
        return [corpus[int(i)].id for i in found]

    return search


def _tantivy(corpus: Corpus) -> Search:
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("position", stored=True)
    builder.add_text_field("body", tokenizer_name="en_stem")
    index = tantivy.Index(builder.build())
    writer = index.writer(heap_size=200_000_000, num_threads=1)
    for i, passage in enumerate(corpus):
        writer.add_document(tantivy.Document(position=i, body=f"{passage.title} {passage.text}"))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def search(query: str, k: int) -> list[str]:
        parsed = index.parse_query(" ".join(index_terms(query)), ["body"])
        return [corpus[searcher.doc(address)["position"][0]].id for _, address in searcher.search(parsed, k).hits]

    return search


def _sqlite(corpus: Corpus) -> Search:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE passages USING fts5(body, content='', tokenize='porter')")
    rows = ((i, f"{passage.title} {passage.text}") for i, passage in enumerate(corpus))
    database.executemany("INSERT INTO passages(rowid, body) VALUES (?, ?)", rows)

    def search(query: str, k: int) -> list[str]:
        match = " OR ".join(f'"{term}"' for term in dict.fromkeys(index_terms(query)))
        statement = "SELECT rowid FROM passages WHERE passages MATCH ? ORDER BY rank LIMIT ?"
        return [corpus[row[0]].id for row in database.execute(statement, (match, k))]

    return search


def _latencies(search: Search, questions: Sequence[Question], repeats: int) -> np.ndarray:
    """Seconds of each single query, in the order asked, shape (2, n): wall time and this thread's CPU time. One query warms up.

    On a busy machine the wall time is mostly waiting; the CPU time is not.
    """
    search(questions[0].text, 5)
    seconds = []
    for question in list(questions) * repeats:
        start, cpu = time.perf_counter(), time.thread_time()
        search(question.text, 5)
        seconds.append((time.perf_counter() - start, time.thread_time() - cpu))
    return np.transpose(np.array(seconds))


def _row(
    name: str, build: float, seconds: np.ndarray, baseline: np.ndarray, questions: Sequence[Question], search: Search | None
) -> None:
    wall, cpu = seconds * 1000
    p50, p95 = np.percentile(wall, [50, 95])
    recall = "-"
    if search is not None and all(question.gold for question in questions):
        shares = [len(q.gold.intersection(search(q.text, 5))) / len(q.gold) for q in questions]
        recall = f"{np.mean(shares):.3f}"
    ratio = p50 / 1000 / np.median(baseline[0])
    times = f"{p50:>9.2f}{p95:>9.2f}{np.median(cpu):>9.2f}{1000 / wall.mean():>9,.0f}"
    print(f"{name:<36}{build:>7.1f}{times}{recall:>10}{ratio:>14.2f}", flush=True)


def _data(corpus: Path, questions: Path) -> tuple[Corpus, list[Question]]:
    if corpus.is_file() and questions.is_file():
        records = map(json.loads, questions.read_text(encoding="utf-8").splitlines())
        return FileCorpus(corpus), [Question(r["question"], frozenset(r.get("gold", ()))) for r in records]
    world = SearchWorld(seed=0, passages=10_000)
    tasks = world.tasks("test", levels=[1, 2, 3], per_level=50)
    return world.corpus, [Question(task.prompt, frozenset(task.info["gold"])) for task in tasks]


def _shuffled_sentences(corpus: Corpus, n: int, path: Path) -> Path:
    """Write ``n`` passages of four sentences each, drawn from the corpus: real words at their real frequencies."""
    rng = random.Random(0)
    titles = [passage.title for passage in corpus]
    sentences = [s for passage in corpus for s in re.split(r"(?<=[.!?]) ", passage.text) if len(s) > 20]
    with path.open("w", encoding="utf-8") as file:
        for i in range(n):
            record = {"id": str(i), "title": rng.choice(titles), "text": " ".join(rng.choices(sentences, k=4))}
            file.write(json.dumps(record) + "\n")
    return path


@contextmanager
def _instant_stub() -> Iterator[str]:
    """A server of the retrieval protocol that answers at once: what is left is the client's own cost."""
    body = json.dumps({"result": [[{"document": {"id": "1", "contents": "Loa\nA town."}, "score": 1.0}]]}).encode()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

        def log_message(self, *args: object) -> None:
            """Keep the table clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/retrieve"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _bare_client(url: str) -> Search:
    def search(query: str, k: int) -> list[str]:
        body = json.dumps({"queries": [query], "topk": k, "return_scores": True}).encode()
        request = urllib.request.Request(url, body, {"Content-Type": "application/json", "Connection": "close"})
        with urllib.request.urlopen(request, timeout=10) as reply:
            return [item["document"]["id"] for item in json.load(reply)["result"][0]]

    return search
