"""Playing by hand: `agentic-gym play alfworld`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

from agentic_gym.envs.alfworld.env import ALFWorld

__all__ = ["play"]

_HELP = "Type a command; ? lists what can be done now, ! asks the expert, quit leaves.\n"


def play(env: ALFWorld, lines: Iterable[str], out: TextIO, *, task: int | str | None = None) -> bool:
    """Play one episode with the commands from `lines` (a terminal, a file) and write to `out`.

    Args:
        env: made with `render_mode="ansi"`, so that roles are shown, and with `expert=`, so that `!` has an answer.
        lines: one command each. `?`, `!`, `quit` and empty lines do not count as turns.
        out: where to write.
        task: index or id of the task; None draws one.

    Returns:
        Whether the game was won.
    """
    observation, info = env.reset(options={} if task is None else {"task": task})
    shown = len(env.transcript)
    out.write(f"{_HELP}\n{observation}\n\n> ")
    out.flush()
    for line in lines:
        command = line.strip()
        if command == "quit":
            break
        if command == "?":
            out.write("\n".join(info["admissible_actions"]) + "\n")
        elif command == "!":
            out.write(info.get("expert_action", "The expert is not here.") + "\n")
        elif command:
            _, _, terminated, truncated, info = env.step(command)
            # The first new line of the transcript repeats the command.
            out.write("\n".join(env.transcript[shown + 1 :]) + "\n")
            shown = len(env.transcript)
            if terminated or truncated:
                out.write("You won.\n" if info["success"] else "No turns are left.\n")
                return bool(info["success"])
        out.write("\n> ")
        out.flush()
    return False
