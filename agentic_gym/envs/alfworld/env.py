"""ALFWorld-v0: household tasks in text, on the fast engine or the real one."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal

from agentic_gym.actions import Grammar, ParsedAction
from agentic_gym.envs.alfworld.engine import Engine, FastEngine
from agentic_gym.envs.alfworld.expert import next_command
from agentic_gym.envs.alfworld.game_file import GameFileError
from agentic_gym.envs.alfworld.memory import Glimpse, Memory
from agentic_gym.envs.alfworld.oracle import ALFWorldOracle
from agentic_gym.envs.alfworld.planner import distance, is_exact
from agentic_gym.envs.alfworld.render import role_line
from agentic_gym.envs.alfworld.tasks import Games, game_data, load_game, load_tasks
from agentic_gym.roles import OnlineJudge
from agentic_gym.tasks import Task
from agentic_gym.text_env import TextEnv, Transition

__all__ = ["ALFWorld"]

_INSTRUCTIONS = """You are in a room of a house and have a task. Think first if you like, inside <think>...</think>; \
then write one command, inside <action>...</action> or as plain text, and stop. The commands:
go to (receptacle)
open (receptacle)
close (receptacle)
take (object) from (receptacle)
move (object) to (receptacle)
examine (something)
use (object)
heat (object) with (receptacle)
clean (object) with (receptacle)
cool (object) with (receptacle)
slice (object) with (object)
look
inventory
help
Name things exactly as the game does, with their number: go to desk 1. You can carry one object at a time."""


class _AnyCommand(Grammar):
    """The grammar of commands, where an empty text is a command as well: the game answers it itself."""

    def parse(self, text: str) -> ParsedAction:
        """Read one action; see `Grammar`."""
        return super().parse(text) if text.strip() else ParsedAction("command", span=(0, len(text)))


class ALFWorld(TextEnv):
    """Find things in a room, heat, cool, clean or light them up, and put them where they belong.

    Observations, admissible commands and wins are those of ALFWorld 0.4, byte for byte. Reward and score are 1 on
    success, else 0; after 50 turns the episode is truncated.

    Args:
        games: a game file (`game.tw-pddl`), a folder of games, a list of these, a `TaskSet`, or None: generated games,
            no download.
        engine: "fast" (plain Python) or "textworld" (the real one, several hundred times slower; needs the extra `alfworld`).
        levels: keep only games of these task types (see `TASK_TYPES`): the tasks' levels.
        split: for generated games: "train", "valid_seen" or "valid_unseen".
        count, seed: for generated games: how many, and the number of the first.
        expert: "full" or "seen" puts an expert's command into `info["expert_action"]`; the first knows everything, the
            second what the agent has seen.
        max_turns, instructions, render_mode: see `TextEnv`.

    Further keys of `info`: `progress` (share of the goal's conditions that hold, in [0, 1]), `expert_action`, and at reset
    `task_type` and `distance_exact` (whether the oracle can label this game).

    Example:
        >>> import gymnasium as gym, agentic_gym
        >>> env = gym.make("agentic_gym/ALFWorld-v0", split="valid_unseen", expert="full")
        >>> observation, info = env.reset(seed=3, options={"task": 0})
        >>> while not info["success"]:
        ...     observation, reward, terminated, truncated, info = env.step(info["expert_action"])
        >>> reward, info["outcome"], info["progress"]
        (1.0, 'solved', 1.0)
    """

    def __init__(
        self,
        games: Games = None,
        *,
        engine: Literal["fast", "textworld"] = "fast",
        levels: Collection[str] | None = None,
        split: str = "train",
        count: int = 600,
        seed: int = 0,
        expert: Literal["full", "seen"] | None = None,
        max_turns: int = 50,
        instructions: str | None = None,
        render_mode: str | None = None,
    ) -> None:
        if engine not in ("fast", "textworld"):
            raise ValueError(f'engine must be "fast" or "textworld", got {engine!r}')
        if expert not in (None, "full", "seen"):
            raise ValueError(f'expert must be "full", "seen" or None, got {expert!r}')
        tasks = load_tasks(games, split=split, count=count, seed=seed)
        if levels is not None:
            tasks = tasks.filter(levels=levels)
        super().__init__(
            tasks,
            answer=False,
            commands=True,
            max_turns=max_turns,
            instructions=instructions,
            render_mode=render_mode,
        )
        self.grammar = _AnyCommand(answer=False, commands=True)
        self.engine = engine
        self.expert = expert
        self.world: FastEngine | None = None
        """The fast engine. It plays along where the real one is used; None for a game whose rules it does not know."""
        self.memory = Memory()
        self.glimpse = Glimpse()
        """What the last command revealed."""
        self._referee = ALFWorldOracle()
        self._real: Any = None
        self._playing: Engine | None = None
        self._commands: list[str] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start a game, see `TextEnv.reset`. Raises GameFileError for a game that cannot be read or won."""
        try:
            observation, info = super().reset(seed=seed, options=options)
        except GameFileError:
            self._running = False
            raise
        info["task_type"] = self.task.level
        info["distance_exact"] = self.world is not None and is_exact(self.world.game)
        info.update(self._further())
        if self.render_mode is not None:
            self._referee.begin(self, observation, info)
        return observation, info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Carry out one command, see `TextEnv.step`. What is rendered also shows the step's role, in colour."""
        observation, reward, terminated, truncated, info = super().step(action)
        if self.render_mode is not None:
            role = self._referee.label(self, action, observation, info)
            left = distance(self.world.state) if self.world is not None else None
            self._note(role_line(role, left))
        return observation, reward, terminated, truncated, info

    def close(self) -> None:
        """Let go of the real engine, if there is one."""
        if self._real is not None:
            self._real.close()
            self._real = self._playing = None

    def oracle(self) -> OnlineJudge:
        """Roles from the exact distance to the goal."""
        return ALFWorldOracle()

    def _begin(self, task: Task) -> str:
        self.memory, self.glimpse = Memory(), Glimpse()
        try:
            game = load_game(task)
        except GameFileError:
            if self.engine == "fast":
                raise
            self.world = None
        else:
            if self.world is None or self.world.game is not game:
                self.world = FastEngine(game)
        if self.engine == "textworld":
            if self.world is not None:
                self.world.reset()
            self._playing = self._real_engine(task)
        else:
            self._playing = self.world
        assert self._playing is not None
        frame = self._playing.reset()
        self._commands = frame.admissible
        return frame.observation

    def _real_engine(self, task: Task) -> Engine:
        from agentic_gym.envs.alfworld.textworld_engine import TextWorldEngine

        if self._real is None:
            self._real = TextWorldEngine()
        self._real.load(game_data(task))
        playing: Engine = self._real
        return playing

    def _act(self, action: ParsedAction) -> Transition:
        assert self._playing is not None
        frame = self._playing.step(action.argument)
        self._commands = frame.admissible
        if self.world is not None:
            if self._playing is not self.world:
                self.world.step(action.argument)
            self.glimpse = self.memory.observe(self.world.last_action, self.world.state)
        return Transition(
            frame.observation, float(frame.won), terminated=frame.won, success=frame.won, info=self._further(frame.won)
        )

    def _further(self, won: bool = False) -> dict[str, Any]:
        if self.world is None:
            return {}
        info: dict[str, Any] = {"progress": self.world.state.progress()}
        if self.expert is not None and not won:
            info["expert_action"] = next_command(self.world, self.memory if self.expert == "seen" else None)
        return info

    def _admissible(self) -> list[str]:
        return list(self._commands)

    def _default_instructions(self) -> str:
        return _INSTRUCTIONS
