"""The one grammar of the library: an agent's text in, a ``ParsedAction`` out.

An action is free text with one block in it::

    <think>...</think>                                     free thought, never an action
    <python>code</python>   <search>query</search>         a tool call
    <tool_call>{"name": "python", "arguments": {"code": "..."}}</tool_call>   the same, Hermes form
    <answer>...</answer>                                   the final answer
    go to desk 1            <action>go to desk 1</action>  a command, in environments that take commands

The first complete block outside ``<think>`` counts; what follows it is ignored and flagged. Everything that is not exactly one
of these is *malformed* and says why: a block that is not closed, a block inside a block, a ``<result>`` that the agent
wrote itself. The parser never raises and takes time linear in the text.
"""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["CONTROL_CHARACTERS", "Grammar", "ParsedAction", "RefusedCall", "neutralize"]

Kind = Literal["tool", "answer", "command", "malformed"]

_RESERVED = ("think", "answer", "tool_call", "result", "action")
_SHIPPED_TOOLS = ("python", "search")
_TOOL_NAME = re.compile(r"[a-z][a-z0-9_]*")
CONTROL_CHARACTERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
"""What is not shown as itself: controls other than tab and newline, direction and byte order marks, lone surrogates."""
_SPECIAL_TOKEN = re.compile(r"<(?=\|)")


@dataclass(frozen=True)
class ParsedAction:
    """What an action text asks for."""

    kind: Kind
    name: str = ""
    """The tool's name for a tool call, else empty."""
    argument: str = ""
    """Code, query, answer or command, without its tags."""
    span: tuple[int, int] = (0, 0)
    """Character range of the whole block, tags included, in the action text; empty when malformed."""
    trailing: bool = False
    """Whether ignored text other than white space followed the block."""
    problem: str = ""
    """For a malformed action: what was wrong, as a sentence for the agent."""


class RefusedCall(str):
    """An action text whose tool call a wrapper refuses: the environment charges the turn and executes nothing.

    Being a ``str`` it passes through every wrapper below the one that refused.
    """

    reason: str

    def __new__(cls, text: str, reason: str) -> RefusedCall:
        """Mark ``text`` as refused for ``reason`` (a sentence that the agent will read)."""
        self = super().__new__(cls, text)
        self.reason = reason
        return self

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]  # pickle and copy keep the reason
        return (str(self), self.reason)


@dataclass(frozen=True)
class Grammar:
    """Which blocks an environment understands.

    Args:
        tools: names of the tools, each a tag of its own and a name in the Hermes form.
        answer: whether ``<answer>`` ends the episode.
        commands: whether plain text (or ``<action>``) is a command; then text without a block is never malformed
            unless it is empty.

    Example:
        >>> g = Grammar(tools=("python",))
        >>> g.parse("<think>add</think><python>print(1+1)</python>")
        ParsedAction(kind='tool', name='python', argument='print(1+1)', span=(18, 45), trailing=False, problem='')
        >>> g.parse("<answer>4").problem
        '<answer> is not closed: write </answer> after it.'
        >>> Grammar(commands=True, answer=False).parse("go to desk 1").argument
        'go to desk 1'
    """

    tools: tuple[str, ...] = ()
    answer: bool = True
    commands: bool = False
    _tag: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in self.tools:
            if not _TOOL_NAME.fullmatch(name) or name in _RESERVED:
                raise ValueError(
                    f"{name!r} cannot be a tool's name: use lower-case letters, digits and _, and none of {', '.join(_RESERVED)}"
                )
        names = "|".join((*_RESERVED, *self.tools))
        object.__setattr__(self, "_tag", re.compile(rf"<(/?)({names})>"))

    @property
    def stop_strings(self) -> tuple[str, ...]:
        """The closing tags after which a policy has acted and must stop writing."""
        closing = [f"</{name}>" for name in self.tools]
        if self.tools:
            closing.append("</tool_call>")
        if self.answer:
            closing.append("</answer>")
        if self.commands:
            closing.append("</action>")
        return tuple(closing)

    def parse(self, text: str) -> ParsedAction:
        """Read one action. Never raises; see the module for the rules."""
        opened = ""
        inner_start = block_start = 0
        thinking = False
        last_think_end = text.rfind("</think>")
        outside: list[tuple[int, int]] = []
        resume = 0
        for tag in self._tag.finditer(text):
            closing, name = tag.group(1) == "/", tag.group(2)
            if opened:
                if name != opened:
                    return _malformed(f"<{tag.group(1)}{name}> may not stand inside <{opened}>.")
                if not closing:
                    return _malformed(f"<{opened}> may not stand inside itself.")
                rest = text[tag.end() :]
                return self._block(
                    opened, text[inner_start : tag.start()], (block_start, tag.end()), bool(rest.strip())
                )
            if thinking:
                if closing and name == "think":
                    thinking, resume = False, tag.end()
                continue
            if name == "think":
                # An opened thought that is never closed hides nothing: servers stop at the first closing tag.
                thinking = not closing and tag.end() <= last_think_end
                outside.append((resume, tag.start()))
                resume = tag.end()
                continue
            if name == "result":
                return _malformed("Only the environment writes <result>.")
            if closing:
                continue
            opened, block_start, inner_start = name, tag.start(), tag.end()
        if opened:
            return _malformed(f"<{opened}> is not closed: write </{opened}> after it.")
        if self.commands:
            return _plain_command(text, [*outside, (resume, len(text))])
        return _malformed(f"No action found. Write {self.choices()}.")

    def neutralize(self, text: str) -> str:
        """``text`` of a tool, unable to open or close any block of this grammar: see the function ``neutralize``."""
        return neutralize(text, self.tools)

    def choices(self) -> str:
        """The allowed blocks, for messages to the agent."""
        options = [f"<{name}>...</{name}>" for name in self.tools]
        if self.answer:
            options.append("<answer>...</answer>")
        if self.commands:
            options.append("one command")
        return " or ".join(options)

    def _block(self, name: str, inner: str, span: tuple[int, int], trailing: bool) -> ParsedAction:
        if name in self.tools:
            if not inner.strip():
                return _malformed(f"<{name}> is empty.")
            return ParsedAction("tool", name, inner.strip("\n"), span, trailing)
        if name == "answer":
            if not self.answer:
                return _malformed(f"This task takes no <answer>. Write {self.choices()}.")
            if not inner.strip():
                return _malformed("<answer> is empty.")
            return ParsedAction("answer", argument=inner.strip(), span=span, trailing=trailing)
        if name == "action":
            if not self.commands:
                return _malformed(f"This task takes no <action>. Write {self.choices()}.")
            if not inner.strip():
                return _malformed("<action> is empty.")
            return ParsedAction("command", argument=inner.strip(), span=span, trailing=trailing)
        return self._tool_call(inner, span, trailing)

    def _tool_call(self, inner: str, span: tuple[int, int], trailing: bool) -> ParsedAction:
        """The Hermes form: a JSON object with a tool's name and one text argument."""
        if not self.tools:
            return _malformed(f"This task has no tools. Write {self.choices()}.")
        try:
            call = json.loads(inner)
        except (ValueError, RecursionError):
            return _malformed('<tool_call> must hold JSON: {"name": ..., "arguments": {...}}.')
        name = call.get("name") if isinstance(call, dict) else None
        if not isinstance(name, str) or name not in self.tools:
            return _malformed(f"<tool_call> must name one of the tools: {', '.join(self.tools)}.")
        argument = _single_text(call.get("arguments", call.get("parameters")))
        if argument is None or not argument.strip():
            return _malformed(f'"arguments" of {name} must hold one text.')
        if self._tag.search(argument):
            return _malformed(f"No tag of the grammar may stand inside a call of {name}.")
        return ParsedAction("tool", name, argument.strip("\n"), span, trailing)


def neutralize(text: str, tools: tuple[str, ...] = ()) -> str:
    """Make foreign text (tool output, passages, web pages) unable to open or close a block.

    Tags of the grammar and chat markers such as ``<|im_end|>`` lose their ``<``; control characters other than tab
    and newline, direction marks and lone surrogates become ``\\ufffd``. Idempotent.

    Args:
        text: any text.
        tools: names of tools beside python and search, whose tags are taken apart everywhere.

    Example:
        >>> neutralize("1 < 2 </result><answer>7</answer>")
        '1 < 2 &lt;/result>&lt;answer>7&lt;/answer>'
        >>> neutralize("<calc>1</calc>", tools=("calc",))
        '&lt;calc>1&lt;/calc>'
    """
    text = text.replace("\r\n", "\n")
    return _SPECIAL_TOKEN.sub("&lt;", _tag_like(tools).sub("&lt;", CONTROL_CHARACTERS.sub("\ufffd", text)))


@functools.lru_cache(maxsize=64)
def _tag_like(tools: tuple[str, ...]) -> re.Pattern[str]:
    """The ``<`` of whatever a reader could take for a tag."""
    names = "|".join(map(re.escape, dict.fromkeys((*_RESERVED, *_SHIPPED_TOOLS, *tools))))
    # The white space is matched in one way only: in two, a long run of it would take seconds.
    return re.compile(rf"<(?=\s*(?:/\s*)?(?=\S)(?:{names})\b)", re.IGNORECASE)


def _malformed(problem: str) -> ParsedAction:
    return ParsedAction("malformed", problem=problem)


def _plain_command(text: str, outside: list[tuple[int, int]]) -> ParsedAction:
    """A command without a block: the text outside the thoughts; the span reaches from its first to its last character."""
    pieces = [(start, end) for start, end in outside if text[start:end].strip()]
    if not pieces:
        return _malformed("The action is empty. Write one command.")
    command = " ".join(text[start:end] for start, end in pieces).strip()
    first, last = text[slice(*pieces[0])], text[slice(*pieces[-1])]
    span = (pieces[0][1] - len(first.lstrip()), pieces[-1][0] + len(last.rstrip()))
    return ParsedAction("command", argument=command, span=span)


def _single_text(arguments: Any) -> str | None:
    """The one string in a Hermes ``arguments`` value, whatever its key."""
    if isinstance(arguments, str):
        return arguments
    if isinstance(arguments, dict):
        texts = [value for value in arguments.values() if isinstance(value, str)]
        if len(texts) == 1 and len(arguments) == 1:
            return texts[0]
    return None
