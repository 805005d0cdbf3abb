"""Search indexes kept on disk, so that a catalogue is analysed once per machine.

An index lives in a folder named by the hash of the indexed texts and of the analyser's version, below
``$AGENTIC_GYM_CACHE/webshop`` (by default ``$XDG_CACHE_HOME/agentic-gym/webshop``, ``~/.cache/agentic-gym/webshop``). Its
arrays are memory-mapped, so processes share their pages. A folder that cannot be written only costs the time of the next build.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from agentic_gym.envs.webshop.analyser import ANALYSER_VERSION
from agentic_gym.envs.webshop.products import Product
from agentic_gym.envs.webshop.search import SearchIndex
from agentic_gym.files import user_cache

__all__ = ["cache_folder", "load_or_build"]

_LAYOUT_VERSION = 1
_WORTH_KEEPING = 500
"""Products from which on reading an index is faster than building it."""
_LOG = logging.getLogger(__name__)


def cache_folder() -> Path:
    """Where indexes are kept."""
    return user_cache() / "webshop"


def load_or_build(products: Sequence[Product]) -> SearchIndex:
    """The search index of a catalogue, from the cache where it is there."""
    if len(products) < _WORTH_KEEPING:
        return _build(products)
    folder = cache_folder() / _digest(products)
    try:
        return SearchIndex.load(folder)
    except FileNotFoundError:
        pass
    except (OSError, EOFError, ValueError) as error:
        _LOG.warning("the cached index %s cannot be read (%s); it is built anew", folder, error)
    index = _build(products)
    try:
        _store(index, folder)
    except OSError as error:
        _LOG.info("the search index is not kept: %s", error)
    return index


def _build(products: Sequence[Product]) -> SearchIndex:
    return SearchIndex.build([product.asin for product in products], (product.search_text for product in products))


def _digest(products: Sequence[Product]) -> str:
    digest = hashlib.sha256(f"analyser {ANALYSER_VERSION}, layout {_LAYOUT_VERSION}".encode())
    for product in products:
        digest.update(f"\0{product.asin}\0{product.search_text}".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:32]


def _store(index: SearchIndex, folder: Path) -> None:
    """Write into a fresh folder and rename it, so that no reader meets half an index."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix="new-", dir=folder.parent))
    try:
        index.save(fresh)
        fresh.chmod(0o755)
        if folder.exists():  # it was unreadable, else it would have been loaded
            shutil.rmtree(folder, ignore_errors=True)
        fresh.rename(folder)
    except OSError:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
