"""What a policy is: something that answers a batch of episodes.

- ``Policy``: the protocol; ``Sampling``: how to draw.
- ``as_policy``: any function ``f(observation, info) -> str`` as a policy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, runtime_checkable

from agentic_gym.episodes import Episode, Response
from agentic_gym.ranges import Checked, Count, NonNegative, Range

__all__ = ["FunctionPolicy", "Policy", "Sampling", "as_policy"]


@dataclass(frozen=True)
class Sampling(Checked):
    """How a token policy draws. Text policies may ignore it."""

    temperature: NonNegative = 1.0
    """Divides the logits; 0 is greedy."""
    top_p: Annotated[float, Range(above=0, most=1)] = 1.0
    """Nucleus: the smallest set of tokens with at least this probability."""
    max_tokens: Count = 512
    """Most tokens of one turn."""
    stop: tuple[str, ...] = ("</python>", "</search>", "</tool_call>", "</answer>", "</action>")
    """Closing tags after which the turn is over; the tag itself is kept."""
    entropies: bool = False
    """Record the entropy of each sampled token's distribution."""


@runtime_checkable
class Policy(Protocol):
    """Answers every given episode with its next action.

    An episode holds all that an agent may know: ``instructions``, the first ``observation``, the ``steps`` so far, the latest
    ``info``. The policy does not change it; the caller records the response.
    """

    def respond(self, episodes: Sequence[Episode], sampling: Sampling) -> list[Response]:
        """One response an episode, in order."""
        ...


class FunctionPolicy:
    """A policy made of a function that looks at the last observation only."""

    def __init__(self, function: Callable[[str, Mapping[str, Any]], str]) -> None:
        self.function = function

    def respond(self, episodes: Sequence[Episode], sampling: Sampling) -> list[Response]:
        """Call the function once an episode. Raises TypeError when it returns no text."""
        responses = []
        for episode in episodes:
            text = self.function(episode.last_observation, episode.info)
            if not isinstance(text, str):
                raise TypeError(f"a policy function returns the action's text, got {type(text).__name__}: {text!r:.80}")
            responses.append(Response(text))
        return responses


def as_policy(policy: Policy | Callable[[str, Mapping[str, Any]], str]) -> Policy:
    """``policy`` itself, or a function ``f(observation, info) -> str`` as one.

    Example:
        >>> from agentic_gym.episodes import Episode
        >>> agent = as_policy(lambda observation, info: f"<answer>{len(observation)}</answer>")
        >>> agent.respond([Episode("t", "", "hello")], Sampling())[0].text
        '<answer>5</answer>'
    """
    if isinstance(policy, Policy):
        return policy
    if not callable(policy):
        raise TypeError(f"a policy has respond(), or is a function of (observation, info); got {policy!r}")
    return FunctionPolicy(policy)
