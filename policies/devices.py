"""Which device models run on."""

from __future__ import annotations

import torch

__all__ = ["default_device", "describe_device"]


def default_device() -> str:
    """CUDA where it is, else the CPU."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def describe_device() -> str:
    """The version of torch and what it computes on, in a few words."""
    if torch.cuda.is_available():
        return f"torch {torch.__version__}, {torch.cuda.get_device_name()}"
    return f"torch {torch.__version__}, CPU, {torch.get_num_threads()} threads"
