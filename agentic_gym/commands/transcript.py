"""Episodes in the terminal: who said what, in colours.

Text written by a model may hold terminal control sequences, so everything is shown through ``printable``.
"""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from agentic_gym.actions import CONTROL_CHARACTERS
from agentic_gym.episodes import Episode, Step
from agentic_gym.roles import Role

__all__ = [
    "OUTCOME_STYLES",
    "ROLE_STYLES",
    "printable",
    "show_episode",
    "show_observation",
    "show_outcome",
    "show_step",
]

ROLE_STYLES: Mapping[Role, str] = {
    Role.DECISIVE: "bold white on green",
    Role.EXPLORATION: "bold white on blue",
    Role.NO_PROGRESS: "bold black on yellow",
    Role.REGRESSION: "bold white on red",
}
KIND_STYLES = {"tool": "cyan", "answer": "magenta", "command": "cyan", "malformed": "red"}
OUTCOME_STYLES = {"solved": "bold green", "masked": "dim"}


def printable(text: str) -> str:
    """``text`` with control characters and direction marks written as escapes; tabs and newlines stay."""
    return CONTROL_CHARACTERS.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text.replace("\r\n", "\n"))


def show_observation(console: Console, observation: str) -> None:
    """What the environment said."""
    console.print(Text(printable(observation), style="green"))


def show_step(console: Console, number: int, step: Step) -> None:
    """One turn: the action, its role and tool, and what came back."""
    head = Text(f"{number} ", style="bold")
    if step.role is not None:
        head.append(f" {step.role.name.lower().replace('_', ' ')} ", style=ROLE_STYLES[step.role])
        head.append(" ")
    head.append(printable(step.kind) or "action", style=KIND_STYLES.get(step.kind, "cyan"))
    if step.tool is not None:
        head.append(f" {printable(step.tool.name)} {printable(step.tool.status)} {step.tool.seconds:.2f} s", style="dim")
    if step.reward:
        head.append(f"  reward {step.reward:g}", style="bold")
    console.print(head)
    console.print(Text(printable(step.action), style=KIND_STYLES.get(step.kind, "cyan")))
    show_observation(console, step.observation)


def show_outcome(console: Console, episode: Episode) -> None:
    """How it ended."""
    line = Text(printable(episode.outcome or "unfinished"), style=OUTCOME_STYLES.get(episode.outcome or "", "bold red"))
    line.append(f"  score {episode.score:g}  calls {episode.tool_calls}  turns {len(episode.steps)}", style="default")
    if episode.error:
        line.append(f"  {printable(episode.error)}", style="red")
    console.print(line)


def show_episode(console: Console, episode: Episode, *, number: int, instructions: bool = False) -> None:
    """A whole episode."""
    title = f"{number}  {printable(episode.task_id)}"
    if episode.level is not None:
        title += f"  level {printable(str(episode.level))}"
    if episode.tool_free:
        title += "  tool-free"
    console.rule(Text(title, style="bold"))
    if instructions:
        console.print(Panel(Text(printable(episode.instructions)), title="instructions", border_style="dim"))
    show_observation(console, episode.observation)
    for index, step in enumerate(episode.steps, 1):
        show_step(console, index, step)
    show_outcome(console, episode)
