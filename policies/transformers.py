"""TransformersPolicy: a Hugging Face model sampled by our own batched loop.

What it does that ``model.generate`` in a turn loop does not:

- equal prompts (the rows of a group) are prefilled once and shared;
- keys and values are kept between turns, so that no history is prefilled twice;
- finished rows leave the batch; each row stops at its own closing tag;
- the head runs on one position a row, and log-probabilities are recorded as sampled.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from agentic_gym.episodes import Episode, Response
from agentic_gym.policies.base import Sampling
from agentic_gym.policies.causal_lm import CausalLM, load_model_and_tokenizer
from agentic_gym.policies.formats import FORMAT_FILE, ChatFormat, Format, InlineFormat, load_format
from agentic_gym.policies.kv_cache import RaggedCache
from agentic_gym.policies.sampling import UniformStreams, draw_tokens
from agentic_gym.policies.token_text import decode_with_ends

__all__ = ["TransformersPolicy"]

_SHRINK_BELOW = 0.75
"""The batch is made smaller when less than this share of its rows is still writing: a copy costs about as much as a step."""


@dataclass
class _Row:
    """One episode while its turn is written."""

    context_ids: list[int]
    length: int
    """Tokens so far, context included; also the position of the next one."""
    limit: int
    """Most tokens this turn."""
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    entropies: list[float] = field(default_factory=list)
    text: str = ""
    finish: Literal["stop", "length", "context"] | None = None


class TransformersPolicy:
    """Any local or hub causal language model as a token policy.

    Args:
        model: a ``PreTrainedModel`` with a language-model head.
        tokenizer: its tokenizer.
        format: how episodes become tokens; None takes the chat template, or plain text where there is none.
        max_length: tokens an episode may have; None takes the model's own window.

    Example::

        policy = TransformersPolicy.from_pretrained("Qwen/Qwen2.5-3B-Instruct", dtype="bfloat16")
    """

    def __init__(
        self, model: Any, tokenizer: Any, *, format: Format | None = None, max_length: int | None = None
    ) -> None:
        self.lm = CausalLM(model)
        self.model = model
        self.tokenizer = tokenizer
        self.format: Format = format or (ChatFormat(tokenizer) if tokenizer.chat_template else InlineFormat(tokenizer))
        self.max_length = min(max_length or self.lm.max_length, self.lm.max_length)
        self._end_ids = _end_ids(model, tokenizer)
        self._pieces: dict[int, str] = {}
        self._held: RaggedCache | None = None
        self._held_rows: dict[tuple[int, ...], int] = {}
        self._fingerprint: object = None

    @classmethod
    def from_pretrained(
        cls, source: str | Path, *, dtype: str = "auto", device: str | None = None, **kwargs: Any
    ) -> TransformersPolicy:
        """Load a directory, a GGUF file or a hub id; further arguments go to the constructor.

        A policy that ``save_pretrained`` wrote is prompted as it was, unless ``format`` says otherwise.
        """
        model, tokenizer = load_model_and_tokenizer(source, dtype=dtype, device=device)
        if kwargs.get("format") is None:
            kwargs["format"] = load_format(Path(source), tokenizer)
        return cls(model, tokenizer, **kwargs)

    def save_pretrained(self, folder: str | Path) -> None:
        """Write model, tokenizer and format to ``folder``; any program that knows Hugging Face models can load it."""
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        (Path(folder) / FORMAT_FILE).write_text(json.dumps(self.format.describe(), indent=1), encoding="utf-8")

    def forget(self) -> None:
        """Free the keys and values kept from the last turn."""
        self._held, self._held_rows = None, {}

    @property
    def end_ids(self) -> frozenset[int]:
        """Every token that ends the model's turn: the model's own, and the one that the format ends turns with."""
        return self._end_ids.union(self.format.end_ids)

    def context_ids(self, episode: Episode) -> list[int]:
        """The tokens that ``episode`` has to read before its next action.

        Raises ValueError when earlier steps were taken by a policy without tokens.
        """
        if not episode.steps:
            return self.format.prompt_ids(episode.instructions, episode.observation)
        if not len(episode.trace):
            raise ValueError(
                f"the {len(episode.steps)} steps of episode {episode.task_id!r} have no tokens: an episode begun by a text "
                "policy cannot be continued by a token policy"
            )
        return self.format.observation_ids(episode.last_observation, episode.trace.token_ids[-1] in self.end_ids)

    @torch.inference_mode()
    def respond(self, episodes: Sequence[Episode], sampling: Sampling) -> list[Response]:
        """Write the next action of every episode. An episode whose window is full gets ``finish="context"`` and no tokens."""
        rows = []
        prompts: dict[tuple[str, str], list[int]] = {}
        for episode in episodes:
            if episode.steps:
                context = self.context_ids(episode)
            else:  # the rows of a group have one prompt
                key = (episode.instructions, episode.observation)
                context = prompts[key] if key in prompts else prompts.setdefault(key, self.context_ids(episode))
            length = len(episode.trace) + len(context)
            rows.append(_Row(context, length, min(sampling.max_tokens, self.max_length - length)))
        writing = [i for i, row in enumerate(rows) if row.limit > 0]
        for row in rows:
            if row.limit <= 0:
                row.finish = "context"
        if writing:
            was_training = self.model.training
            self.model.eval()
            try:
                self.lm.verify()
                self._write([rows[i] for i in writing], [episodes[i] for i in writing], sampling)
            finally:
                self.model.train(was_training)
        return [self._response(row) for row in rows]

    # One turn of a batch.

    def _write(self, rows: list[_Row], episodes: list[Episode], sampling: Sampling) -> None:
        device = self.lm.device
        histories = [tuple(e.trace.token_ids) for e in episodes]
        cache, states = self._read(rows, histories)
        held = cache
        streams = UniformStreams([(e.seed, len(e.steps)) for e in episodes])
        alive = np.arange(len(rows))
        batch = np.arange(len(rows))
        step = 0
        while True:
            draw = draw_tokens(
                self.lm.logits(states),
                streams.column(step, batch),
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                entropies=sampling.entropies,
            )
            self._take(rows, batch, alive, draw.tokens.tolist(), draw.logprobs.tolist(), draw.entropies, sampling)
            alive = np.array([i for i in alive if rows[i].finish is None], dtype=np.int64)
            if not len(alive):
                break
            tokens = draw.tokens
            if len(alive) < _SHRINK_BELOW * len(batch):
                places = torch.from_numpy(np.flatnonzero(np.isin(batch, alive)))
                if cache is not held:
                    held.store(torch.from_numpy(batch), cache, torch.arange(len(batch)))
                cache, tokens, batch = cache.select(places.to(device)), tokens[places.to(device)], alive
            positions = torch.tensor([[rows[i].length - 1] for i in batch], device=device)
            states = self.lm.hidden(tokens[:, None], positions, cache)[:, -1]
            step += 1
        if cache is not held:
            held.store(torch.from_numpy(batch), cache, torch.arange(len(batch)))
        self._held = held
        self._held_rows = {(*histories[i], *row.context_ids, *row.token_ids): i for i, row in enumerate(rows)}

    def _take(
        self,
        rows: list[_Row],
        batch: Any,
        alive: Any,
        tokens: list[int],
        logprobs: list[float],
        entropies: torch.Tensor | None,
        sampling: Sampling,
    ) -> None:
        """Give each living row its token and see whether it has finished."""
        spread = entropies.tolist() if entropies is not None else None
        living = set(alive.tolist())
        ends, pieces = self.end_ids, self._pieces
        for place, i in enumerate(batch.tolist()):
            if i not in living:
                continue
            row = rows[i]
            token = tokens[place]
            row.token_ids.append(token)
            row.logprobs.append(logprobs[place])
            if spread is not None:
                row.entropies.append(spread[place])
            row.length += 1
            if token in ends:
                row.finish = "stop"
                continue
            piece = pieces[token] if token in pieces else self._piece(token)
            row.text += piece
            if ">" in piece and _acted(row.text, len(piece), sampling.stop):
                row.finish = "stop"
            elif len(row.token_ids) >= row.limit:
                row.finish = "length"

    def _read(self, rows: list[_Row], histories: list[tuple[int, ...]]) -> tuple[RaggedCache, torch.Tensor]:
        """Feed what the rows have not read yet. Returns their cache and the last hidden states (B, d)."""
        device = self.lm.device
        fingerprint = self.lm.fingerprint()
        if fingerprint != self._fingerprint:
            self.forget()
            self._fingerprint = fingerprint
        # Rows with equal tokens (a group's prompts, branches of one episode) are read once.
        unique: dict[tuple[int, ...], int] = {}
        place = [unique.setdefault((*h, *row.context_ids), len(unique)) for h, row in zip(histories, rows)]
        kept = [-1] * len(unique)
        starts = [0] * len(unique)
        for u, history in zip(place, histories):
            if history in self._held_rows:
                # The last token of a kept row was sampled but never fed.
                kept[u], starts[u] = self._held_rows[history], len(history) - 1
        fresh = [text[start:] for text, start in zip(unique, starts)]
        width = max(map(len, fresh))
        positions = torch.tensor(starts)[:, None] + torch.arange(width)[None]
        capacity = max(row.length + row.limit for row in rows)
        # Where a row is padded its positions may pass the end; nothing true is ever written to the last column here.
        positions = positions.clamp_max(capacity - 1)
        if self._held is not None and max(kept) >= 0:
            # A row that is not kept starts at column 0 and overwrites whatever it is given.
            cache = self._held.select(torch.tensor(kept, device=device).clamp_min(0), capacity)
        else:
            cache = RaggedCache(capacity)
        self.forget()
        ids = torch.zeros((len(fresh), width), dtype=torch.long)
        for u, tokens in enumerate(fresh):
            ids[u, : len(tokens)] = torch.tensor(tokens)
        states = self.lm.hidden(ids.to(device), positions.to(device), cache)
        last = states[torch.arange(len(fresh)), torch.tensor([len(tokens) - 1 for tokens in fresh])]
        if place == list(range(len(fresh))):
            return cache, last
        spread = torch.tensor(place, device=device)
        return cache.select(spread), last[spread]

    # Text.

    def _piece(self, token: int) -> str:
        piece = self._pieces.get(token)
        if piece is None:
            piece = self._pieces[token] = self._decode([token])
        return piece

    def spell(self, token_ids: Sequence[int]) -> tuple[str, list[int]]:
        """The text of sampled tokens (an end token at the end has none), and how many characters end with each token."""
        shown = list(token_ids)
        stops = self.end_ids
        while shown and shown[-1] in stops:
            shown.pop()
        text = self._decode(shown)
        pieces = [self._piece(token) for token in shown]
        if "".join(pieces) == text:
            ends = list(itertools.accumulate(map(len, pieces)))
        else:  # a character is spread over several tokens, or a token is written differently at the start of a text
            ends = decode_with_ends(self.tokenizer, shown)[1]
        return text, ends + [len(text)] * (len(token_ids) - len(shown))

    def _decode(self, token_ids: list[int]) -> str:
        text: str = self.tokenizer.decode(token_ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        return text

    def _response(self, row: _Row) -> Response:
        text, ends = self.spell(row.token_ids)
        finish = row.finish or "stop"
        return Response(text, row.context_ids, row.token_ids, row.logprobs, row.entropies, ends, finish)


def _end_ids(model: Any, tokenizer: Any) -> frozenset[int]:
    """Every token that ends the model's turn."""
    configured = getattr(model.generation_config, "eos_token_id", None) if model.generation_config else None
    ids = configured if isinstance(configured, list) else [configured]
    return frozenset(i for i in (*ids, tokenizer.eos_token_id) if i is not None)


def _acted(text: str, fresh: int, stop: tuple[str, ...]) -> bool:
    """Whether the last ``fresh`` characters of ``text`` closed an action, outside a thought."""
    old = len(text) - fresh
    if not any((at := text.rfind(tag)) >= 0 and at + len(tag) > old for tag in stop):
        return False
    return text.rfind("<think>") <= text.rfind("</think>")
