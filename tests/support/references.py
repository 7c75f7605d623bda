"""What operations are, in loops and in double precision: for tests, and far too slow for anything else."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

LIMITS = {"i8": (-128, 127), "i4": (-8, 7)}
#: Every value of float8 e4m3fn that is not negative: 3 bits of mantissa, exponents from -6, subnormals below, 448 last.
FLOAT8 = [Fraction(m, 512) for m in range(8)] + [
    Fraction(8 + m, 8) * Fraction(2) ** e for e in range(-6, 9) for m in range(8) if (e, m) != (8, 7)
]


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the product of two stacks of matrices, or of vectors, by its definition."""
    left = a[None, :] if a.ndim == 1 else a
    right = b[:, None] if b.ndim == 1 else b
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    left = np.broadcast_to(left, (*batch, *left.shape[-2:]))
    right = np.broadcast_to(right, (*batch, *right.shape[-2:]))
    result = np.empty((*batch, left.shape[-2], right.shape[-1]))
    for position in np.ndindex(*result.shape):
        *stack, row, column = position
        result[position] = math.fsum(left[(*stack, row)] * right[(*stack, slice(None), column)])
    result = result[..., 0, :] if a.ndim == 1 else result
    return result[..., 0] if b.ndim == 1 else result


def normalized(x: np.ndarray, groups: list[tuple[Any, ...]], eps: float) -> np.ndarray:
    """Return the array with each group of elements brought to mean 0 and variance 1."""
    result = np.empty_like(x)
    for group in groups:
        values = x[group]
        center = values.mean()
        result[group] = (values - center) / math.sqrt(((values - center) ** 2).mean() + eps)
    return result


def by_channel(x: np.ndarray, factor: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """Return `x * factor + offset`, with one factor and one offset for each place along dimension 1."""
    along = (1, -1, *(1 for _ in x.shape[2:]))
    return x * factor.reshape(along) + offset.reshape(along)


@dataclass(frozen=True)
class Geometry:
    """Where a window lies, one entry a spatial dimension."""

    space: tuple[int, ...]
    window: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]

    @property
    def extents(self) -> list[int]:
        return [(size - 1) * step + 1 for size, step in zip(self.window, self.dilation, strict=True)]

    def positions(self, channels: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of what a window that moves over the input gives."""
        padded = [size + sum(pair) for size, pair in zip(self.space, self.padding, strict=True)]
        moves = zip(padded, self.extents, self.stride, strict=True)
        return (*channels, *((size - extent) // step + 1 for size, extent, step in moves))

    def covered(self, position: Sequence[int]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], bool]]:
        """Yield each place in the window, the place of the input under it, and whether the input has that place."""
        for inside in itertools.product(*map(range, self.window)):
            place = tuple(
                at * step + offset * spread - before
                for at, step, offset, spread, (before, _) in zip(
                    position, self.stride, inside, self.dilation, self.padding, strict=True
                )
            )
            yield inside, place, all(0 <= at < size for at, size in zip(place, self.space, strict=True))

    def spread(self) -> list[int]:
        """The shape of what a transposed convolution gives before its padding is cut off."""
        moves = zip(self.space, self.stride, self.extents, strict=True)
        return [(size - 1) * step + extent for size, step, extent in moves]


def convolution(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, place: Geometry, groups: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Return a convolution, and the sum of the sizes of its terms, which errors are relative to."""
    outputs, each = weight.shape[0], weight.shape[1]
    shape = place.positions((len(x), outputs))
    expected, scale = np.empty(shape), np.empty(shape)
    for item, channel, *position in np.ndindex(*shape):
        first = channel // (outputs // groups) * each
        terms = [] if bias is None else [float(bias[channel])]
        for inside, source, is_there in place.covered(position):
            if is_there:
                terms += [
                    float(x[(item, first + own, *source)]) * float(weight[(channel, own, *inside)])
                    for own in range(each)
                ]
        expected[(item, channel, *position)] = math.fsum(terms)
        scale[(item, channel, *position)] = math.fsum(map(abs, terms))
    return expected, scale


def transposed_convolution(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, place: Geometry, groups: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Return a transposed convolution, and the sum of the sizes of its terms."""
    each = weight.shape[1]
    full = place.spread()
    total = np.zeros((len(x), each * groups, *full))
    scale = np.zeros(total.shape)
    for item, channel, *position in np.ndindex(*x.shape):
        for own, *inside in np.ndindex(each, *place.window):
            target = [
                at * step + offset * spread
                for at, step, offset, spread in zip(position, place.stride, inside, place.dilation, strict=True)
            ]
            index = (item, channel // (x.shape[1] // groups) * each + own, *target)
            term = float(x[(item, channel, *position)]) * float(weight[(channel, own, *inside)])
            total[index] += term
            scale[index] += abs(term)
    if bias is not None:
        along = bias.astype(np.float64).reshape(1, -1, *(1 for _ in full))
        total, scale = total + along, scale + np.abs(along)
    kept = (..., *(slice(before, size - after) for (before, after), size in zip(place.padding, full, strict=True)))
    return total[kept], scale[kept]


def nearest(value: Fraction, dtype: str) -> Fraction:
    """Return the nearest number of the type, of two as near the even one."""
    if dtype in LIMITS:
        low, high = LIMITS[dtype]
        return Fraction(min(max(round(value), low), high))
    sign = -1 if value < 0 else 1
    best = min(range(len(FLOAT8)), key=lambda index: (abs(FLOAT8[index] - abs(value)), index % 2))
    return sign * FLOAT8[best]


def quantized(x: np.ndarray, scale: np.ndarray, dtype: str) -> np.ndarray:
    scales = np.broadcast_to(scale.astype(np.float64), x.shape)
    return np.array(
        [
            float(nearest(Fraction(value) / Fraction(by), dtype))
            for value, by in zip(x.astype(np.float64).flat, scales.flat, strict=True)
        ]
    ).reshape(x.shape)
