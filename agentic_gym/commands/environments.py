"""Making the environment that a command line names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import gymnasium as gym

from agentic_gym import ENVIRONMENTS
from agentic_gym.configs import assignments
from agentic_gym.envs.registration import check_arguments
from agentic_gym.tasks import near

__all__ = ["make_env", "resolve_id"]


def resolve_id(name: str) -> str:
    """The Gymnasium id that ``name`` means: an id, ``module:id``, or one of ours without ``agentic_gym/`` and version.

    Raises:
        ValueError: there is none, with the nearest.
    """
    if ":" in name or name in gym.registry:
        return name
    ours = {_bare(env_id): env_id for env_id in ENVIRONMENTS}
    for bare, env_id in ours.items():
        if bare.lower() == _bare(name).lower():
            if _version(name) not in (None, _version(env_id)):
                raise ValueError(f"there is no version {_version(name)} of {bare}: it is {env_id}")
            return env_id
    hint = near(_bare(name), ours, 1) or " `agentic-gym list` shows all; another package's is written module:id."
    raise ValueError(f"there is no environment {name!r}.{hint}")


def _bare(env_id: str) -> str:
    """``agentic_gym/MathTools-v0`` as ``MathTools``."""
    return re.sub(r"-v\d+$", "", env_id.removeprefix("agentic_gym/"), flags=re.IGNORECASE).replace("-", "")


def _version(env_id: str) -> str | None:
    found = re.search(r"-v(\d+)$", env_id, flags=re.IGNORECASE)
    return found.group(1) if found else None


def make_env(name: str, settings: Sequence[str] = (), **more: Any) -> gym.Env[str, str]:
    """Make the environment ``name`` with constructor arguments ``NAME=VALUE``.

    Raises:
        ValueError: an unknown environment, or an argument that it does not take, with the nearest.
    """
    env_id = resolve_id(name)
    given = assignments(settings)
    check_arguments(env_id, given)
    env: gym.Env[str, str] = gym.make(env_id, **given, **more)
    return env
