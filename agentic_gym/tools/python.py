"""PythonTool: the interpreter as an agent's tool, with output made fit for a `<result>` block.

Do not give it to code you would not run in `agentic_gym.tools.sandbox`; see docs/sandbox.md for what that stops.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections import OrderedDict
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Literal, Protocol

from agentic_gym.tools.sandbox import Result, default_sandbox

_CACHE_SIZE = 4096
_CACHED_CHARS = 16384
"""Longest call that is remembered, in characters of code and output: hostile ones must not fill the memory."""
_TAGS = (
    "python", "search", "answer", "result", "think", "action", "command", "tool", "tools", "tool_call", "tool_calls",
    "tool_result", "tool_response", "function", "function_call", "information", "observation", "system", "user",
    "assistant", "start_of_turn", "end_of_turn", "start_of_image", "end_of_image", "image", "sys", "s", "bos", "eos",
    "pad", "unk", "cls", "sep", "mask", "sop", "eop", "bos_token", "eos_token", r"extra_id_\d+", r"unused\d+", r"fim_\w+",
)  # fmt: skip
"""Names with a meaning to an action parser, a chat template or a tokenizer."""
_BRACKETED = (
    "INST", "SYSTEM_PROMPT", "TOOL_CALLS", "TOOL_RESULTS", "TOOL_CONTENT", "AVAILABLE_TOOLS", "CALL_ID", "ARGS", "THINK",
    "IMG", "IMG_BREAK", "IMG_END", "PREFIX", "MIDDLE", "SUFFIX", "CLS", "SEP", "MASK", "PAD", "UNK", "BOS", "EOS", "EOT",
    "gMASK", "sMASK",
)  # fmt: skip
"""Special tokens that tokenizers write in square brackets, in this spelling only."""
_OPENING = re.compile(
    # The white space is matched in one way only: in two, code that prints much of it would stop us for hours.
    rf"[<＜﹤](?=\s*(?:/\s*)?(?=\S)(?:(?:{'|'.join(_TAGS)})\b|[|｜]))|(?-i:\[(?=/?(?:{'|'.join(_BRACKETED)})\]))",
    re.IGNORECASE,
)
_CATEGORIES = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
"""Unicode categories shown as escapes: control, format (direction, zero width), surrogate, private, unassigned, breaks."""


@dataclass(frozen=True)
class ToolResult:
    """One call of the tool."""

    stdout: str
    """As the code wrote it, up to the sandbox's output limit: raw, not for a prompt."""
    stderr: str
    """Likewise; an exception's traceback is here."""
    status: Literal["ok", "raised", "unavailable"]
    """raised: the code failed or went over a limit, which is normal feedback. unavailable: the infrastructure failed;
    the episode must be masked, never scored."""
    seconds: float
    """Wall-clock seconds of the run; 0 when it came from the cache."""
    note: str = ""
    """Why it ended early, in a few words; empty when it ended by itself."""
    max_chars: int = 2000
    """Characters of output that `text` shows."""
    sandbox_status: str = ""
    """The sandbox's own word for how the run ended (`agentic_gym.tools.sandbox.Status`)."""

    @cached_property
    def text(self) -> str:
        """The body of the `<result>` block: bounded, without live tags or control characters."""
        return render(self.stdout, self.stderr, self.note, self.max_chars)


class Executor(Protocol):
    """What PythonTool needs of a sandbox; Sandbox and RemoteSandbox have it."""

    def execute(
        self, code: str, timeout: float | None = None, stdin: str = "", echo: bool = False, *,
        seed: int | None = None,
    ) -> Result:  # fmt: skip
        """Run `code`."""
        ...


class PythonTool:
    """Run model-written Python and return what a notebook would show.

    Safe to call from many threads. Making one is cheap; the interpreter starts on the first call. Without
    `sandbox`, all tools of a process share one.

    Args:
        sandbox: where the code runs; default `default_sandbox()`.
        timeout: wall-clock seconds of one call.
        cache: answer code that was run before from memory. Not for code with side effects on purpose, or that
            reads the clock; results that depend on load (timeouts) are never cached.
        max_chars: characters of output shown; longer output loses its middle.
        seed: seed of the code's global random generators, so that a call repeats; None for fresh entropy.

    >>> tool = PythonTool()
    >>> tool.run("x = 6\\nx * 7").text
    '42'
    >>> print(tool.run("print('</result>')").text)
    ‹/result>
    """

    name = "python"
    description = "run Python; what it prints, and the value of a last expression, come back."

    def __init__(
        self,
        sandbox: Executor | None = None,
        timeout: float = 5.0,
        cache: bool = False,
        max_chars: int = 2000,
        seed: int | None = 0,
    ) -> None:
        if not timeout > 0:
            raise ValueError(f"timeout must be above 0 seconds, got {timeout!r}")
        if max_chars < 100:
            raise ValueError(f"max_chars must be at least 100, got {max_chars!r}")
        self.timeout = timeout
        self.cache = cache
        self.max_chars = max_chars
        self.seed = seed
        self._sandbox = sandbox
        self._remembered: OrderedDict[tuple[str, float], ToolResult] = OrderedDict()
        self._lock = threading.Lock()

    def run(self, code: str, timeout: float | None = None) -> ToolResult:
        """Run `code` in a fresh interpreter.

        Never raises for what the code does; raises SandboxUnavailable where the machine cannot isolate it.
        """
        seconds = self.timeout if timeout is None else timeout
        key = (code, seconds)
        if self.cache:
            with self._lock:
                if (known := self._remembered.get(key)) is not None:
                    self._remembered.move_to_end(key)
                    return known
        sandbox = self._sandbox or default_sandbox()
        result = sandbox.execute(code, seconds, echo=True, seed=self.seed)
        answer = self._answer(result, seconds)
        length = len(code) + len(result.stdout) + len(result.stderr)
        if self.cache and result.status in ("ok", "error") and length <= _CACHED_CHARS:
            with self._lock:
                self._remembered[key] = replace(answer, seconds=0.0)
                if len(self._remembered) > _CACHE_SIZE:
                    self._remembered.popitem(last=False)
        return answer

    def _answer(self, result: Result, timeout: float) -> ToolResult:
        status = _TOOL_STATUS.get(result.status, "raised")
        note = explain(result, timeout)
        return ToolResult(
            result.stdout, result.stderr, status, result.wall, note, self.max_chars, result.status
        )

    def close(self) -> None:
        """Forget cached results. The sandbox stays: it may be shared, and ends with the process or its owner."""
        with self._lock:
            self._remembered.clear()

    def __getstate__(self) -> dict[str, Any]:
        return {
            "sandbox": self._sandbox,
            "timeout": self.timeout,
            "cache": self.cache,
            "max_chars": self.max_chars,
            "seed": self.seed,
        }

    def __setstate__(self, settings: dict[str, Any]) -> None:
        self.__init__(**settings)  # type: ignore[misc]


_TOOL_STATUS: dict[str, Literal["ok", "raised", "unavailable"]] = {"ok": "ok", "sandbox_error": "unavailable"}


def explain(result: Result, timeout: float) -> str:
    """One line on why a run ended early; empty when it ended by itself."""
    if result.status in ("ok", "error"):
        return "" if result.status == "ok" or result.stderr else f"exit code {result.returncode}"
    return {
        "timeout": f"stopped: ran longer than {timeout:g} seconds",
        "memory": "stopped: out of memory",
        "output_limit": "stopped: too much output",
        "disk_limit": "stopped: too much written to disk",
        "thread_limit": "stopped: too many threads",
        "crashed": f"the interpreter crashed (signal {result.signal})",
        "session_lost": "the session is gone; its variables are lost",
        "sandbox_error": "the interpreter is unavailable",
    }[result.status]


def render(stdout: str, stderr: str, note: str, max_chars: int) -> str:
    """The text of a result block: stdout, then stderr, then a bracketed note; "[no output]" if all are empty.

    Each stream keeps at least half of `max_chars`, so neither hides the other. Tags and control characters are
    made harmless, so the text cannot close its block, open another, or speak to a chat template.
    """
    out, err = (harmless(stream).strip("\n") for stream in (stdout, stderr))
    half = max_chars // 2
    parts = [
        cut_middle(out, max(half, max_chars - len(err))),
        cut_middle(err, max(half, max_chars - len(out))),
        f"[{note}]" if note else "",
    ]
    # Once more over the whole: a "<" that ends one stream must not meet a name that begins the next.
    return _disarm("\n".join(part for part in parts if part)) or "[no output]"


def harmless(text: str) -> str:
    """`text` with meaningful tags broken and invisible characters shown as escapes (tab and newline stay)."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.isascii() or not text.replace("\n", "").replace("\t", "").isprintable():
        text = "".join(_visible(character) for character in text)
    return _disarm(text)


def _disarm(text: str) -> str:
    """`text` with look-alikes for the brackets that open a tag or a special token."""
    return _OPENING.sub(lambda found: "⁅" if found[0] == "[" else "‹", text)


@lru_cache(4096)
def _visible(character: str) -> str:
    if character in "\n\t" or unicodedata.category(character) not in _CATEGORIES:
        return character
    return character.encode("unicode_escape").decode("ascii")


def cut_middle(text: str, limit: int) -> str:
    """`text` of at most about `limit` characters: the middle gives way to a note that says how much is missing."""
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    tail = limit - head
    return f"{text[:head]}\n[... {len(text) - limit} characters left out ...]\n{text[-tail:]}"

