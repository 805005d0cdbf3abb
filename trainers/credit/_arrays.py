"""Checked arrays and the sums every credit rule needs: exact under reordering, finite for any finite input."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

LARGEST = float(np.finfo(np.float64).max)


def _one_dimensional(name: str, values: ArrayLike, length: int | None, dtype: Any) -> NDArray[Any]:
    try:
        array = np.asarray(values, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be a flat sequence of numbers: {error}") from None
    if array.ndim != 1 or (length is not None and array.size != length):
        expected = "(N,)" if length is None else f"({length},)"
        raise ValueError(f"{name} must have shape {expected}, got {array.shape}")
    return array


def vector(name: str, values: ArrayLike, length: int | None = None, *, finite: bool = True) -> FloatArray:
    """Return ``values`` as a float64 array of shape (N,); ValueError names the argument and what is wrong with it."""
    array: FloatArray = _one_dimensional(name, values, length, np.float64)
    if finite and not np.isfinite(array).all():
        at = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ValueError(f"{name} must be finite, got {array[at]} at index {at}")
    return array


def integers(name: str, values: ArrayLike, length: int | None = None, *, least: int | None = None) -> IntArray:
    """Return ``values`` as an int64 array of shape (N,), refusing fractions and values under ``least``."""
    array = _one_dimensional(name, values, length, None)
    if array.dtype.kind not in "iub":
        whole = vector(name, values, length)
        if not np.array_equal(whole, np.rint(whole)):
            raise ValueError(f"{name} must be whole numbers, got {whole[whole != np.rint(whole)][0]}")
        array = whole
    counts: IntArray = array.astype(np.int64)
    if least is not None and counts.size and counts.min() < least:
        raise ValueError(f"{name} must be at least {least}, got {counts.min()}")
    return counts


def flags(name: str, values: ArrayLike, length: int | None = None) -> BoolArray:
    """Return ``values`` as a boolean array of shape (N,); numbers are accepted if they are 0 or 1."""
    array = _one_dimensional(name, values, length, None)
    if array.dtype != np.bool_ and not np.isin(array, (0, 1)).all():
        raise ValueError(f"{name} must hold booleans (or 0 and 1), got {array[~np.isin(array, (0, 1))][0]!r}")
    return array.astype(np.bool_)


def total(terms: FloatArray) -> float:
    """Sum in ascending order, so that the result does not depend on the order of the terms."""
    return float(np.sum(np.sort(terms, axis=None)))


def deviations(values: FloatArray, weights: FloatArray | None = None, *, ddof: int = 0) -> tuple[FloatArray, float]:
    """Return ``(values - mean, standard deviation)``, weighted by ``weights`` (frequency weights, none negative).

    Equal values give exactly zero for both. ``ddof=1`` divides by ``sum(weights) - 1``; where that is not positive
    (one value) the population form is used.
    """
    if values.size == 0:
        return values.copy(), 0.0
    if weights is None:
        mass, share, used = float(values.size), np.float64(1.0 / values.size), values
    else:
        used = values[weights > 0]
        if used.size == 0:
            return np.zeros_like(values), 0.0
        relative = weights / weights.max()  # a sum of huge weights could overflow
        share = relative / total(relative)
        mass = float(weights.max()) * total(relative) if ddof else 0.0
    # Weighting each term first cannot overflow, summing first could; equal values must give their own value exactly.
    mean = float(used[0]) if used.min() == used.max() else total(values * share)
    with np.errstate(over="ignore"):
        centred = bounded(values - mean)
    largest = float(np.abs(centred).max())
    if largest == 0.0:
        return centred, 0.0
    variance = total(share * (centred / largest) ** 2)
    if ddof and ddof < mass < np.inf:
        variance *= mass / (mass - ddof)
    return centred, largest * float(np.sqrt(variance))


def divided(numerator: FloatArray, denominator: float) -> FloatArray:
    """Return ``numerator / denominator``, zero where the denominator is zero, never beyond the largest float."""
    if denominator <= 0.0:
        return np.zeros_like(numerator)
    with np.errstate(over="ignore"):
        return bounded(numerator / denominator)


def bounded(values: FloatArray) -> FloatArray:
    """Replace an overflow to infinity by the largest float, so that a later product with 0 is 0 and not NaN."""
    if np.isfinite(values).all():
        return values
    result: FloatArray = np.clip(values, -LARGEST, LARGEST)
    return result


def saturated(values: FloatArray, terms: int) -> FloatArray:
    """Limit values so that a sum of ``terms`` of them cannot overflow; touches nothing below 1e300."""
    limit = LARGEST / (2 * max(terms, 1))  # half, because the sum is rounded
    result: FloatArray = np.clip(values, -limit, limit)
    return result


def one_of(name: str, value: object, allowed: tuple[object, ...]) -> None:
    """Raise ValueError unless ``value`` is one of ``allowed``."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
