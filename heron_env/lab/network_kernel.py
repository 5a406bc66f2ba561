"""A small network, row by row, in compiled code: a row's outputs are the same bits alone and among many.

Compiled from a copy of this file in the engine's cache folder. Nothing is multiplied and added in one rounding, and
tanh is made of + - * / alone, so every machine gives the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heron_env.engine.kernels import inlined, on_arrays

MOST = 9.1
"""Beyond this tanh is 1 in float32."""


@inlined
def _tanh(x: Any) -> Any:
    """Within 1e-10 of tanh of x: Lambert's continued fraction to its sixth partial quotient, of x / 8.

    The argument is doubled three times by tanh 2a = 2 tanh a / (1 + tanh^2 a), numerator and denominator apart: one
    division in all.
    """
    a = np.float64(0.125) * min(max(np.float64(x), -MOST), MOST)
    s = a * a
    p, q = a * (10_395.0 + s * (1_260.0 + 21.0 * s)), 10_395.0 + s * (4_725.0 + s * (210.0 + s))
    p, q = 2.0 * p * q, q * q + p * p
    p, q = 2.0 * p * q, q * q + p * p
    return np.float32(2.0 * p * q / (q * q + p * p))


@on_arrays
def outputs(rows: Any, sizes: Any, weights: Any, relu: bool, between: Any, result: Any) -> None:
    """What a network of fully connected layers makes of each row, with tanh or ReLU in between.

    Args:
        rows: float32 `[n, sizes[0]]`.
        sizes: int64 `[layers + 1]`, numbers before the first layer and after each.
        weights: float32, layer after layer: weights `[inputs, outputs]`, then bias `[outputs]`.
        relu: instead of tanh.
        between: float32 `[2, max(sizes)]`, written over.
        result: float32 `[n, sizes[-1]]`, written.
    """
    layers = len(sizes) - 1
    for n in range(len(rows)):
        for k in range(sizes[0]):
            between[0, k] = rows[n, k]
        first = 0
        for layer in range(layers):
            inputs, outs = sizes[layer], sizes[layer + 1]
            source, made = between[layer % 2], between[1 - layer % 2]
            for j in range(outs):
                made[j] = np.float32(0.0)
            for k in range(inputs):
                value, row = source[k], weights[first : first + outs]
                for j in range(outs):
                    made[j] += value * row[j]
                first += outs
            bias = weights[first : first + outs]
            first += outs
            if layer < layers - 1:
                for j in range(outs):
                    x = made[j] + bias[j]
                    made[j] = (np.float32(0.0) if x < 0.0 else x) if relu else _tanh(x)
            else:
                for j in range(outs):
                    result[n, j] = made[j] + bias[j]
