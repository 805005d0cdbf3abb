"""Where indexes are kept between runs: folders named by what they hold, complete or absent, never half written."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

__all__ = ["CACHE_VARIABLE", "build_once", "user_cache"]

CACHE_VARIABLE = "AGENTIC_GYM_CACHE"


def user_cache() -> Path:
    """``$AGENTIC_GYM_CACHE``, else ``$XDG_CACHE_HOME/agentic-gym``, else ``~/.cache/agentic-gym``. Not created here."""
    if explicit := os.environ.get(CACHE_VARIABLE):
        return Path(explicit)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "agentic-gym"


def build_once(folder: Path, build: Callable[[Path], None]) -> Path:
    """Return ``folder``, letting ``build`` fill it first where it does not exist.

    It is filled under another name and renamed, so other processes see all of it or nothing; of two that build at once
    the first one wins. Raises OSError when the place cannot be written.
    """
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        build(unfinished)
        unfinished.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder
