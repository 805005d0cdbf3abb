"""UnicodeText: membership, sampling, equality, and the way through shared memory."""

import copy
import multiprocessing
import pickle

import numpy as np
import pytest
from gymnasium.spaces import Dict, Text
from gymnasium.vector.utils import (
    batch_space,
    concatenate,
    create_empty_array,
    create_shared_memory,
    read_from_shared_memory,
    write_to_shared_memory,
)
from hypothesis import given
from hypothesis import strategies as st

from agentic_gym.spaces import UnicodeText

any_text = st.text(alphabet=st.characters(), max_size=80)


@given(any_text)
def test_every_text_is_a_member(text: str) -> None:
    assert text in UnicodeText()


def test_length_and_type_decide() -> None:
    space = UnicodeText(max_length=3)
    assert "日本語" in space
    assert "abcd" not in space
    assert all(value not in space for value in (None, 3, b"abc", ["a"]))


def test_is_a_gymnasium_text_space() -> None:
    assert isinstance(UnicodeText(), Text)


@pytest.mark.parametrize("max_length", [1, 5, 1000])
def test_samples_are_members_and_follow_the_seed(max_length: int) -> None:
    first, second = UnicodeText(max_length, seed=7), UnicodeText(max_length, seed=7)
    samples = [first.sample() for _ in range(30)]
    assert samples == [second.sample() for _ in range(30)]
    assert all(sample in first for sample in samples)
    assert len(set(samples)) > 1
    "".join(samples).encode("utf-8")  # no lone surrogates


def test_sample_refuses_a_mask() -> None:
    with pytest.raises(ValueError, match="no mask"):
        UnicodeText().sample(mask=np.ones(3))


def test_zero_length_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 character, got 0"):
        UnicodeText(max_length=0)


def test_equality_copy_and_pickle() -> None:
    space = UnicodeText(9)
    assert space == UnicodeText(9)
    assert space != UnicodeText(8)
    assert space != Text(9)
    assert copy.deepcopy(space) == pickle.loads(pickle.dumps(space)) == space
    assert repr(space) == "UnicodeText(max_length=9)"


@given(st.lists(any_text, min_size=3, max_size=3))
def test_shared_memory_returns_what_was_written(texts: list[str]) -> None:
    space = UnicodeText(80)
    memory = create_shared_memory(space, n=3, ctx=multiprocessing.get_context("fork"))
    for index, text in enumerate(texts):
        write_to_shared_memory(space, index, "x" * 80, memory)  # an older, longer text leaves no trace
        write_to_shared_memory(space, index, text, memory)
    expected = tuple(text.encode("utf-8", "replace").decode() for text in texts)
    assert read_from_shared_memory(space, memory, n=3) == expected


def test_what_was_read_follows_the_memory_and_a_copy_does_not() -> None:
    space = UnicodeText(9)
    memory = create_shared_memory(space, n=2)
    texts = read_from_shared_memory(space, memory, n=2)
    copied = copy.deepcopy(texts)
    write_to_shared_memory(space, 1, "new", memory)
    assert (texts[1], texts[-1], texts[:], list(texts), repr(texts)) == (
        "new", "new", ("", "new"), ["", "new"], "('', 'new')",
    )  # fmt: skip
    assert copied == ("", "")
    assert type(copied) is tuple
    with pytest.raises(IndexError):
        texts[2]


def test_the_widest_characters_fill_the_shared_row() -> None:
    space = UnicodeText(4)
    memory = create_shared_memory(space, n=2)
    write_to_shared_memory(space, 0, "🙂" * 4, memory)
    write_to_shared_memory(space, 1, "abcd", memory)
    assert read_from_shared_memory(space, memory, n=2) == ("🙂" * 4, "abcd")


def test_shared_memory_refuses_a_text_outside_the_space() -> None:
    space = UnicodeText(4)
    memory = create_shared_memory(space, n=1)
    with pytest.raises(ValueError, match="5 characters"):
        write_to_shared_memory(space, 0, "abcde", memory)


def test_batches_and_nests_in_dict_spaces() -> None:
    space = Dict(a=UnicodeText(5))
    assert batch_space(UnicodeText(5), 2).contains(("é", "北京"))
    out = create_empty_array(space, n=2)
    assert concatenate(space, [{"a": "é"}, {"a": "北"}], out)["a"] == ("é", "北")
