"""Step roles for WebShop, from the known target.

Labels at once, by the first rule that fits:

- D: a purchase with reward 1; the target's page opened for the first time; more of its wanted options chosen than ever before;
- R: any other purchase; a wanted option of the target overwritten or left behind;
- N: the way back to where the visit already stood (the target opened again, a wanted option chosen again);
- E: the page holds a product, option or text not seen before in the episode;
- R: a repeated action, or a valid one that changes nothing at all (the chosen option clicked again, the same search);
- N: all else (an invalid action, navigation, a harmless option).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentic_gym.envs.webshop.pages import SUB_PAGES
from agentic_gym.envs.webshop.reward import wishes_met
from agentic_gym.envs.webshop.visit import parse_action
from agentic_gym.roles import Role

if TYPE_CHECKING:
    from agentic_gym.envs.webshop.visit import Visit

__all__ = ["WebShopOracle"]

_CONTENT = frozenset({"product", "title", "price", "option", "paragraph", "bullet", "field"})


class WebShopOracle:
    """An `OnlineJudge` for `WebShop`. Of the reward it uses only whether a purchase succeeded."""

    def begin(self, env: Any, observation: str, info: Mapping[str, Any]) -> None:
        """Forget the last episode."""
        self._standing = self._best_standing = 0
        self._moves: set[tuple[str, str]] = set()
        self._known: set[tuple[str, str]] = set()
        self._remember(env.unwrapped.visit)

    def label(self, env: Any, action: str, observation: str, info: Mapping[str, Any]) -> Role:
        """The role of the step just taken."""
        visit: Visit = env.unwrapped.visit
        move = self._move(info["action"].argument)
        repeated = move in self._moves
        self._moves.add(move)
        unchanged = visit.url == self._url and "invalid" not in info and info["action"].kind == "command"
        self._remember(visit)

        content = {(node.kind, node.text) for node in visit.nodes if node.kind in _CONTENT and node.text.strip()}
        fresh = not content <= self._known
        self._known |= content

        before, self._standing = self._standing, _standing(visit)
        best, self._best_standing = self._best_standing, max(self._best_standing, self._standing)

        if "reward_info" in info:
            return Role.DECISIVE if info["success"] else Role.REGRESSION
        if self._standing > best:
            return Role.DECISIVE
        if self._standing < before and before > 1:
            return Role.REGRESSION
        if self._standing > before:
            return Role.NO_PROGRESS
        if fresh:
            return Role.EXPLORATION
        return Role.REGRESSION if repeated or unchanged else Role.NO_PROGRESS

    def _remember(self, visit: Visit) -> None:
        self._url, self._asin, self._clickables = visit.url, visit.asin or "", visit.clickables

    def _move(self, command: str) -> tuple[str, str]:
        """(where, what) of an action, such that doing it twice can only reveal something once.

        A search or a product shows the same from everywhere, an option or sub-page the same on its product; what a button does
        depends on the page.
        """
        name, argument = parse_action(command)
        if argument is None:
            return self._url, command
        node = self._clickables.get(argument) if name == "click" else None
        if name == "search" or (node is not None and node.kind == "product"):
            return name, argument
        if node is not None and (node.kind == "option" or argument in SUB_PAGES):
            return self._asin, argument
        return self._url, argument


def _standing(visit: Visit) -> int:
    """How far the visit is: 0 away from the target, else 1 + the number of wanted options chosen."""
    if visit.asin != visit.goal.asin:
        return 0
    return 1 + wishes_met(visit.options, visit.goal, pair_options=visit.rules.pair_options)
