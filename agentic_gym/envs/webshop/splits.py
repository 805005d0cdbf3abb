"""Which goals are for training and which for testing, by the borders that published results use."""

from __future__ import annotations

from typing import Literal

__all__ = ["Split", "split_range"]

Split = Literal["train", "eval", "test"]

_TEST_END = 500
_EVAL_END = 1500


def split_range(split: Split | None, goals: int, kind: str) -> range:
    """Positions of a split among ``goals`` shuffled goals of a ``kind`` ("human" or "synthetic").

    - Human goals, the full set's convention: test 0-499, eval 500-1499, train 1500 to the end.
    - Synthetic goals, the 1000-product convention: test 0-499, train 500 to the end; there is no eval split.
    - With too few goals to leave something for training, every split is all goals, as in the original's wrapper.

    >>> split_range("test", 6910, "synthetic"), split_range("train", 12087, "human")
    (range(0, 500), range(1500, 12087))

    Raises:
        ValueError: no such split.
    """
    if split not in (None, "train", "eval", "test"):
        raise ValueError(f"split must be 'train', 'eval', 'test' or None, got {split!r}")
    train_start = _EVAL_END if kind == "human" else _TEST_END
    if split is None or goals <= train_start:
        return range(goals)
    if split == "train":
        return range(train_start, goals)
    if split == "test":
        return range(_TEST_END)
    if kind == "synthetic":
        raise ValueError("synthetic goals have no eval split; take a part of train: options={'task': i}")
    return range(_TEST_END, _EVAL_END)
