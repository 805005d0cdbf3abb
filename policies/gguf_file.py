"""Reading the GGUF container (versions 2 and 3): a header of typed values, then tensors, often quantised.

Every length in the header is checked against the file, so a damaged or hostile file ends in one ``GGUFError``. Format:
the GGUF specification of the ggml project. Dequantisation is that of the ``gguf`` package.
"""

from __future__ import annotations

import math
import os
import struct
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from agentic_gym.files import reading

__all__ = ["GGUFError", "GGUFFile", "StoredTensor"]

# Scalar value types by their number in the file, as struct codes; two more hold other values.
_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_STRING, _ARRAY = 8, 9
_MAX_DIMENSIONS = 4

T = TypeVar("T")


class GGUFError(ValueError):
    """The file is not a GGUF model that can be used; the message names the file and the reason."""


class StoredTensor(NamedTuple):
    """Where a tensor lies in the file."""

    shape: tuple[int, ...]
    """Outermost axis first, as in numpy (the file has it the other way round)."""
    kind: str
    """ggml's name of the number format: F32, F16, BF16, Q4_1, ..."""
    start: int
    stop: int
    """Byte range in the file."""


class GGUFFile:
    """One opened GGUF file: ``metadata`` (key to value) and ``tensors`` (name to ``StoredTensor``).

    Raises:
        OSError: no such file, or one that may not be read.
        GGUFError: it is no GGUF file, is damaged or cut, or has a version or number format that is not known.
        ModuleNotFoundError: the ``gguf`` package is missing.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        with reading(self.path, "GGUF file", fix="give a .gguf model"), self.path.open("rb") as file:
            start = file.read(24)
        if len(start) < 24 or not start.startswith(b"GGUF"):
            raise self.error("it is not a GGUF file (it does not begin with the bytes 'GGUF')")
        self._bytes: NDArray[np.uint8] = np.memmap(self.path, dtype=np.uint8, mode="r")
        self._at = 4
        version = self._scalar("<I")
        if version not in (2, 3):
            raise self.error(f"GGUF version {version} is not known (2 and 3 are; big-endian files are not)")
        tensor_count, value_count = self._scalar("<Q"), self._scalar("<Q")
        self.metadata: dict[str, Any] = {}
        for _ in range(value_count):
            key = self._string()
            self.metadata[key] = self._value(self._scalar("<I"))
        self.tensors = self._tensor_table(tensor_count)

    def error(self, reason: str) -> GGUFError:
        """The error to raise about this file."""
        return GGUFError(f"cannot read {self.path}: {reason}")

    def get(self, key: str, type_: type[T], default: T | None = None) -> T:
        """A metadata value. Raises GGUFError when it has another type, or is absent without a default."""
        value = self.metadata.get(key, default)
        if not isinstance(value, type_):
            raise self.error(f"its {key!r} must be of type {type_.__name__}, it is {value!r:.80}")
        return value

    def read(self, name: str) -> NDArray[np.float32]:
        """One tensor, dequantised. Raises KeyError for an unknown name and GGUFError for values that are not finite."""
        from gguf import GGMLQuantizationType, quants

        tensor = self.tensors[name]
        raw = np.asarray(self._bytes[tensor.start : tensor.stop]).reshape(*tensor.shape[:-1], -1)
        try:
            values = quants.dequantize(raw, GGMLQuantizationType[tensor.kind])
        except NotImplementedError as error:
            raise self.error(f"tensor {name!r} is stored as {tensor.kind}, which cannot be dequantised") from error
        if not np.isfinite(values).all():
            raise self.error(f"tensor {name!r} holds values that are not finite")
        return np.asarray(values, dtype=np.float32).reshape(tensor.shape)

    def _tensor_table(self, count: int) -> dict[str, StoredTensor]:
        try:
            from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError("reading GGUF files needs an extra: pip install 'agentic-gym[gguf]'") from error
        entries: list[tuple[str, tuple[int, ...], int, int]] = []
        for _ in range(count):
            name, dimensions = self._string(), self._scalar("<I")
            if not 1 <= dimensions <= _MAX_DIMENSIONS:
                raise self.error(f"the file is damaged (tensor {name!r:.80} with {dimensions} dimensions)")
            shape = tuple(reversed([self._scalar("<Q") for _ in range(dimensions)]))
            entries.append((name, shape, self._scalar("<I"), self._scalar("<Q")))
        alignment = self.metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or not 0 < alignment <= 1 << 20:
            raise self.error(f"the file is damaged (alignment {alignment!r:.80})")
        data = math.ceil(self._at / alignment) * alignment
        tensors: dict[str, StoredTensor] = {}
        for name, shape, number, offset in entries:
            try:
                kind = GGMLQuantizationType(number)
            except ValueError as error:
                raise self.error(f"tensor {name!r:.80} has the unknown number format {number}") from error
            block, size = GGML_QUANT_SIZES[kind]
            stop = data + offset + math.prod(shape) // block * size
            if shape[-1] % block or not all(shape) or stop > len(self._bytes):
                raise self.error(f"the file is damaged or cut (tensor {name!r:.80})")
            tensors[name] = StoredTensor(shape, kind.name, data + offset, stop)
        return tensors

    def _take(self, size: int) -> bytes:
        stop = self._at + size
        if stop > len(self._bytes):
            raise self.error(f"the file is damaged or cut (its header leads beyond its {len(self._bytes)} bytes)")
        taken = self._bytes[self._at : stop].tobytes()
        self._at = stop
        return taken

    def _scalar(self, code: str) -> Any:
        return struct.unpack(code, self._take(struct.calcsize(code)))[0]

    def _string(self) -> str:
        return self._take(self._scalar("<Q")).decode("utf-8", errors="replace")

    def _value(self, type_: int) -> Any:
        if type_ in _SCALARS:
            return self._scalar(_SCALARS[type_])
        if type_ == _STRING:
            return self._string()
        if type_ != _ARRAY:
            raise self.error(f"the file is damaged (value type {type_})")
        item, count = self._scalar("<I"), self._scalar("<Q")
        if item == _STRING:
            return [self._string() for _ in range(count)]
        if item not in _SCALARS:
            raise self.error(f"the file is damaged (array of type {item})")
        code = _SCALARS[item]
        return np.frombuffer(self._take(count * struct.calcsize(code)), dtype=np.dtype(code)).tolist()
