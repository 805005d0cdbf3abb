"""The space of every observation and action: any text.

- ``UnicodeText``: strings of any characters up to a length. Gymnasium's ``Text`` knows a fixed alphabet and looks at every
  character on each check; this one looks at the type and the length alone.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from multiprocessing.sharedctypes import SynchronizedArray
from typing import Any, overload

import numpy as np
from gymnasium.spaces import Text
from gymnasium.vector.utils.shared_memory import (
    create_shared_memory,
    read_from_shared_memory,
    write_to_shared_memory,
)
from numpy.typing import NDArray

__all__ = ["UnicodeText"]

_SAMPLED_LENGTH = 64
_LENGTH_BYTES = 8


class UnicodeText(Text):
    """All strings of at most ``max_length`` characters, in any script.

    Args:
        max_length: longest member, in characters (code points), at least 1.
        seed: as for every Gymnasium space.

    Example:
        >>> space = UnicodeText(max_length=20)
        >>> space.contains("café, 北京"), space.contains("x" * 21), space.contains(7)
        (True, False, False)
    """

    def __init__(self, max_length: int = 65_536, *, seed: int | np.random.Generator | None = None) -> None:
        if max_length < 1:
            raise ValueError(f"max_length must be at least 1 character, got {max_length}")
        super().__init__(max_length=max_length, min_length=0, charset="abc ", seed=seed)

    def contains(self, x: Any) -> bool:
        """Whether ``x`` is a string that is short enough. Constant time."""
        return isinstance(x, str) and len(x) <= self.max_length

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """A short random text of mixed scripts (masks do not apply and are refused)."""
        if mask is not None or probability is not None:
            raise ValueError("UnicodeText.sample takes no mask: every string is a member")
        length = int(self.np_random.integers(0, min(self.max_length, _SAMPLED_LENGTH) + 1))
        # Below the surrogates: every code point here is a character on its own.
        return "".join(map(chr, self.np_random.integers(32, 0xD800, size=length)))

    def __repr__(self) -> str:
        return f"UnicodeText(max_length={self.max_length})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnicodeText) and other.max_length == self.max_length

    __hash__ = None  # type: ignore[assignment]  # as for Gymnasium's other spaces


# AsyncVectorEnv passes observations through shared memory: a row is the length in bytes, then UTF-8.


def _row_bytes(space: UnicodeText) -> int:
    return _LENGTH_BYTES + 4 * space.max_length


def _bytes_of(shared_memory: SynchronizedArray[Any]) -> NDArray[np.uint8]:
    raw: Any = shared_memory.get_obj()
    return np.frombuffer(raw, dtype=np.uint8)


@create_shared_memory.register(UnicodeText)
def _create(space: UnicodeText, n: int = 1, ctx: Any = multiprocessing) -> SynchronizedArray[Any]:
    array: SynchronizedArray[Any] = ctx.Array("B", n * _row_bytes(space))
    return array


@write_to_shared_memory.register(UnicodeText)
def _write(space: UnicodeText, index: int, value: str, shared_memory: SynchronizedArray[Any]) -> None:
    data = value.encode("utf-8", "replace")
    if len(value) > space.max_length:
        raise ValueError(f"observation of {len(value)} characters is longer than {space}")
    start = index * _row_bytes(space)
    buffer = _bytes_of(shared_memory)
    buffer[start : start + _LENGTH_BYTES] = np.frombuffer(len(data).to_bytes(_LENGTH_BYTES, "little"), np.uint8)
    buffer[start + _LENGTH_BYTES : start + _LENGTH_BYTES + len(data)] = np.frombuffer(data, np.uint8)


@read_from_shared_memory.register(UnicodeText)
def _read(space: UnicodeText, shared_memory: SynchronizedArray[Any], n: int = 1) -> _SharedTexts:
    return _SharedTexts(space, shared_memory, n)


class _SharedTexts(Sequence[str]):
    """The texts that lie in shared memory now.

    ``AsyncVectorEnv`` reads the memory once and relies on a view that changes with it, as an array does; a copy is what it hands
    out. So this is such a view, and its copy is a plain tuple.
    """

    def __init__(self, space: UnicodeText, shared_memory: SynchronizedArray[Any], n: int) -> None:
        self._row = _row_bytes(space)
        self._buffer = _bytes_of(shared_memory)
        self._n = n

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(self._n)[index])
        start = range(self._n)[index] * self._row + _LENGTH_BYTES
        length = int.from_bytes(self._buffer[start - _LENGTH_BYTES : start].tobytes(), "little")
        return self._buffer[start : start + length].tobytes().decode("utf-8")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (tuple, _SharedTexts)) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __deepcopy__(self, memo: dict[int, Any]) -> tuple[str, ...]:
        return tuple(self)

    def __repr__(self) -> str:
        return repr(tuple(self))
