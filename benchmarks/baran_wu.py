"""The 33-bus distribution feeder of Baran and Wu, 12.66 kV: the usual radial test case.

Source: M. E. Baran, F. F. Wu, "Network reconfiguration in distribution systems for loss reduction and load balancing",
IEEE Transactions on Power Delivery 4(2), 1401-1407, 1989, doi 10.1109/61.25627; the line from bus 7 to bus 8 as in
MATPOWER's case33bw. With the nominal loads it loses 202.68 kW, and the lowest voltage is 0.91309 pu.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from heron_env.power_flow import Feeder, Line

BASE_KV: Final = 12.66
# from, to, r and x in ohm, load of the second bus in kW and kvar
ROWS: Final = (
    (1, 2, 0.0922, 0.0470, 100.0, 60.0),
    (2, 3, 0.4930, 0.2511, 90.0, 40.0),
    (3, 4, 0.3660, 0.1864, 120.0, 80.0),
    (4, 5, 0.3811, 0.1941, 60.0, 30.0),
    (5, 6, 0.8190, 0.7070, 60.0, 20.0),
    (6, 7, 0.1872, 0.6188, 200.0, 100.0),
    (7, 8, 0.7114, 0.2351, 200.0, 100.0),
    (8, 9, 1.0300, 0.7400, 60.0, 20.0),
    (9, 10, 1.0440, 0.7400, 60.0, 20.0),
    (10, 11, 0.1966, 0.0650, 45.0, 30.0),
    (11, 12, 0.3744, 0.1238, 60.0, 35.0),
    (12, 13, 1.4680, 1.1550, 60.0, 35.0),
    (13, 14, 0.5416, 0.7129, 120.0, 80.0),
    (14, 15, 0.5910, 0.5260, 60.0, 10.0),
    (15, 16, 0.7463, 0.5450, 60.0, 20.0),
    (16, 17, 1.2890, 1.7210, 60.0, 20.0),
    (17, 18, 0.7320, 0.5740, 90.0, 40.0),
    (2, 19, 0.1640, 0.1565, 90.0, 40.0),
    (19, 20, 1.5042, 1.3554, 90.0, 40.0),
    (20, 21, 0.4095, 0.4784, 90.0, 40.0),
    (21, 22, 0.7089, 0.9373, 90.0, 40.0),
    (3, 23, 0.4512, 0.3083, 90.0, 50.0),
    (23, 24, 0.8980, 0.7091, 420.0, 200.0),
    (24, 25, 0.8960, 0.7011, 420.0, 200.0),
    (6, 26, 0.2030, 0.1034, 60.0, 25.0),
    (26, 27, 0.2842, 0.1447, 60.0, 25.0),
    (27, 28, 1.0590, 0.9337, 60.0, 20.0),
    (28, 29, 0.8042, 0.7006, 120.0, 70.0),
    (29, 30, 0.5075, 0.2585, 200.0, 600.0),
    (30, 31, 0.9744, 0.9630, 150.0, 70.0),
    (31, 32, 0.3105, 0.3619, 210.0, 100.0),
    (32, 33, 0.3410, 0.5302, 60.0, 40.0),
)


def feeder() -> Feeder:
    """Its buses are called "1" to "33", fed at "1"."""
    lines = tuple(Line(str(start), str(end), r, x) for start, end, r, x, _, _ in ROWS)
    return Feeder(tuple(str(bus) for bus in range(1, 34)), lines, BASE_KV)


def nominal_load() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """kW and kvar of each bus, `[33]` each."""
    load = np.array([(0.0, 0.0), *(row[4:] for row in ROWS)])
    return load[:, 0].copy(), load[:, 1].copy()
