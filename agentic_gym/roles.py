"""The roles that TRIAGE gives to the steps of an episode, and who may give them.

A step's role says what it did for the task, whatever the final outcome was (``specs``: TRIAGE section 11):

- *decisive*: verifiable progress, or a required sub-goal done;
- *exploration*: brought relevant information, completed nothing;
- *no progress*: harmless, changed neither the task nor what is known;
- *regression*: damaged the state, or repeated something that could reveal nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from agentic_gym.episodes import Episode
    from agentic_gym.role_theory import RoleFit

__all__ = ["ROLE_CREDIT", "HindsightJudge", "JudgedStep", "OnlineJudge", "Role", "RoleJudge", "fit_constants"]


class Role(str, Enum):
    """One of the four roles; its value is the letter used in files and prompts."""

    DECISIVE = "D"
    EXPLORATION = "E"
    NO_PROGRESS = "N"
    REGRESSION = "R"

    def __str__(self) -> str:
        return self.value


ROLE_CREDIT: Mapping[Role, float] = MappingProxyType(
    {Role.DECISIVE: 1.0, Role.EXPLORATION: 0.5, Role.NO_PROGRESS: -0.1, Role.REGRESSION: -0.5}
)
"""TRIAGE's constants c_role; the paper never tunes them."""


class JudgedStep(NamedTuple):
    """What a judge may see of a step: what was done and what came back. Never a reward, score or outcome."""

    action: str
    observation: str


@runtime_checkable
class OnlineJudge(Protocol):
    """Labels each step as it happens, with the environment at hand: an oracle."""

    def begin(self, env: Any, observation: str, info: Mapping[str, Any]) -> None:
        """A new episode of ``env`` starts with this observation."""
        ...

    def label(self, env: Any, action: str, observation: str, info: Mapping[str, Any]) -> Role | None:
        """The role of the step just taken; None when it cannot be told."""
        ...


@runtime_checkable
class HindsightJudge(Protocol):
    """Labels all steps of a finished episode, so that a label can depend on later steps. The outcome is withheld."""

    def label_episode(self, task: str, steps: Sequence[JudgedStep]) -> list[Role | None]:
        """One label a step; None where the judge gave no usable label (neutral credit, and counted)."""
        ...


RoleJudge = OnlineJudge | HindsightJudge


def fit_constants(episodes: Sequence[Episode], residuals: Sequence[ArrayLike], **settings: Any) -> RoleFit:
    """What each role is worth on labelled ``episodes``: see ``agentic_gym.role_theory.fit_constants_to_episodes``.

    Args:
        episodes: with roles on their steps.
        residuals: for each episode, (steps,): true advantage (Monte-Carlo or oracle) minus outcome advantage.
        **settings: constants, lam, whitened.
    """
    from agentic_gym.role_theory import fit_constants_to_episodes

    return fit_constants_to_episodes(episodes, residuals, **settings)
