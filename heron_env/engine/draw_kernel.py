"""Keyed draws in compiled code: what heron_env.seeding gives, bit for bit, of keys and parts that are uint64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from heron_env import seeding
from heron_env.engine.kernels import lane, leaf

GOLDEN = np.uint64(seeding.GOLDEN)
_1, _11 = np.uint64(1), np.uint64(11)
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

mixed: Any = lane(seeding.mixed)
"""seeding.mix: the text that numpy runs, compiled."""


@leaf
def key_with(x: Any, part: Any) -> Any:
    """seeding.key of the parts behind `x` (GOLDEN: none) and one more; of a name its hash."""
    return mixed((x ^ np.uint64(part)) + GOLDEN)


@leaf
def uniform(x: Any, number: Any) -> Any:
    """Element `number` of seeding.uniforms(x, ...), float64 in [0, 1)."""
    return np.float64(np.int64(mixed(x + (np.uint64(number) + _1) * GOLDEN) >> _11)) * 2.0**-53


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
