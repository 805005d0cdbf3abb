"""Shared test settings: one thread per process, and where the real data lies."""

import atexit
import os
import shutil
import signal
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import tempfile

import hypothesis
import pytest

# Indexes and converted models of the tests go nowhere near the user's own cache.
if "AGENTIC_GYM_CACHE" not in os.environ:
    os.environ["AGENTIC_GYM_CACHE"] = tempfile.mkdtemp(prefix="agentic-gym-cache-")
    atexit.register(shutil.rmtree, os.environ["AGENTIC_GYM_CACHE"], ignore_errors=True)

# A shell that starts the tests in the background has them ignore Ctrl-C, and what they start as well.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine is no failure; what must be fast has a test of its own.
hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data and golden recordings; the test is skipped where it is absent."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"needs the real data folder {SHARED_DATA}")
    return SHARED_DATA
