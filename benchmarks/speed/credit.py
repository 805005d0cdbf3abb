"""How long credit takes for a large batch: 1,024 episodes of 10 segments, about 100,000 tokens, on one core.

Times are processor time, the best of several runs; the last column divides them by ``np.sort`` of one number a token,
measured in the same run, which takes most of the machine out of the figure.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from agentic_gym.roles import Role
from agentic_gym.trainers.credit import eapo, grpo, tokens, triage
from agentic_gym.trainers.credit._arrays import BoolArray, FloatArray, IntArray

TARGET_MS = 50.0


class Batch(NamedTuple):
    """A synthetic batch in the flat layout of a trainer: every token knows its episode and its segment."""

    rewards: FloatArray
    calls: IntArray
    correct: BoolArray
    roles: list[Role]
    logprobs: FloatArray
    episode: IntArray
    segment: IntArray
    mask: BoolArray
    thought: BoolArray

    @classmethod
    def draw(cls, episodes: int, segments: int, tokens_a_segment: int, seed: int = 0) -> Batch:
        """Draw one; in each segment the last fifth of the tokens is a tool result and a fifth is the call."""
        rng = np.random.default_rng(seed)
        size = episodes * segments * tokens_a_segment
        position = np.arange(size) % tokens_a_segment
        segment = np.arange(size) // tokens_a_segment
        correct = rng.random(episodes) < 0.5
        return cls(
            rewards=correct.astype(np.float64),
            calls=rng.integers(0, 5, episodes),
            correct=correct,
            roles=[list(Role)[i] for i in rng.integers(0, 4, episodes * segments)],
            logprobs=-rng.exponential(0.5, size),
            episode=segment // segments,
            segment=segment,
            mask=position < 0.8 * tokens_a_segment,
            thought=position < 0.6 * tokens_a_segment,
        )


def grpo_credit(batch: Batch, group: int) -> FloatArray:
    """GRPO: advantage per group, spread over the tokens."""
    starts = range(0, batch.rewards.size, group)
    advantages = [grpo.group_advantages(batch.rewards[i : i + group]) for i in starts]
    return tokens.spread(np.concatenate(advantages), batch.episode, batch.mask)


def eapo_credit(batch: Batch, group: int) -> FloatArray:
    """EAPO: shaped rewards, group advantages, token weights."""
    rows = [slice(i, i + group) for i in range(0, batch.rewards.size, group)]
    shaped = [eapo.shape_rewards(batch.rewards[r], batch.calls[r], batch.correct[r]) for r in rows]
    advantages = np.concatenate([grpo.group_advantages(r) for r in shaped])
    weights = eapo.token_weights(
        batch.logprobs,
        batch.segment,
        batch.thought,
        correct=batch.correct[batch.episode],
        used_tool=batch.calls[batch.episode] > 0,
    )
    return tokens.spread(advantages, batch.episode, batch.mask) * weights


def triage_credit(batch: Batch, group: int) -> FloatArray:
    """TRIAGE: group advantages, role correction, whitening, spread over the tokens of each segment."""
    starts = range(0, batch.rewards.size, group)
    advantages = np.concatenate([grpo.group_advantages(batch.rewards[i : i + group]) for i in starts])
    per_episode = len(batch.roles) // batch.rewards.size
    segments = triage.batch_advantages(np.repeat(advantages, per_episode), batch.roles, lam=0.2)
    return tokens.spread(segments, batch.segment, batch.mask)


def best_ms(work: Callable[[], object], repeats: int) -> float:
    """Return the shortest of ``repeats`` runs, in milliseconds of processor time."""
    times = []
    for _ in range(repeats):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return 1e3 * min(times)


def main(argv: list[str]) -> int:
    """Print the table; 1 when a rule misses the target."""
    parser = argparse.ArgumentParser(prog="throughput.py credit", description=__doc__)
    parser.add_argument("--episodes", type=int, default=1024)
    parser.add_argument("--segments", type=int, default=10)
    parser.add_argument("--tokens", type=int, default=10, help="tokens of a segment")
    parser.add_argument("--group", type=int, default=8, help="episodes of a group")
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args(argv)
    batch = Batch.draw(options.episodes, options.segments, options.tokens)
    unit = best_ms(lambda: np.sort(batch.logprobs), options.repeats)
    print(
        f"{batch.mask.size:,} tokens, {options.episodes} episodes in groups of {options.group}, target {TARGET_MS:g} ms"
    )
    print(f"{'rule':8}{'ms':>8}{'M tokens/s':>12}{'x np.sort':>11}")
    slowest = 0.0
    for name, rule in (("grpo", grpo_credit), ("eapo", eapo_credit), ("triage", triage_credit)):
        taken = best_ms(partial(rule, batch, options.group), options.repeats)
        slowest = max(slowest, taken)
        print(f"{name:8}{taken:8.2f}{batch.mask.size / taken / 1e3:12.1f}{taken / unit:11.1f}")
    return int(slowest > TARGET_MS)


if __name__ == "__main__":
    import sys

    sys.exit(main(sys.argv[1:]))
