"""Networks with published parameters, as values of a schedule; each says where its numbers are from."""

from __future__ import annotations

from itertools import product
from typing import Final

from heron_env.scheduling.drawn import DrawnSchedule
from heron_env.scheduling.sources import GilbertElliott

P_BAD: Final = (0.01, 0.08)
P_GOOD: Final = (0.08, 0.5)
LOSS_BAD: Final = (0.9, 1.0)
LOSS_GOOD: Final = (0.0, 0.02)
ONE_WAY: Final = (0.1, 0.4)
"""In-flight communication, direct air to ground and by satellite: least and greatest of each parameter of bursty
losses, and of the one-way delay in s. Quoted at second hand: a public description of experiments ("pos2") has these
ranges from the thesis of F. Michel (UCLouvain). The setting is that of F. Michel, Q. De Coninck, O. Bonaventure,
"QUIC-FEC: Bringing the benefits of Forward Erasure Correction to QUIC", IFIP Networking 2019. Losses come in bursts of
1 / p_good messages in the mean, 2 to 12.5.
"""


def in_flight_losses(period: float) -> GilbertElliott:
    """Losses with the middle of each range, 13.6 % in the mean.

    Args:
        period: s. The published chain moves with every packet: give the time from message to message of a link.
    """
    p_bad, p_good, loss_bad, loss_good = (
        round(0.5 * (low + high), 6) for low, high in (P_BAD, P_GOOD, LOSS_BAD, LOSS_GOOD)
    )
    return GilbertElliott(p_bad, p_good, loss_bad, loss_good, period)


def in_flight_networks(period: float) -> DrawnSchedule:
    """Any of the 16 corners of the ranges, and a one-way delay between its bounds, drawn once an episode; for training.

    Args:
        period: as above.
    """
    corners = [GilbertElliott(*corner, period) for corner in product(P_BAD, P_GOOD, LOSS_BAD, LOSS_GOOD)]
    return DrawnSchedule(loss=corners, msg_delay=f"{ONE_WAY[0]}-{ONE_WAY[1]}")
