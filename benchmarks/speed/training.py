"""Tokens a second of one multi-turn GRPO step, beside a plain loop of `model.generate` and padded batches in the same run.

Both play the same problems with the same tiny model, environment and (cached) Python tool, and take the same optimiser
steps. The plain loop generates from the whole history each turn, in one left-padded batch, and trains on padded batches with
the logits of every position. They take turns, so that a busy moment hits both; read the ratio, not the figures.

The gain grows with the number of turns (the plain loop reads the history again in each) and with how unequal the rows are (a
traceback in one row pads all others). The default agent calls its tool twice and answers: three turns, few errors. With
`--cold-start 100` it still makes many errors, as early in a training, and the gain is larger; an agent that mostly answers at
once (`--model DIR`, the quickstart's start) has little history and equal rows, and the gain is smaller than the goal.
"""

from __future__ import annotations

import argparse
import copy
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import gymnasium as gym
import numpy as np
import torch

import agentic_gym  # noqa: F401  (registers the environments)
from agentic_gym.benchmarks.experiments import tiny
from agentic_gym.episodes import Episode, Response
from agentic_gym.policies.base import Policy, Sampling
from agentic_gym.policies.formats import InlineFormat
from agentic_gym.policies.transformers import TransformersPolicy
from agentic_gym.trainers.algorithm import Algorithm, BatchCredit
from agentic_gym.trainers.algorithms import make_algorithm
from agentic_gym.trainers.config import OptimizerConfig
from agentic_gym.trainers.rollout import EnvPool, group_requests, groups_of, rollout
from agentic_gym.trainers.sft import demonstration_trace, supervised
from agentic_gym.trainers.update import Updater, training_rows

GOAL = 2.0
GROUPS, GROUP_SIZE = 12, 16
OPTIMIZER = OptimizerConfig(lr=1e-4, mini_batches=3, tokens_per_micro_batch=1500)
SAMPLING = Sampling(max_tokens=24)


@dataclass(frozen=True)
class Measure:
    """One training step: seconds of this process's CPU time and what they bought."""

    rollout: float
    update: float
    wall: float
    tokens: int
    """Sampled tokens and trained tokens together."""
    turns: float
    """Actions an episode."""

    @property
    def speed(self) -> float:
        """Tokens a second."""
        return self.tokens / (self.rollout + self.update)


class GeneratePolicy:
    """The plain way to sample: `model.generate` on the whole history of every row, padded on the left."""

    def __init__(self, policy: TransformersPolicy) -> None:
        self.policy = policy
        tags = [policy.tokenizer.convert_tokens_to_ids(tag) for tag in ("</python>", "</answer>")]
        self.ends = [policy.tokenizer.eos_token_id, *tags]
        self.pad = policy.tokenizer.pad_token_id

    def respond(self, episodes: Sequence[Episode], sampling: Sampling) -> list[Response]:
        """One response an episode."""
        contexts = [self.policy.context_ids(episode) for episode in episodes]
        histories = [[*e.trace.token_ids, *context] for e, context in zip(episodes, contexts)]
        width = max(map(len, histories))
        ids = torch.full((len(histories), width), self.pad)
        mask = torch.zeros_like(ids)
        for row, history in enumerate(histories):
            ids[row, width - len(history) :] = torch.tensor(history)
            mask[row, width - len(history) :] = 1
        out = self.policy.model.generate(
            input_ids=ids,
            attention_mask=mask,
            do_sample=True,
            temperature=1.0,
            top_k=0,
            max_new_tokens=sampling.max_tokens,
            eos_token_id=self.ends,
            pad_token_id=self.pad,
            return_dict_in_generate=True,
            output_scores=True,
        )
        written = out.sequences[:, width:]
        logprobs = torch.stack(out.scores, 1).log_softmax(-1).gather(2, written[..., None])[..., 0].tolist()
        responses = []
        for context, row, row_logprobs in zip(contexts, written.tolist(), logprobs):
            n = next((i + 1 for i, token in enumerate(row) if token in self.ends), len(row))
            text, ends = self.policy.spell(row[:n])
            responses.append(Response(text, context, row[:n], row_logprobs[:n], (), ends))
        return responses


def padded_update(policy: TransformersPolicy, credit: BatchCredit, optimizer: torch.optim.Optimizer, seed: int) -> None:
    """The plain way to train: every mini-batch padded to its longest row, logits of all positions, clipped loss."""
    model = policy.model
    order = np.random.default_rng(seed).permutation(len(credit.episodes))
    for part in np.array_split(order, OPTIMIZER.mini_batches):
        traces = [credit.episodes[i].trace for i in part]

        def padded(rows: Sequence[Any], width: int = max(map(len, traces))) -> torch.Tensor:
            return torch.stack([torch.nn.functional.pad(torch.as_tensor(r), (0, width - len(r))) for r in rows])

        ids = padded([t.token_ids for t in traces])
        mask = padded([t.loss_mask for t in traces])[:, 1:].float()
        old = padded([t.logprobs for t in traces])[:, 1:].float()
        advantages = padded([credit.advantages[i] for i in part])[:, 1:].float()
        attention = padded([[1] * len(t) for t in traces])
        logits = model(input_ids=ids, attention_mask=attention, use_cache=False).logits[:, :-1]
        logprobs = logits.float().log_softmax(-1).gather(2, ids[:, 1:, None])[..., 0]
        ratio = (logprobs - old).exp()
        losses = torch.maximum(-advantages * ratio, -advantages * ratio.clamp(0.8, 1.2))
        losses = torch.where(advantages < 0, torch.minimum(losses, -3.0 * advantages), losses)
        optimizer.zero_grad()
        ((losses * mask).sum() / mask.sum()).backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), OPTIMIZER.grad_clip)
        optimizer.step()


def cold_start(steps: int) -> TransformersPolicy:
    """A tiny agent that has learned to call its tool twice before it answers."""
    tokenizer = tiny.build_tokenizer()
    policy = TransformersPolicy(tiny.build_model(tokenizer), tokenizer, format=InlineFormat(tokenizer, tiny.TEMPLATE))
    episodes = tiny.demonstrations(tiny.tiny_tasks("train"), 4000, tool_share=(1.0, 1.0, 1.0), twice=1.0)
    traces = [demonstration_trace(episode, policy) for episode in episodes]
    config = OptimizerConfig(lr=3e-3, schedule="cosine", warmup=20, tokens_per_micro_batch=1500)
    supervised(policy, traces, config, steps=steps, batch=64)
    return policy


def one_step(
    plain: bool,
    policy: TransformersPolicy,
    start: dict[str, torch.Tensor],
    pool: EnvPool,
    tasks: Sequence[str],
    seed: int,
) -> Measure:
    """Play and train once from the weights ``start``."""
    policy.model.load_state_dict(start)
    algorithm: Algorithm = make_algorithm("grpo", group_size=GROUP_SIZE)
    updater = Updater(policy.lm, algorithm.loss, OPTIMIZER, total_updates=OPTIMIZER.mini_batches)
    player: Policy = GeneratePolicy(policy) if plain else policy
    requests = group_requests(tasks, group_size=GROUP_SIZE, seed=(seed,))
    wall, started = time.perf_counter(), time.process_time()
    episodes = rollout(player, pool, requests, SAMPLING)
    played = time.process_time()
    credit = algorithm.credit(groups_of(episodes, GROUP_SIZE))
    if plain:
        padded_update(policy, credit, updater.optimizer, seed)
    else:
        updater.update(training_rows(credit, policy), np.random.default_rng(seed))
    ended = time.process_time()
    tokens = sum(sum(episode.trace.loss_mask) for episode in episodes)
    tokens += sum(sum(episode.trace.loss_mask) for episode in credit.episodes)
    turns = float(np.mean([len(episode.steps) for episode in episodes]))
    return Measure(played - started, ended - played, time.perf_counter() - wall, tokens, turns)


def main(argv: list[str]) -> int:
    """Print a table; exit code 1 when the goal is missed."""
    parser = argparse.ArgumentParser(prog="throughput.py training", description=__doc__)
    parser.add_argument("--repeats", type=int, default=7, help="measured steps of each contestant")
    parser.add_argument("--cold-start", type=int, default=400, metavar="STEPS", help="updates on demonstrations before")
    parser.add_argument("--model", metavar="DIR", help="start from this checkpoint of a tiny model instead")
    arguments = parser.parse_args(argv)
    torch.set_num_threads(1)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        if arguments.model is None:
            policy = cold_start(arguments.cold_start)
        else:
            policy = TransformersPolicy.from_pretrained(arguments.model, dtype="float32", device="cpu")
            policy.format = InlineFormat(policy.tokenizer, tiny.TEMPLATE)
        return compare(policy, arguments.repeats)


def compare(policy: TransformersPolicy, repeats: int) -> int:
    """Let both loops take ``repeats`` steps in turn and print what they needed."""
    start = copy.deepcopy(policy.model.state_dict())
    problems = tiny.tiny_tasks("train", per_level=40)
    tasks = [task.id for task in problems][:: len(problems) // GROUPS][:GROUPS]
    results: dict[str, list[Measure]] = {"plain": [], "ours": []}
    with EnvPool(
        lambda: gym.make("agentic_gym/MathTools-v0", tasks=problems, max_turns=3, instructions="", cache=True)
    ) as pool:
        for seed in range(repeats + 1):
            for name, measures in results.items():
                measure = one_step(name == "plain", policy, start, pool, tasks, seed)
                if seed:  # the first round fills the tool's cache and warms up
                    measures.append(measure)
    print(f"{GROUPS * GROUP_SIZE} episodes a step, {repeats} steps each; medians; CPU seconds of one thread")
    print(f"{'':8}{'tokens/s':>10}{'tokens':>9}{'turns':>7}{'rollout s':>11}{'update s':>10}{'wall s':>8}")
    middle = {name: {f: median(getattr(m, f) for m in measures) for f in ("speed", "tokens", "turns", "rollout", "update",
              "wall")} for name, measures in results.items()}  # fmt: skip
    for name, m in middle.items():
        print(
            f"{name:8}{m['speed']:10.0f}{m['tokens']:9.0f}{m['turns']:7.2f}{m['rollout']:11.3f}{m['update']:10.3f}{m['wall']:8.2f}"
        )
    plain, ours = middle["plain"], middle["ours"]
    parts = {part: plain[part] / plain["tokens"] / (ours[part] / ours["tokens"]) for part in ("rollout", "update")}
    ratio = median(a.speed / b.speed for a, b in zip(results["ours"], results["plain"]))
    print(f"ratio {ratio:.2f} (rollout {parts['rollout']:.2f}, update {parts['update']:.2f})")
    met = ratio >= GOAL
    print(f"  {'met   ' if met else 'MISSED'} at least {GOAL} times the plain loop's tokens a second")
    return 0 if met else 1
