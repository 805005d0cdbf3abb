"""How an episode becomes tokens. Tokens are only ever appended; nothing is rendered twice.

- ``InlineFormat``: a prompt, then actions and tool results in one running text (base models, small models from scratch).
- ``ChatFormat``: the tokenizer's chat template; what the environment says is a user turn.

Text of the environment is always encoded with special tokens switched off, so that nothing in a task or a result can become
a control token.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

__all__ = ["ChatFormat", "Format", "InlineFormat", "load_format"]

FORMAT_FILE = "agentic_gym_format.json"
"""Where a saved policy keeps how it is prompted."""

_MARK = "\u27e6{}\u27e7"
_SYSTEM, _FIRST, _ANSWER, _NEXT = (_MARK.format(i) for i in range(4))


class Format(Protocol):
    """Renders what the model reads."""

    end_ids: Sequence[int]
    """What a demonstrated turn ends with, after the action."""

    def describe(self) -> dict[str, Any]:
        """Plain data that ``load_format`` makes the format from again."""
        ...

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
        # Base models of some families write rubbish without their first token.
        self._start = [i for i in tokenizer.encode("")[:1] if i == tokenizer.bos_token_id]

    def describe(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {"kind": "inline", "template": self.template, "before": self.before, "after": self.after}

    def prompt_ids(self, instructions: str, observation: str) -> list[int]:
        """Fill in the template."""
        # Not str.format, nor one replacement after another: instructions and tasks may hold braces.
        values = {"{instructions}": instructions, "{observation}": observation}
        text = re.sub(r"\{(?:instructions|observation)\}", lambda field: values[field.group()], self.template)
        return self._start + encode(self.tokenizer, text)

    def observation_ids(self, observation: str, ended: bool) -> list[int]:
        """The observation with its surroundings."""
        return encode(self.tokenizer, f"{self.before}{observation}{self.after}")


class ChatFormat:
    """The tokenizer's chat template: instructions are the system turn, observations are user turns.

    The template is rendered once with marks in place of the texts and cut at the marks; texts are encoded apart from the frame.
    Decoded, a prompt and its observations are what the template renders for the whole conversation, with two exceptions:
    thoughts of earlier turns stay, where a template (Qwen3) would take them out, since tokens are only ever appended; and
    what the model wrote is not stripped of white space. Where a template has no system turn (Gemma) the instructions begin
    the first user turn.

    Args:
        tokenizer: a Hugging Face tokenizer with a chat template.
        **template_kwargs: passed to the template (``enable_thinking=False``).

    Raises ValueError when the tokenizer has no template, the template drops or reorders turns, or the tokenizer writes a text
    differently when it stands alone.
    """

    def __init__(self, tokenizer: Any, **template_kwargs: Any) -> None:
        if not getattr(tokenizer, "chat_template", None):
            raise ValueError(
                "this tokenizer has no chat template: use InlineFormat(tokenizer), or set tokenizer.chat_template"
            )
        self.tokenizer = tokenizer
        self._kwargs = template_kwargs
        if self._decode(encode(tokenizer, "a") + encode(tokenizer, "b")) != "ab":
            raise ValueError(
                f"{type(tokenizer).__name__} puts a space before every text, so a conversation cannot be built from parts: "
                "load it with add_prefix_space=False, or serve the model and use OpenAIServerPolicy"
            )
        self._no_system = self._frames(None, _FIRST)
        self._system = self._system_frames()
        self._strips = f" {_FIRST}" not in self._render([{"role": "user", "content": f" {_FIRST}"}])
        turn = self._render(
            [
                {"role": "user", "content": _FIRST},
                {"role": "assistant", "content": _ANSWER},
                {"role": "user", "content": _NEXT},
            ]
        )
        tail = _after(turn, _ANSWER)
        before, after = _cut(tail, _NEXT)
        self._before_open = self._frame_ids(before)
        self._after = self._frame_ids(after)
        # The token that closes a turn: the template's own (for some models not the tokenizer's end token). When the model wrote
        # it, the frame must not repeat it.
        closing = [token for token in self._before_open[:1] if token in _control_tokens(tokenizer)]
        self._before_ended = self._before_open[len(closing) :]
        self.end_ids: Sequence[int] = closing or [i for i in (tokenizer.eos_token_id,) if i is not None]

    def describe(self) -> dict[str, Any]:
        """The template's arguments; the template itself is the tokenizer's."""
        return {"kind": "chat", **self._kwargs}

    def prompt_ids(self, instructions: str, observation: str) -> list[int]:
        """System turn (left out when there are no instructions), user turn, start of the model's turn."""
        if instructions and self._system is not None:
            texts, frames = [instructions, observation], self._system
        else:
            texts, frames = ["\n\n".join(filter(None, (instructions, observation)))], self._no_system
        ids = list(frames[0])
        for text, frame in zip(texts, frames[1:]):
            ids += self._text_ids(text) + frame
        return ids

    def observation_ids(self, observation: str, ended: bool) -> list[int]:
        """End of the model's turn, a user turn, start of the model's next turn."""
        before = self._before_ended if ended else self._before_open
        return before + self._text_ids(observation) + self._after

    def _text_ids(self, text: str) -> list[int]:
        return encode(self.tokenizer, text.strip() if self._strips else text)

    def _system_frames(self) -> list[list[int]] | None:
        from jinja2.exceptions import TemplateError

        try:
            return self._frames(_SYSTEM, _FIRST)
        except TemplateError:  # "System role not supported"
            return None

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
        return encode(self.tokenizer, text, special=True)

    def _decode(self, ids: list[int]) -> str:
        text: str = self.tokenizer.decode(ids, clean_up_tokenization_spaces=False)
        return text


def load_format(folder: Path, tokenizer: Any) -> Format | None:
    """The format that was saved beside a model in ``folder`` (``TransformersPolicy.save_pretrained``), or None."""
    path = folder / FORMAT_FILE
    if not path.is_file():
        return None
    try:
        arguments = dict(json.loads(path.read_text(encoding="utf-8")))
        kind = arguments.pop("kind")
        if kind not in ("inline", "chat"):
            raise ValueError(f"unknown kind {kind!r}")
        return InlineFormat(tokenizer, **arguments) if kind == "inline" else ChatFormat(tokenizer, **arguments)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} does not describe a format ({error}); delete it and give one outright") from error


def encode(tokenizer: Any, text: str, *, special: bool = False) -> list[int]:
    """Token ids of ``text`` alone; control tokens inside it are plain characters unless ``special``."""
    ids: list[int] = tokenizer.encode(text, add_special_tokens=False, split_special_tokens=not special)
    return ids


def _control_tokens(tokenizer: Any) -> set[int]:
    added = {i for i, token in tokenizer.added_tokens_decoder.items() if token.special}
    return added | set(tokenizer.all_special_ids)


def _cut(text: str, mark: str) -> tuple[str, str]:
    before, found, after = text.partition(mark)
    if not found or mark in after:
        raise ValueError("the chat template drops or repeats a turn; pass a template of your own to the tokenizer")
    return before, after


def _after(text: str, mark: str) -> str:
    return _cut(text, mark)[1]
