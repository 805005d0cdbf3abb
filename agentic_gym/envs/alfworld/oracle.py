"""Step roles from the simulator: exact, because the length of a shortest remaining plan is known in every state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentic_gym.envs.alfworld.memory import Glimpse
from agentic_gym.envs.alfworld.planner import distance, is_exact, plan
from agentic_gym.roles import Role

__all__ = ["ALFWorldOracle"]

_WALK = "go to"


class ALFWorldOracle:
    """Labels at once, by the first rule that fits. L is the number of commands of a shortest plan with full knowledge.

    1. D: L got shorter by a manipulation (open, take, move, clean, heat, cool, use).
    2. E: the agent did not know enough to finish, and the command showed the content of a receptacle for the first time or
       walked to a receptacle for the first time, be it closed.
    3. D: L got shorter by walking, and one of the things needed had been seen: walking to a known need.
    4. R: L got longer; or the command walked back to a place seen before; or it repeated a command (walking apart) at the same
       place, which can reveal nothing.
    5. N: all else, such as a first look around, closing a door, a command that does nothing.

    Where L is not known exactly (a lamp that can be carried, a game that the fast engine cannot follow) the role is None, and
    `info["distance_exact"]` of the reset says so.
    """

    def begin(self, env: Any, observation: str, info: Mapping[str, Any]) -> None:
        """Forget the last episode."""
        world = env.unwrapped.world
        self._exact = world is not None and is_exact(world.game)
        self._done: set[tuple[str, int]] = set()
        if self._exact:
            self._remember(env)

    def label(self, env: Any, action: str, observation: str, info: Mapping[str, Any]) -> Role | None:
        """The role of the step just taken."""
        if not self._exact:
            return None
        before, known_enough, needs_seen, place = self._before
        parsed = info["action"]
        malformed = parsed.kind == "malformed"
        done = None if malformed else env.unwrapped.world.last_action
        glimpse = Glimpse() if malformed else env.unwrapped.glimpse
        after = self._remember(env)
        walked = done is not None and done.verb == _WALK
        command = (action if malformed else parsed.argument, place)
        repeated = not walked and command in self._done
        self._done.add(command)
        if after < before and not walked:
            return Role.DECISIVE
        if not known_enough and (glimpse.shown_first or glimpse.arrived_first):
            return Role.EXPLORATION
        if after < before and needs_seen:
            return Role.DECISIVE
        if after > before or glimpse.known_place or repeated:
            return Role.REGRESSION
        return Role.NO_PROGRESS

    def _remember(self, env: Any) -> float:
        """Note what the next label needs to know about now; returns L."""
        state, seen = env.unwrapped.world.state, env.unwrapped.memory.seen
        length = distance(state)
        now = float("inf") if length is None else float(length)
        needs = state.game.candidates | state.game.lamps
        self._before = (now, plan(state, seen) is not None, not needs.isdisjoint(seen), state.location)
        return now
