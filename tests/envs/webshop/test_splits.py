import pytest

from agentic_gym.envs.webshop.splits import split_range


def test_borders() -> None:
    assert split_range("test", 12087, "human") == split_range("test", 6910, "synthetic") == range(500)
    assert split_range("eval", 12087, "human") == range(500, 1500)
    assert split_range("train", 12087, "human") == range(1500, 12087)
    assert split_range("train", 6910, "synthetic") == range(500, 6910)
    assert split_range(None, 6910, "synthetic") == range(6910)


def test_few_goals_are_in_every_split() -> None:
    assert (
        split_range("test", 13, "human")
        == split_range("train", 13, "human")
        == split_range("eval", 13, "human")
        == range(13)
    )
    assert split_range("train", 500, "synthetic") == range(500)


def test_unknown_splits() -> None:
    with pytest.raises(ValueError, match="got 'dev'"):
        split_range("dev", 10, "human")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no eval split"):
        split_range("eval", 6910, "synthetic")
