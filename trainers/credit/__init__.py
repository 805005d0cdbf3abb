"""Credit: from the episodes of a batch to one advantage per token. Pure numpy functions, one file per algorithm.

- ``grpo``: group-relative advantages; Dr. GRPO, RLOO.
- ``reinforce_pp``: whitening over the batch, returns-to-go over tool results.
- ``otc``, ``toolstar``: rewards that price or praise tool calls.
- ``arpo``, ``aepo``: branching after tool results; shared prefixes; entropy-weighted advantages.
- ``gigpo``: steps compared at equal states.
- ``eapo``: difficulty-aware shaping and confidence-aware token weights.
- ``triage``, ``scalar``, ``value``: role correction and its two rivals.
- ``tokens``, ``losses``, ``kl``, ``mismatch``, ``sampling``: what all of them share.

Every function gives exactly 0 to masked tokens, no NaN for finite input, the same result for rows in any order, and
one ValueError for arrays that do not fit together. ``docs/credit.md`` has the formulas, the switches, and the
choices that are ours.
"""

from agentic_gym.trainers.credit import (
    aepo,
    arpo,
    eapo,
    gigpo,
    grpo,
    kl,
    losses,
    mismatch,
    otc,
    reinforce_pp,
    sampling,
    scalar,
    tokens,
    toolstar,
    triage,
    value,
)

__all__ = [
    "aepo",
    "arpo",
    "eapo",
    "gigpo",
    "grpo",
    "kl",
    "losses",
    "mismatch",
    "otc",
    "reinforce_pp",
    "sampling",
    "scalar",
    "tokens",
    "toolstar",
    "triage",
    "value",
]
