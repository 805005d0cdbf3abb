"""A laboratory for a CPU: a 0.1M-parameter agent, its tokenizer, its tasks and its demonstrations.

Three levels of two-digit arithmetic. *Easy*: sums and differences without carries, which so small a model can learn to do in
its thoughts, digit by digit, for problems it has never seen. *Middle*: sums with carries, which it does less surely.
*Hard*: products, which it cannot do. The tool is the real Python interpreter. Operands have a fixed width: with variable
widths so small a model did not learn to copy in the time we give it.
"""

from __future__ import annotations

import hashlib
import json
import operator
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agentic_gym.actions import Grammar
from agentic_gym.episodes import Episode, Response
from agentic_gym.files import write_text
from agentic_gym.tasks import Task, TaskSet
from agentic_gym.wrappers.tool_free import REFUSAL

__all__ = [
    "EASY",
    "HARD",
    "LEVELS",
    "MIDDLE",
    "NOTICE",
    "TEMPLATE",
    "build_model",
    "build_tokenizer",
    "demonstrations",
    "tiny_tasks",
]

EASY, MIDDLE, HARD = LEVELS = (0, 1, 2)
TEMPLATE = "{instructions}Q: {observation}A: "
NOTICE = "No tools. "
"""What ToolFree adds to the (empty) instructions."""

_HELD_OUT = 0.2
_TOOL = ("Let me run it.", "Better compute.", "Use the tool.")
_AGAIN = ("Check again.", "Once more.")
_DONE = ("Good.", "So it is.")
_GIVE_UP = ("Too hard.", "0")
_TAGS = ("<think>", "</think>", "<python>", "</python>", "<result>", "</result>", "<answer>", "</answer>")


def tiny_tasks(split: str, *, per_level: int | None = None, seed: int = 0) -> TaskSet:
    """The tasks of ``split`` ("train" or "test"; a problem belongs to one of them by a hash of its text).

    Args:
        per_level: how many of each level; None takes all. A random choice fixed by ``seed``.
    """
    if split not in ("train", "test"):
        raise ValueError(f"split must be 'train' or 'test', got {split!r}")
    rng = np.random.default_rng((seed, 11))
    chosen: list[Task] = []
    for level in LEVELS:
        tasks = [task for task in _problems(level) if _held_out(task.id) == (split == "test")]
        if per_level is not None:
            if per_level > len(tasks):
                raise ValueError(f"level {level} has {len(tasks)} {split} problems, fewer than {per_level}")
            tasks = [tasks[i] for i in np.sort(rng.permutation(len(tasks))[:per_level])]
        chosen += tasks
    return TaskSet(chosen, name="tiny-arithmetic", split=split)


def _problems(level: int) -> Iterator[Task]:
    for a in range(10, 100):
        for b in range(10, 100):
            carries = a % 10 + b % 10 > 9 or a // 10 + b // 10 > 9
            if level == HARD:
                yield _task(level, a, "*", b, a * b)
            elif level == (MIDDLE if carries else EASY):
                yield _task(level, a, "+", b, a + b)
            if level == EASY and a % 10 >= b % 10 and a // 10 > b // 10:
                yield _task(level, a, "-", b, a - b)


def _task(level: int, a: int, op: str, b: int, value: int) -> Task:
    text = f"{a}{op}{b}"
    return Task(text, f"{text}=?", str(value), level, {"expression": text})


def _held_out(text: str) -> bool:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") / 2**32 < _HELD_OUT


def demonstrations(
    tasks: TaskSet, n: int, *, seed: int = 0, tool_share: Sequence[float] = (0.5, 0.5, 0.6), twice: float = 0.3
) -> list[Episode]:
    """``n`` scripted episodes: four in ten of them hard, some direct, some with the tool, some of those calling twice.

    Direct demonstrations work digit by digit, and give up on products: nothing here teaches those. 15 % stand under the
    notice that forbids tools and are direct.

    Args:
        tool_share: share of demonstrations with the tool, by level.
        twice: share of tool demonstrations that call a second time without need.
    """
    rng = np.random.default_rng((seed, 7))
    pools = {level: [task for task in tasks if task.level == level] for level in LEVELS}
    shares = dict(zip(LEVELS, (0.3, 0.3, 0.4)))
    episodes = []
    for level in rng.choice(list(shares), size=n, p=list(shares.values())).tolist():
        task = pools[level][int(rng.integers(len(pools[level])))]
        forbidden = rng.random() < 0.15
        with_tool = not forbidden and rng.random() < tool_share[level]
        episodes.append(_demonstration(task, forbidden, with_tool, bool(rng.random() < twice), rng))
    return episodes


def _demonstration(task: Task, forbidden: bool, with_tool: bool, twice: bool, rng: np.random.Generator) -> Episode:
    episode = Episode(task.id, NOTICE if forbidden else "", task.prompt, level=task.level)
    value = str(task.answer)

    def act(thoughts: Sequence[str], action: str, observation: str) -> None:
        thought = thoughts[int(rng.integers(len(thoughts)))]
        text = f"<think>{thought}</think>{action}"
        parsed = Grammar(("python",)).parse(text)
        episode.record(Response(text), observation, 0.0, parsed.kind == "answer", False, {"action": parsed})

    if with_tool:
        call = f"<python>print({task.info['expression']})</python>"
        act(_TOOL, call, f"<result>{value}</result>")
        if twice:
            act(_AGAIN, call, f"<result>{value}</result>")
        act(_DONE, f"<answer>{value}</answer>", "")
    else:
        thought, answer = _in_the_head(task)
        act((thought,), f"<answer>{answer}</answer>", "")
    return episode


def _in_the_head(task: Task) -> tuple[str, str]:
    """Thought and answer without the tool: digit by digit, ones first; for a product the agent gives up."""
    a_tens, a_ones, op, b_tens, b_ones = task.info["expression"]
    if op == "*":
        return _GIVE_UP
    work = operator.sub if op == "-" else operator.add
    ones = work(int(a_ones), int(b_ones))
    carry = op == "+" and ones > 9
    tens = work(int(a_tens), int(b_tens)) + carry
    thought = f"{a_ones}{op}{b_ones}={ones} {a_tens}{op}{b_tens}{'+1' if carry else ''}={tens}"
    return thought, f"{tens}{ones - 10 * carry}"


def build_tokenizer() -> Any:
    """A byte-pair tokenizer trained on the laboratory's phrases: a token a word, a digit, a tag; all of printable ASCII."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r" ?[A-Za-z]+|[0-9]|[^A-Za-z0-9]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    trainer = trainers.BpeTrainer(
        vocab_size=1000,
        min_frequency=1,
        show_progress=False,
        special_tokens=["<pad>", "<eos>", "<unk>"],
        initial_alphabet=[chr(code) for code in range(32, 127)] + ["\n"],
    )
    phrases = [_GIVE_UP[0], *_TOOL, *_AGAIN, *_DONE, "print(", NOTICE, "Q: ", "=?A: ", REFUSAL]
    tokenizer.train_from_iterator(phrases, trainer)
    tokenizer.add_tokens(list(_TAGS))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<eos>", pad_token="<pad>", unk_token="<unk>")


def build_model(tokenizer: Any, *, seed: int = 0, width: int = 64, layers: int = 2) -> Any:
    """A Qwen2 model of ``width`` and ``layers`` from scratch, weights fixed by ``seed``."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=256,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Qwen2ForCausalLM(config)


def save_json(path: Path, data: Any) -> None:
    """Write ``data`` as JSON, whole or not at all; its folder is made."""
    write_text(path, json.dumps(data, indent=1) + "\n")
