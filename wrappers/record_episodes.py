"""RecordEpisodes: what happened, one line of JSON an episode."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym

from agentic_gym.episodes import Episode, Response
from agentic_gym.files import append_lines, reading

__all__ = ["RecordEpisodes", "append_episodes"]


class RecordEpisodes(gym.Wrapper[str, str, str, str], gym.utils.RecordConstructorArgs):
    """Append every finished episode to a JSONL file that ``agentic-gym view`` shows and ``load`` reads back.

    Several processes may write to one file, and a line is whole or absent. An episode that is reset before its end is recorded as
    it stands, with outcome ``abandoned``.

    Args:
        env: any text environment.
        path: the file; its folder is made, an existing file is continued.

    Example:
        >>> import gymnasium as gym, agentic_gym, tempfile
        >>> path = Path(tempfile.mkdtemp()) / "episodes.jsonl"
        >>> env = RecordEpisodes(gym.make("agentic_gym/MathTools-v0"), path)
        >>> _ = env.reset(seed=0)
        >>> _ = env.step("<answer>1</answer>")
        >>> [len(episode.steps) for episode in RecordEpisodes.load(path)]
        [1]
    """

    def __init__(self, env: gym.Env[str, str], path: str | Path) -> None:
        gym.utils.RecordConstructorArgs.__init__(self, path=path)
        gym.Wrapper.__init__(self, env)
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._episode: Episode | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """As the environment's."""
        self._flush()
        observation, info = self.env.reset(seed=seed, options=options)
        self._episode = Episode(
            task_id=str(info.get("task_id", "")),
            instructions=str(info.get("instructions", "")),
            observation=observation,
            level=info.get("level"),
            tool_free=bool(info.get("tool_free", False)),
            base_instructions=info.get("base_instructions"),
        )
        return observation, info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Step and remember."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if self._episode is not None:
            self._episode.record(Response(str(action)), observation, float(reward), terminated, truncated, info)
            if self._episode.done:
                self._flush()
        return observation, float(reward), terminated, truncated, info

    def close(self) -> None:
        """Write what is unfinished and close the environment."""
        self._flush()
        super().close()

    def _flush(self) -> None:
        episode, self._episode = self._episode, None
        if episode is None or not episode.steps:
            return
        if not episode.done:
            episode.outcome = "abandoned"
        append_episodes(self.path, [episode])

    @staticmethod
    def load(path: str | Path) -> list[Episode]:
        """Read a file of episodes; a last line that its writer was killed over is left out.

        Raises OSError when the file cannot be read, and ValueError naming the file and line that is not an episode.
        """
        return list(_read(Path(path)))


def append_episodes(path: Path, episodes: list[Episode]) -> None:
    """Append episodes to a JSONL file: all of them, or none and OSError."""
    append_lines(path, b"".join(_line(episode) for episode in episodes))


def _line(episode: Episode) -> bytes:
    data = episode.to_dict()
    try:
        return (json.dumps(data, ensure_ascii=False) + "\n").encode("utf-8")
    except UnicodeEncodeError:  # lone surrogates have no UTF-8 form, but a JSON escape
        return (json.dumps(data) + "\n").encode("ascii")


def _read(path: Path) -> Iterator[Episode]:
    fix = "give a JSONL file that rollout, bench, train or RecordEpisodes wrote"
    with reading(path, "file of episodes", fix=fix), path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                yield Episode.from_dict(json.loads(line.decode("utf-8")))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                if not line.endswith(b"\n"):
                    return
                raise ValueError(
                    f"{path}, line {number} is not a recorded episode ({error}); mend or delete the line"
                ) from error
