"""The record of what happened: steps, episodes, groups, and the tokens behind them.

Invariant of ``TokenTrace``: the spans, one after another, are exactly the tokens that the model saw, in order. It only ever
grows at its end; nothing is re-tokenised. ``loss_mask`` is 1 on the tokens that the model itself sampled.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple

from agentic_gym.actions import ParsedAction
from agentic_gym.roles import Role

__all__ = ["Episode", "Group", "Response", "Span", "Step", "TokenTrace", "ToolEvent"]

ToolStatus = Literal["ok", "raised", "malformed", "refused", "unavailable"]
SpanKind = Literal["prompt", "observation", "thought", "call", "answer"]


class ToolEvent(NamedTuple):
    """One attempt to use a tool."""

    name: str
    argument: str
    status: ToolStatus
    """``ok`` and ``raised`` were executed; ``malformed`` and ``refused`` were not; ``unavailable``: infrastructure failed."""
    seconds: float = 0.0

    @property
    def executed(self) -> bool:
        """Whether the call counts (c_i of the papers)."""
        return self.status in ("ok", "raised")


class Span(NamedTuple):
    """Tokens ``start`` to ``end`` (exclusive) of a trace belong to one part of one step (-1: before the first)."""

    step: int
    kind: SpanKind
    start: int
    end: int


@dataclass(frozen=True)
class Response:
    """What a policy answers for one episode. Text policies fill ``text`` alone."""

    text: str
    context_ids: Sequence[int] = ()
    """The tokens fed since the last response: the prompt at first, then each rendered observation."""
    token_ids: Sequence[int] = ()
    """The sampled tokens."""
    logprobs: Sequence[float] = ()
    """Log-probability of each sampled token under the sampling distribution, nats, shape of ``token_ids``."""
    entropies: Sequence[float] = ()
    """Entropy of each sampled token's distribution, nats; empty when not asked for."""
    char_ends: Sequence[int] = ()
    """For each sampled token, how many characters of ``text`` end with it."""
    finish: Literal["stop", "length", "context", "unavailable"] = "stop"
    """``length``: the turn's token limit; ``context``: the model's window is full and nothing was sampled; ``unavailable``: the
    server did not answer."""


@dataclass
class TokenTrace:
    """The tokens of one episode. All lists have one entry a token, T in all."""

    token_ids: list[int] = field(default_factory=list)
    loss_mask: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    """0 where ``loss_mask`` is 0."""
    entropies: list[float] = field(default_factory=list)
    """0 where unknown."""
    spans: list[Span] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.token_ids)

    def append_context(self, step: int, token_ids: Sequence[int]) -> None:
        """Add tokens that the model reads: the prompt (the first call) or the observation after step ``step - 1``."""
        kind: SpanKind = "observation" if self.spans else "prompt"
        self._extend(step, kind, token_ids, 0, [0.0] * len(token_ids), [0.0] * len(token_ids))

    def append_action(self, step: int, response: Response, action: ParsedAction | None) -> None:
        """Add the sampled tokens of one response, split into thought and call (or answer) by ``action.span``.

        A token that overlaps the span belongs to it. Raises ValueError when the response's lists differ in length.
        """
        n = len(response.token_ids)
        entropies = list(response.entropies) or [0.0] * n
        if not (len(response.logprobs) == len(entropies) == len(response.char_ends) == n):
            raise ValueError(
                f"a response's lists must have one entry a token: {n} ids, {len(response.logprobs)} logprobs, "
                f"{len(entropies)} entropies, {len(response.char_ends)} character ends"
            )
        first, last, kind = self._block_tokens(response, action)
        parts: list[tuple[int, int, SpanKind]] = [(0, first, "thought"), (first, last, kind), (last, n, "thought")]
        for start, end, part in parts:
            self._extend(
                step, part, response.token_ids[start:end], 1, response.logprobs[start:end], entropies[start:end]
            )

    @staticmethod
    def _block_tokens(response: Response, action: ParsedAction | None) -> tuple[int, int, SpanKind]:
        n = len(response.token_ids)
        if action is None or action.kind == "malformed":
            return n, n, "call"
        start, end = action.span
        starts = [0, *response.char_ends[:-1]]
        inside = [i for i in range(n) if starts[i] < end and response.char_ends[i] > start]
        if not inside:
            return n, n, "call"
        return inside[0], inside[-1] + 1, "answer" if action.kind == "answer" else "call"

    def _extend(
        self,
        step: int,
        kind: SpanKind,
        token_ids: Sequence[int],
        mask: int,
        logprobs: Sequence[float],
        entropies: Sequence[float],
    ) -> None:
        if not len(token_ids):
            return
        start = len(self.token_ids)
        self.token_ids.extend(token_ids)
        self.loss_mask.extend([mask] * len(token_ids))
        self.logprobs.extend(logprobs)
        self.entropies.extend(entropies)
        self.spans.append(Span(step, kind, start, len(self.token_ids)))

    def copy(self) -> TokenTrace:
        """An independent copy: a branch continues from here."""
        return TokenTrace(
            list(self.token_ids), list(self.loss_mask), list(self.logprobs), list(self.entropies), list(self.spans)
        )


@dataclass
class Step:
    """One turn: the agent's text and what came back."""

    action: str
    observation: str
    reward: float = 0.0
    kind: str = ""
    """The parsed kind: tool, answer, command, malformed; empty for foreign environments without a parser."""
    tool: ToolEvent | None = None
    role: Role | None = None
    judged: float | None = None
    """A scalar judge's score of the step, in [-1, 1] (``info["step_scores"]``, a list at the end of the episode)."""


@dataclass
class Episode:
    """One run of one task, growing step by step."""

    task_id: str
    instructions: str
    observation: str
    """The first observation."""
    level: int | str | None = None
    seed: int = 0
    """Sampling noise of turn t comes from (seed, t) alone, so an episode does not depend on its neighbours."""
    tool_free: bool = False
    base_instructions: str | None = None
    """Where a wrapper rewrote the instructions (tool-free rows): what they were."""
    steps: list[Step] = field(default_factory=list)
    info: Mapping[str, Any] = field(default_factory=dict)
    """The latest info from the environment; not written to files."""
    terminated: bool = False
    truncated: bool = False
    outcome: str | None = None
    success: bool = False
    score: float = 0.0
    """Graded value in [0, 1]."""
    trace: TokenTrace = field(default_factory=TokenTrace)
    parent: int | None = None
    """For a branched episode: the index in its group of the episode that it left."""
    branch_step: int = 0
    """For a branched episode: the number of steps shared with the parent."""
    error: str | None = None
    """Why the episode is masked, in words."""

    @property
    def done(self) -> bool:
        """Whether nothing more can happen."""
        return self.terminated or self.truncated

    @property
    def masked(self) -> bool:
        """Whether infrastructure failed: never scored, never trained on."""
        return self.outcome == "masked"

    @property
    def tool_calls(self) -> int:
        """Executed tool calls, c_i."""
        return sum(step.tool is not None and step.tool.executed for step in self.steps)

    @property
    def reward(self) -> float:
        """The sum of the environment's rewards."""
        return sum(step.reward for step in self.steps)

    @property
    def well_formed(self) -> bool:
        """Whether every action was valid and, where answers are asked for, an answer was given.

        A refused call is a format failure; so is running out of turns without an answer. A call to a tool that raised is not.
        """
        kinds = [step.kind for step in self.steps]
        if "malformed" in kinds or any(s.tool is not None and s.tool.status == "refused" for s in self.steps):
            return False
        return "answer" in kinds or "command" in kinds or not any(kinds)

    @property
    def last_observation(self) -> str:
        """What the agent has to react to."""
        return self.steps[-1].observation if self.steps else self.observation

    def record(
        self,
        response: Response,
        observation: str,
        reward: float,
        terminated: bool,
        truncated: bool,
        info: Mapping[str, Any],
    ) -> None:
        """Add one step: what the policy answered and what the environment made of it."""
        action: ParsedAction | None = info.get("action")
        index = len(self.steps)
        if len(response.context_ids) or len(response.token_ids):
            self.trace.append_context(index, response.context_ids)
            self.trace.append_action(index, response, action)
        self.steps.append(
            Step(
                response.text,
                observation,
                float(reward),
                action.kind if action else "",
                info.get("tool"),
                info.get("role"),
            )
        )
        self.info = info
        self.terminated, self.truncated = bool(terminated), bool(truncated)
        self.success = bool(info.get("success", False))
        if self.done:
            self.outcome = info.get("outcome", "solved" if self.success else "failed")
            self.score = float(info.get("score", float(self.success)))
            for step, role in zip(self.steps, info.get("roles", ())):
                step.role = role
            for step, judged in zip(self.steps, info.get("step_scores", ())):
                step.judged = judged

    def mask(self, reason: str) -> None:
        """End the episode because infrastructure failed."""
        self.truncated, self.outcome, self.error, self.success, self.score = True, "masked", reason, False, 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; ``from_dict`` reads it back (all but ``info``)."""
        data = {k: v for k, v in self.__dict__.items() if k not in ("steps", "info", "trace")}
        data["steps"] = [
            {
                **{k: v for k, v in step.__dict__.items() if k not in ("tool", "role")},
                "tool": step.tool._asdict() if step.tool else None,
                "role": step.role.value if step.role else None,
            }
            for step in self.steps
        ]
        data["trace"] = asdict(self.trace) if len(self.trace) else None
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Episode:
        """The inverse of ``to_dict``. Raises KeyError or TypeError on foreign data."""
        fields = dict(data)
        steps = [
            Step(
                **{
                    **step,
                    "tool": ToolEvent(**step["tool"]) if step["tool"] else None,
                    "role": Role(step["role"]) if step["role"] else None,
                }
            )
            for step in fields.pop("steps")
        ]
        trace = fields.pop("trace", None)
        tokens = TokenTrace(**{**trace, "spans": [Span(*span) for span in trace["spans"]]}) if trace else TokenTrace()
        return cls(**fields, steps=steps, trace=tokens)


@dataclass
class Group:
    """The M episodes of one task: what a group-relative advantage is computed over."""

    task_id: str
    episodes: list[Episode]

    def __len__(self) -> int:
        return len(self.episodes)

    def __iter__(self) -> Iterator[Episode]:
        return iter(self.episodes)

    @property
    def trainable(self) -> list[Episode]:
        """The episodes that count: all but the masked ones."""
        return [episode for episode in self.episodes if not episode.masked]

    @classmethod
    def by_task(cls, episodes: Sequence[Episode]) -> list[Group]:
        """Split a flat list into groups of neighbours with one task."""
        return [cls(task_id, list(rows)) for task_id, rows in itertools.groupby(episodes, key=lambda e: e.task_id)]
