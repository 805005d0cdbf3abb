"""A run on disk: configuration, metrics, episodes, checkpoints, and what a person sees meanwhile."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import TextColumn

from agentic_gym.episodes import Episode
from agentic_gym.files import exclusive, explain, read_json, write_text
from agentic_gym.policies.transformers import TransformersPolicy
from agentic_gym.trainers.algorithm import Algorithm
from agentic_gym.trainers.checkpoint import CheckpointError, Checkpoints
from agentic_gym.trainers.config import TrainConfig
from agentic_gym.trainers.recorded import progress_bar
from agentic_gym.trainers.update import Updater
from agentic_gym.wrappers.record_episodes import append_episodes

__all__ = ["Run"]

_SHOWN = ("rollout/success", "rollout/calls", "credit/reward", "update/entropy")


_MAY_CHANGE = frozenset(("output", "iterations", "checkpoint_every", "keep_checkpoints", "record_episodes", "device"))
"""Settings that a resumed run may change: the rest decides what it learns."""


class Run(AbstractContextManager["Run"]):
    """The folder of a run: ``config.json``, ``metrics.jsonl``, ``episodes.jsonl``, ``tensorboard/``, ``checkpoints/``.

    One process at a time may be in it; a second one is refused (RuntimeError).

    Args:
        config: its ``output`` is the folder.
        console: where progress is shown; None is standard error, and nothing where that is not a terminal.
        context: facts for ``config.json`` that the configuration does not hold (content hash of the tasks).
    """

    def __init__(
        self, config: TrainConfig, *, console: Console | None = None, context: Mapping[str, Any] | None = None
    ) -> None:
        self.config = config
        self.folder = Path(config.output)
        self.checkpoints = Checkpoints(self.folder / "checkpoints", keep=config.keep_checkpoints)
        self._console = console or Console(stderr=True)
        self._progress = progress_bar(self._console, TextColumn("{task.fields[figures]}"))
        self._open = ExitStack()
        self._board: Any = None
        self._bar: Any = None
        self._warned = False
        self._context = dict(context or {})

    def __enter__(self) -> Run:
        from torch.utils.tensorboard import SummaryWriter
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()  # its bars for every checkpoint would break up ours
        with ExitStack() as stack:
            stack.enter_context(exclusive(self.folder))
            description = json.loads(json.dumps({"config": asdict(self.config), **self._context}, default=str))
            self._refuse_other_settings(description)
            write_text(self.folder / "config.json", json.dumps(description, indent=1, default=str))
            latest = self.checkpoints.latest()
            # What was shown after the checkpoint is run, and shown, again.
            purge = int(latest.name.removeprefix("step-")) if latest else 0
            self._board = SummaryWriter(str(self.folder / "tensorboard"), purge_step=purge)
            stack.callback(self._close_board)
            self._progress.start()
            stack.callback(self._progress.stop)
            self._open = stack.pop_all()
        return self

    def _refuse_other_settings(self, description: dict[str, Any]) -> None:
        """A run is continued as it was begun: nothing that decides its course may have changed."""
        path = self.folder / "config.json"
        if self.checkpoints.latest() is None or not path.exists():
            return
        before = read_json(path, "configuration of a run", fix="delete the folder, or choose another output")
        old, new = (
            _flat({**before.get("config", {}), "tasks": before.get("tasks")}),
            _flat({**description["config"], "tasks": description.get("tasks")}),
        )
        changed = [
            f"{name} {old.get(name)!r} -> {new.get(name)!r}"
            for name in sorted(old.keys() | new.keys())
            if name.split(".")[0] not in _MAY_CHANGE and old.get(name) != new.get(name)
        ]
        if changed:
            raise ValueError(
                f"the run in {self.folder} was begun with other settings ({'; '.join(changed)}): "
                "give the old ones to resume it, or another output for a new run"
            )

    def __exit__(self, *exc: object) -> None:
        self._open.close()

    def _close_board(self) -> None:
        with suppress(OSError):  # a full disk was reported by what was written before
            self._board.close()

    def restore(self, policy: TransformersPolicy, updater: Updater, algorithm: Algorithm) -> int:
        """Continue from the newest checkpoint; returns the first iteration to run."""
        path = self.checkpoints.latest()
        if path is None:
            self._truncate(0)
            return 0
        optimizer, state = self.checkpoints.load(path, policy.model)
        updater.load_state_dict(optimizer)
        algorithm.load_state_dict(state.get("algorithm", {}))
        self._truncate(int(state["step"]))
        self.say(f"resuming from {path}")
        return int(state["step"])

    def iterations(self, start: int) -> Iterator[int]:
        """Count up to ``config.iterations`` with a progress bar."""
        if start >= self.config.iterations:
            self.say(f"nothing to do: the run is at iteration {start} of {self.config.iterations}")
        self._bar = self._progress.add_task(
            self.config.algorithm.name, total=self.config.iterations, completed=start, figures=""
        )
        for iteration in range(start, self.config.iterations):
            yield iteration
            self._progress.advance(self._bar)

    def log(self, iteration: int, metrics: Mapping[str, float], episodes: Sequence[Episode] = ()) -> None:
        """Write one line of metrics, and the episodes if the configuration records them."""
        try:
            with (self.folder / "metrics.jsonl").open("a") as file:
                file.write(json.dumps({"iteration": iteration, **metrics}) + "\n")
            if self.config.record_episodes and episodes:
                append_episodes(self.folder / "episodes.jsonl", list(episodes))
            for name, value in metrics.items():
                self._board.add_scalar(name, value, iteration)
        except OSError as error:
            last = self.checkpoints.latest()
            raise CheckpointError(f"cannot write to {self.folder}: {explain(error)}. The last checkpoint is {last}") from error
        figures = "  ".join(f"{name.split('/')[1]} {metrics[name]:.2f}" for name in _SHOWN if name in metrics)
        if self._bar is not None:
            self._progress.update(self._bar, figures=figures)
        if not self._console.is_terminal:
            self.say(f"iteration {iteration + 1}/{self.config.iterations}  {figures}")
        if not metrics.get("update/trained_tokens") and not self._warned:
            self._warned = True
            self.say(
                f"iteration {iteration + 1} trained nothing: no group has episodes of different worth. "
                "If that stays so, look at the episodes (agentic-gym view), and at tasks, temperature and group size"
            )

    def say(self, text: str) -> None:
        """A line for the person who watches."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def checkpoint(self, step: int, policy: TransformersPolicy, updater: Updater, algorithm: Algorithm) -> None:
        """Write a checkpoint when it is due."""
        if step % self.config.checkpoint_every == 0 or step == self.config.iterations:
            state = {"algorithm": algorithm.state_dict()}
            self.checkpoints.save(step, policy, updater.state_dict(), state)

    def metrics(self) -> list[dict[str, float]]:
        """All metrics so far, one dict an iteration."""
        path = self.folder / "metrics.jsonl"
        if not path.exists():
            return []
        found = []
        for number, line in enumerate(path.read_bytes().splitlines(keepends=True), 1):
            if line.endswith(b"}\n"):  # one that an interruption or a full disk cut short has no end
                try:
                    found.append(json.loads(line.decode("utf-8")))
                except ValueError as error:
                    raise ValueError(f"{path}, line {number} holds no metrics ({error}); mend or delete the line") from error
        return found

    def _truncate(self, step: int) -> None:
        """Drop what was logged after the checkpoint: those iterations are run again."""
        rows = [row for row in self.metrics() if row["iteration"] < step]
        kept = sum(int(row.get("rollout/episodes", 0)) for row in rows)
        write_text(self.folder / "metrics.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
        episodes = self.folder / "episodes.jsonl"
        if episodes.exists():
            partial = episodes.with_suffix(".partial")
            with episodes.open("rb") as old, partial.open("wb") as new:
                new.writelines(line for _, line in zip(range(kept), old))
            partial.replace(episodes)


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings under dotted names."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return flat
