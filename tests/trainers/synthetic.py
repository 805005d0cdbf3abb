"""Recorded groups made up for tests: steps, spans and log-probabilities without a model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agentic_gym.episodes import Episode, Group, Span, Step, TokenTrace, ToolEvent
from agentic_gym.roles import Role


def episode(
    score: float,
    calls: int = 1,
    *,
    task: str = "q",
    seed: int = 0,
    roles: Sequence[Role | None] | None = None,
    observations: Sequence[str] | None = None,
    tool: str = "python",
    well_formed: bool = True,
    masked: bool = False,
) -> Episode:
    """An episode of ``calls`` tool calls and an answer; each step is 3 thought tokens and 2 of the action, after 2 of context."""
    rng = np.random.default_rng(seed)
    result = Episode(task, "instructions", observations[0] if observations else "start")
    for k in range(calls + 1):
        last = k == calls
        kind = ("answer" if last else "tool") if well_formed or not last else "malformed"
        event = None if last else ToolEvent(tool, "x", "ok")
        seen = observations[k + 1] if observations else f"result {k}"
        result.steps.append(
            Step("action", seen, float(score) if last else 0.0, kind, event, roles[k] if roles is not None else None)
        )
    result.trace = trace(calls + 1, rng)
    result.score, result.success, result.terminated = score, score == 1.0, True
    result.outcome = "masked" if masked else "solved" if result.success else "failed"
    return result


def trace(steps: int, rng: np.random.Generator) -> TokenTrace:
    result = TokenTrace()
    for k in range(steps):
        last = "answer" if k == steps - 1 else "call"
        for kind, size in (("observation" if k else "prompt", 2), ("thought", 3), (last, 2)):
            start = len(result.token_ids)
            written = kind in ("thought", "call", "answer")
            result.token_ids += rng.integers(3, 50, size).tolist()
            result.loss_mask += [int(written)] * size
            result.logprobs += (-rng.exponential(1.0, size) * written).tolist()
            result.entropies += (rng.random(size) * written).tolist()
            result.spans.append(Span(k, kind, start, start + size))  # type: ignore[arg-type]
    return result


def group(*episodes: Episode) -> Group:
    return Group(episodes[0].task_id, list(episodes))
