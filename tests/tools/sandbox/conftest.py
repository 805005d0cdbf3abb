"""Sandboxes that many tests share: starting one takes longer than a test."""

from collections.abc import Iterator

import pytest

from agentic_gym.tools.sandbox import Sandbox


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """The strongest isolation of this machine, two workers, numpy and sympy preloaded."""
    with Sandbox(workers=2) as shared:
        yield shared


@pytest.fixture(scope="session", params=["namespaces", "landlock", "seccomp", "process"])
def bare(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """Each level in turn, without libraries."""
    from agentic_gym.tools.sandbox.doctor import features

    if reason := features().obstacle(request.param):
        pytest.skip(f"this machine cannot: {reason}")
    with Sandbox(2, preload=(), warmup="", isolation=request.param, min_level="process") as shared:
        yield shared
