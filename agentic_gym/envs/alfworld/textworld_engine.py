"""The real engine: alfworld's and textworld's own packages, with their repeated work remembered.

The packages translate the PDDL twice for every load and twice for every reset, and parse every command template anew in
every step. `textworld_memory` keeps these results; what the packages compute from them is untouched.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from typing import Any

from agentic_gym.envs.alfworld.engine import Frame
from agentic_gym.envs.alfworld.textworld_memory import remember_results

__all__ = ["TextWorldEngine"]

_LOCK = threading.RLock()
"""The packages are not thread-safe: translating swaps sys.argv and sys.stdout, and parsers are shared. One thread at a time."""


class TextWorldEngine:
    """Plays any game file on textworld's `PddlEnv`, named as alfworld names things.

    Several may live in one process and be used from several threads, but they take turns: for speed use one a process. The
    first one makes four functions of the packages remember their results, in the whole process.

    Raises:
        ImportError: the packages are missing; the message gives the install line.
    """

    def __init__(self) -> None:
        with _LOCK:
            packages = _packages()
            remember_results()
            infos = packages.EnvInfos(won=True, admissible_commands=True)
            self._env: Any = packages.Demangler(packages.PddlEnv(infos), shuffle=False)

    def load(self, game: str | Mapping[str, Any]) -> None:
        """Load a game file, or the content of one. Call `reset` next."""
        with _LOCK, _argv_kept():
            self._env.load(game)

    def reset(self) -> Frame:
        """Put the game into its first state."""
        with _LOCK, _argv_kept():
            return self._frame(self._env.reset())

    def step(self, command: str) -> Frame:
        """Carry out a command; one that is not admissible changes nothing and says `Nothing happens.`"""
        with _LOCK:
            state, _, _ = self._env.step(command)
            return self._frame(state)

    def close(self) -> None:
        """Release the game."""
        with _LOCK:
            self._env.close()

    @staticmethod
    def _frame(state: Any) -> Frame:
        return Frame(str(state.feedback), list(state["admissible_commands"]), bool(state["won"]))


class _Packages:
    def __init__(self) -> None:
        from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
        from textworld import EnvInfos
        from textworld.envs import PddlEnv

        self.Demangler, self.EnvInfos, self.PddlEnv = AlfredDemangler, EnvInfos, PddlEnv


def _packages() -> Any:
    try:
        return _Packages()
    except ImportError as error:
        raise ImportError(
            f"engine=\"textworld\" needs the real packages ({error}): pip install 'agentic-gym[alfworld]'. "
            "docs/alfworld.md has the lines that avoid their heavy dependencies."
        ) from error


class _argv_kept:
    """The translator overwrites sys.argv; put it back."""

    def __enter__(self) -> None:
        self._argv = sys.argv

    def __exit__(self, *error: object) -> None:
        sys.argv = self._argv
