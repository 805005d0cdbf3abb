"""Search engines for the search tool.

- ``BM25Retriever``: words, in process, memory-mapped.
- ``DenseRetriever``: vectors of any encoder, FAISS or NumPy.
- ``HybridRetriever``: reciprocal rank fusion of several.
- ``HTTPRetriever``: a server of Search-R1's protocol; ``server.create_app`` is such a server.
- ``open_retriever``: any of them from a path, an address or passages, shared within the process.
"""

from agentic_gym.tools.retrieval.bm25 import BM25Retriever
from agentic_gym.tools.retrieval.corpus import Corpus, FileCorpus
from agentic_gym.tools.retrieval.dense import DenseRetriever
from agentic_gym.tools.retrieval.fusion import HybridRetriever
from agentic_gym.tools.retrieval.http import HTTPRetriever
from agentic_gym.tools.retrieval.open import open_retriever

__all__ = [
    "BM25Retriever",
    "Corpus",
    "DenseRetriever",
    "FileCorpus",
    "HTTPRetriever",
    "HybridRetriever",
    "open_retriever",
]
