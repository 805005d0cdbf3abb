"""Where indexes are kept between runs: folders named by what they hold, complete or absent, never half written."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from agentic_gym.files import CACHE_VARIABLE, explain

__all__ = ["build_once"]

def build_once(folder: Path, build: Callable[[Path], None]) -> Path:
    """Return ``folder``, letting ``build`` fill it first where it does not exist.

    It is filled under another name and renamed, so other processes see all of it or nothing; of two that build at once
    the first one wins. Raises OSError when the place cannot be written.
    """
    if folder.is_dir():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise type(error)(f"{explain(error)}: {CACHE_VARIABLE} may name a folder for what is kept") from error
    try:
        build(unfinished)
        unfinished.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder
