"""How an episode becomes tokens. Tokens are only ever appended; nothing is rendered twice.

- ``InlineFormat``: a prompt, then actions and tool results in one running text (base models, small models from scratch).
- ``ChatFormat``: the tokenizer's chat template; what the environment says is a user turn.

Text of the environment is always encoded with special tokens switched off, so that nothing in a task or a result can become
a control token.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

__all__ = ["ChatFormat", "Format", "InlineFormat"]

_MARK = "\u27e6{}\u27e7"
_SYSTEM, _FIRST, _ANSWER, _NEXT = (_MARK.format(i) for i in range(4))


class Format(Protocol):
    """Renders what the model reads."""

    end_ids: Sequence[int]
    """What a demonstrated turn ends with, after the action."""

    def prompt_ids(self, instructions: str, observation: str) -> list[int]:
        """The tokens before the first action."""
        ...

    def observation_ids(self, observation: str, ended: bool) -> list[int]:
        """The tokens between two actions; ``ended``: the model closed its turn with its own end token."""
        ...


class InlineFormat:
    """One running text: ``template`` filled in, then actions and observations one after another.

    Args:
        tokenizer: a Hugging Face tokenizer.
        template: holds ``{instructions}`` and ``{observation}``.
        before, after: fixed text around each later observation.
    """

    def __init__(
        self, tokenizer: Any, template: str = "{instructions}\n\n{observation}\n", before: str = "", after: str = ""
    ) -> None:
        if "{observation}" not in template:
            raise ValueError(f"the template must hold {{observation}}; got {template!r}")
        self.tokenizer, self.template, self.before, self.after = tokenizer, template, before, after
        self.end_ids: Sequence[int] = ()

    def prompt_ids(self, instructions: str, observation: str) -> list[int]:
        """Fill in the template."""
        # Not str.format: instructions and tasks may hold braces.
        text = self.template.replace("{instructions}", instructions).replace("{observation}", observation)
        return encode(self.tokenizer, text)

    def observation_ids(self, observation: str, ended: bool) -> list[int]:
        """The observation with its surroundings."""
        return encode(self.tokenizer, f"{self.before}{observation}{self.after}")


class ChatFormat:
    """The tokenizer's chat template: instructions are the system turn, observations are user turns.

    The template is rendered once with marks in place of the texts and cut at the marks; texts are encoded apart from the frame.

    Args:
        tokenizer: a Hugging Face tokenizer with a chat template.
        **template_kwargs: passed to the template (``enable_thinking=False``).

    Raises ValueError when the tokenizer has no template or the template drops or reorders turns.
    """

    def __init__(self, tokenizer: Any, **template_kwargs: Any) -> None:
        if not getattr(tokenizer, "chat_template", None):
            raise ValueError(
                "this tokenizer has no chat template: use InlineFormat(tokenizer), or set tokenizer.chat_template"
            )
        self.tokenizer = tokenizer
        self._kwargs = template_kwargs
        self._system = self._frames(_SYSTEM, _FIRST)
        self._no_system = self._frames(None, _FIRST)
        turn = self._render(
            [
                {"role": "user", "content": _FIRST},
                {"role": "assistant", "content": _ANSWER},
                {"role": "user", "content": _NEXT},
            ]
        )
        tail = _after(turn, _ANSWER)
        before, after = _cut(tail, _NEXT)
        end = tokenizer.eos_token or ""
        # When the model wrote its own end token the frame must not repeat it.
        self._before_ended = self._frame_ids(before[len(end) :] if end and before.startswith(end) else before)
        self._before_open = self._frame_ids(before)
        self._after = self._frame_ids(after)
        self.end_ids: Sequence[int] = self._frame_ids(end)

    def prompt_ids(self, instructions: str, observation: str) -> list[int]:
        """System turn (left out when there are no instructions), user turn, start of the model's turn."""
        texts = [instructions, observation] if instructions else [observation]
        frames = self._system if instructions else self._no_system
        ids = list(frames[0])
        for text, frame in zip(texts, frames[1:]):
            ids += encode(self.tokenizer, text, special=False) + frame
        return ids

    def observation_ids(self, observation: str, ended: bool) -> list[int]:
        """End of the model's turn, a user turn, start of the model's next turn."""
        before = self._before_ended if ended else self._before_open
        return before + encode(self.tokenizer, observation, special=False) + self._after

    def _frames(self, *marks: str | None) -> list[list[int]]:
        roles = ("system", "user")
        messages = [{"role": role, "content": mark} for role, mark in zip(roles, marks) if mark is not None]
        rest = self._render(messages)
        frames = []
        for mark in marks:
            if mark is not None:
                frame, rest = _cut(rest, mark)
                frames.append(self._frame_ids(frame))
        return [*frames, self._frame_ids(rest)]

    def _render(self, messages: list[dict[str, str]]) -> str:
        text: str = self.tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True, **self._kwargs
        )
        return text

    def _frame_ids(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False)
        return ids


def encode(tokenizer: Any, text: str, *, special: bool = False) -> list[int]:
    """Token ids of ``text`` alone; control tokens inside it are plain characters unless ``special``."""
    ids: list[int] = tokenizer.encode(text, add_special_tokens=False, split_special_tokens=not special)
    return ids


def _cut(text: str, mark: str) -> tuple[str, str]:
    before, found, after = text.partition(mark)
    if not found or mark in after:
        raise ValueError("the chat template drops or repeats a turn; pass a template of your own to the tokenizer")
    return before, after


def _after(text: str, mark: str) -> str:
    return _cut(text, mark)[1]
