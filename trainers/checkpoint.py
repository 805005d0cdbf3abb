"""Checkpoints: complete or absent.

A checkpoint is a directory ``step-000040`` that ``from_pretrained`` can load, plus ``optimizer.pt`` and ``state.json``. It is
written under another name and renamed when it is whole, so an interruption or a full disk leaves the last one intact.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import torch

from agentic_gym.policies.transformers import TransformersPolicy

__all__ = ["CheckpointError", "Checkpoints"]


class CheckpointError(OSError):
    """A checkpoint cannot be written or read; the message says which and what to do."""


class Checkpoints:
    """The checkpoints of one run.

    Args:
        directory: where they are; made when the first is written.
        keep: how many of the newest stay.
    """

    def __init__(self, directory: Path, *, keep: int = 2) -> None:
        self.directory, self.keep = directory, keep

    def all(self) -> list[Path]:
        """The complete ones, oldest first."""
        if not self.directory.is_dir():
            return []
        return sorted(p for p in self.directory.glob("step-*") if (p / "state.json").is_file())

    def latest(self) -> Path | None:
        """The newest complete one."""
        found = self.all()
        return found[-1] if found else None

    def save(self, step: int, policy: TransformersPolicy, optimizer: dict[str, Any], state: dict[str, Any]) -> Path:
        """Write the checkpoint of ``step``. Raises CheckpointError naming the cause; older ones are untouched then."""
        target = self.directory / f"step-{step:06d}"
        partial = self.directory / f".step-{step:06d}.partial"
        try:
            for rest in self.directory.glob(".step-*"):  # of a process that was killed
                shutil.rmtree(rest, ignore_errors=True)
            partial.mkdir(parents=True)
            policy.save_pretrained(partial)
            torch.save(optimizer, partial / "optimizer.pt")
            (partial / "state.json").write_text(json.dumps({"step": step, **state}, indent=1))
            _remove(target)
            os.replace(partial, target)
        except BaseException as error:
            shutil.rmtree(partial, ignore_errors=True)
            if not isinstance(error, Exception):
                raise  # Ctrl-C
            last = self.latest()
            where = f"the last checkpoint, {last}, is intact" if last else "there is no earlier checkpoint"
            raise CheckpointError(f"cannot write {target}: {_reason(error)}. Free space or fix the path; {where}") from error
        for old in self.all()[: -self.keep]:
            _remove(old)
        return target

    @staticmethod
    def load(path: Path, model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Put the weights of ``path`` into ``model``; returns the optimiser's state and the run's."""
        from transformers import AutoModelForCausalLM

        try:
            state = json.loads((path / "state.json").read_text())
            optimizer = torch.load(path / "optimizer.pt", map_location=model.device, weights_only=True)
            saved = AutoModelForCausalLM.from_pretrained(path, dtype=model.dtype)
            model.load_state_dict(saved.state_dict())
        except Exception as error:
            raise CheckpointError(f"cannot read {path}: {_reason(error)}. Delete it to resume from the one before") from error
        return optimizer, state


def _remove(checkpoint: Path) -> None:
    """Delete a checkpoint so that no moment shows a part of it under its name."""
    if checkpoint.exists():
        doomed = checkpoint.with_name(f".{checkpoint.name}.old")
        os.replace(checkpoint, doomed)
        shutil.rmtree(doomed, ignore_errors=True)


def _reason(error: Exception) -> str:
    """What was wrong, without the number of the error."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
