"""Step roles for MathTools, from the known answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agentic_gym.answers import grade_math
from agentic_gym.roles import Role

__all__ = ["MathOracle"]

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:/\d+)?")
_MAX_NUMBERS = 50


class MathOracle:
    """Labels at once, by the first rule that fits.

    - D: a right answer, or a call whose output shows the right value for the first time;
    - R: a wrong answer, or code that was already run;
    - E: a call that ran and printed something not seen before;
    - N: all else (an error, empty or known output, an invalid action).
    """

    def begin(self, env: Any, observation: str, info: Mapping[str, Any]) -> None:
        """Forget the last episode."""
        self._codes: set[str] = set()
        self._outputs: set[str] = {"", "[no output]"}
        self._value_known = False

    def label(self, env: Any, action: str, observation: str, info: Mapping[str, Any]) -> Role:
        """The role of the step just taken."""
        if info["action"].kind == "answer":
            return Role.DECISIVE if info["success"] else Role.REGRESSION
        event = info["tool"]
        if event is None or not event.executed:
            return Role.NO_PROGRESS
        code, output = event.argument.strip(), observation.removeprefix("<result>").removesuffix("</result>").strip()
        repeated = code in self._codes
        fresh = output not in self._outputs
        self._codes.add(code)
        self._outputs.add(output)
        if event.status == "ok" and not self._value_known and self._shows_answer(env, output):
            self._value_known = True
            return Role.DECISIVE
        if repeated:
            return Role.REGRESSION
        return Role.EXPLORATION if event.status == "ok" and fresh else Role.NO_PROGRESS

    @staticmethod
    def _shows_answer(env: Any, output: str) -> bool:
        gold = env.unwrapped.task.answer
        numbers = _NUMBER.findall(output)[-_MAX_NUMBERS:]
        return any(grade_math(number, gold, symbolic=False).correct for number in numbers)
