"""What links draw, in compiled code: the same bits as heron_env.scheduling.draws, which tells the law."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from heron_env.engine.event.forms import (
    DUPLICATE,
    JITTER,
    LEAST,
    RATIO,
    SPREAD,
    TICK,
    TICK_RATIO,
    TICK_SPREAD,
)
from heron_env.engine.kernels import leaf
from heron_env.seeding import GOLDEN, h

STEP = np.uint64(GOLDEN)
_1, _11, _27, _30, _31 = (np.uint64(bits) for bits in (1, 11, 27, 30, 31))
_FIRST, _SECOND = np.uint64(0xBF58_476D_1CE4_E5B9), np.uint64(0x94D0_49BB_1331_11EB)
DELAYS = (np.uint64(h("delay")), np.uint64(h("twin delay")))
LOSSES = (np.uint64(h("loss")), np.uint64(h("twin loss")))
DUPLICATES, TICKS = np.uint64(h("duplicate")), np.uint64(h("tick"))
UNIFORM, GAUSSIAN = 1, 2
"""Kinds of jitter; 3 is lognormal."""
FAR = 2.0**62
"""No delay is longer, ns."""
MIDDLE = (
    (2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
     1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080e0),
    (5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
     5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0),
)  # fmt: skip
OUTER = (
    (7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e0,
     3.64784832476320460504e0, 5.76949722146069140550e0, 4.63033784615654529590e0, 1.42343711074968357734e0),
    (1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
     6.89767334985100004550e-1, 1.67638483018380384940e0, 2.05319162663775882187e0, 1.0),
)  # fmt: skip
FARTHEST = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
     2.96560571828504891230e-1, 1.78482653991729133580e0, 5.46378491116411436990e0, 6.65790464350110377720e0),
    (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
     1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0),
)  # fmt: skip
"""Coefficients of the normal quantile: Wichura, "Algorithm AS 241", Applied Statistics 37 (1988)."""


@leaf
def mixed(x: Any) -> Any:
    """seeding.mix of a uint64."""
    x = (x ^ (x >> _30)) * _FIRST
    x = (x ^ (x >> _27)) * _SECOND
    return x ^ (x >> _31)


@leaf
def uniform(own: Any, purpose: Any, cause: Any, leg: Any, number: Any) -> Any:
    """The draw u in [0, 1) of an agent whose key in this episode is `own`."""
    x = mixed((own ^ purpose) + STEP)
    x = mixed((x ^ cause) + STEP)
    x = mixed((x ^ np.uint64(leg)) + STEP)
    return element(x, number)


@leaf
def element(x: Any, number: Any) -> Any:
    """The draw of this number from a key."""
    return np.float64(mixed(x + (np.uint64(number) + _1) * STEP) >> _11) * 2.0**-53


@leaf
def ratio_of(r: Any, above: Any, below: Any) -> Any:
    """Two polynomials of degree 7, one by the other."""
    top, bottom = above[0], below[0]
    for k in range(1, 8):
        top, bottom = top * r + above[k], bottom * r + below[k]
    return top, bottom


@leaf
def standard_normal(u: Any) -> Any:
    """seeding.standard_normal."""
    p = u if u > 0.0 else 2.0**-54
    q = p - 0.5
    if math.fabs(q) <= 0.425:
        top, bottom = ratio_of(0.180625 - q * q, MIDDLE[0], MIDDLE[1])
        return top * q / bottom
    r = math.sqrt(-math.log(p if q <= 0.0 else 1.0 - p))
    if r <= 5.0:
        top, bottom = ratio_of(r - 1.6, OUTER[0], OUTER[1])
    else:
        top, bottom = ratio_of(r - 5.0, FARTHEST[0], FARTHEST[1])
    return -(top / bottom) if q < 0.0 else top / bottom


@leaf
def deviation(u: Any, kind: Any, ratio: Any, spread: Any) -> Any:
    """ratio * z."""
    if kind == UNIFORM:
        return ratio * (2.0 * u - 1.0)
    n = standard_normal(u)
    return ratio * n if kind == GAUSSIAN else math.expm1(spread * n - 0.5 * spread * spread)


@leaf
def delay(timing: Any, odds: Any, at: Any, own: Any, nominal: Any, cause: Any, leg: Any, number: Any, twin: Any) -> Any:
    """Of one leg, ns; `at`: the agent's row in `timing` and `odds`."""
    late = np.int64(nominal)
    if odds[at, RATIO] > 0.0 and nominal != 0:
        u = uniform(own, DELAYS[twin], cause, leg, number)
        spread = nominal * (1.0 + deviation(u, timing[at, JITTER], odds[at, RATIO], odds[at, SPREAD]))
        late = np.int64(min(np.rint(spread), FAR))
    return max(late, timing[at, LEAST])


@leaf
def lost(share: Any, own: Any, cause: Any, leg: Any, number: Any, twin: Any) -> Any:
    """Does the message get lost, of which a share is?"""
    return share > 0.0 and uniform(own, LOSSES[twin], cause, leg, number) < share


@leaf
def doubled(odds: Any, at: Any, own: Any, cause: Any, leg: Any, number: Any) -> Any:
    """Does it travel twice?"""
    return odds[at, DUPLICATE] > 0.0 and uniform(own, DUPLICATES, cause, leg, number) < odds[at, DUPLICATE]


@leaf
def shift(timing: Any, odds: Any, at: Any, own: Any, number: Any) -> Any:
    """How far tick `number` moves, ns."""
    if odds[at, TICK_RATIO] == 0.0 or number == 0:
        return np.int64(0)
    u = uniform(own, TICKS, TICKS, 0, number)
    part = deviation(u, timing[at, JITTER], odds[at, TICK_RATIO], odds[at, TICK_SPREAD])
    return np.int64(np.rint(min(max(part, -0.5), 0.5) * timing[at, TICK]))
