"""A queue of Linux's kernel against the post office: the same departures into both (T25, T26).

    python -m benchmarks.kernel_queue               # records anew, 80 s: root or user namespaces, ip, tc
    python -m benchmarks.kernel_queue --recorded    # compares what was recorded last

Three senders, two network namespaces, between them a queue (tc tbf) of 20 kbit/s with room in its bucket for one frame.
tbf lets a frame go when its tokens are there, so it arrives where the law has its departure, less its work.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import socket
import struct
import threading
import time
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from benchmarks import hosts
from benchmarks.shared_links import Office, constant
from heron_env import ScheduleConfig
from heron_env.scheduling.media import Medium
from heron_env.seeding import stream
from heron_env.testing.clock import SECOND

FILE: Final = Path(__file__).with_name("results") / "links" / "kernel.json.gz"
SENDERS, PORT, CONTENT, HEADERS = 3, 7000, 64, 42
"""Bytes of a frame: content; headers of UDP (8), IP (20) and Ethernet (14)."""
FRAME: Final = CONTENT + HEADERS
TBF: Final = Medium("tbf", rate=2500.0, overhead=HEADERS, sizes={"report": CONTENT})
"""20 kbit/s."""


class Play(NamedTuple):
    """What is sent: packets in all, the load, and how many frames may wait (None: any)."""

    packets: int
    load: float
    places: int | None
    seed: int

    @property
    def medium(self) -> Medium:
        """What the law says of it."""
        return replace(TBF, limit=None if self.places is None else float(self.places * FRAME))


PLAYS: Final = {"all wait": Play(900, 0.5, None, 1), "three may wait": Play(2100, 1.27, 3, 2)}
MOST_AGE, MOST_REFUSED = 0.02, 0.01
"""The bar: mean age off by so much of it, share refused off by so much."""


def wrong(play: Play) -> dict[str, Medium]:
    """Models that the same bar must refuse."""
    medium = play.medium
    models = {"half the rate": replace(medium, rate=medium.rate / 2), "no queue": replace(medium, rate=math.inf)}
    if medium.limit is not None:
        models["one more may wait"] = replace(medium, limit=medium.limit + FRAME)
    return models


def record(name: str) -> list[tuple[int, int, int]]:
    """Play it, here and on a far host: (sender, departure, arrival or -1) of each packet, ns, as they departed."""
    play = PLAYS[name]
    with hosts.far_host() as pid:
        hosts.cable(pid)
        limit = 10**7 if play.medium.limit is None else int(play.medium.limit)
        hosts.system(f"tc qdisc add dev near root tbf rate 20kbit burst {FRAME} limit {limit}")
        with hosts.standing_on(pid):
            receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        receiver.bind((hosts.FAR, PORT))
        arrivals: dict[int, int] = {}
        threading.Thread(target=_receive, args=(receiver, arrivals), daemon=True).start()
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 10**7)
        sender.connect((hosts.FAR, PORT))
        departures = _send(sender, play)
        time.sleep(2.0 + (play.packets if play.places is None else play.places) * TBF.work(FRAME) / SECOND / 10)
    start = departures[0][1] - SECOND // 100
    return [
        (who, left - start, arrivals[number] - start if number in arrivals else -1)
        for number, (who, left) in enumerate(departures)
    ]


SO_TIMESTAMPNS: Final = 35


def _receive(receiver: socket.socket, arrivals: dict[int, int]) -> None:
    """Times are the kernel's, ns of CLOCK_REALTIME, not those at which this process was woken."""
    while True:
        content, control, _, _ = receiver.recvmsg(CONTENT, 64)
        seconds, ns = struct.unpack("qq", control[0][2])
        arrivals[struct.unpack_from("i", content)[0]] = seconds * SECOND + ns


def _send(sender: socket.socket, play: Play) -> list[tuple[int, int]]:
    """Each sender at random times: (sender, departure) of each packet, ns of CLOCK_REALTIME."""
    random, mean = stream(play.seed, "departures"), TBF.work(FRAME) / SECOND / play.load
    at, departures = time.monotonic() + 0.1, list[tuple[int, int]]()
    for number in range(play.packets):
        at += random.exponential(mean)  # of all senders together; each is as likely to be the one
        time.sleep(max(0.0, at - time.monotonic()))
        content = struct.pack("i", number).ljust(CONTENT)
        departures.append((int(random.integers(SENDERS)), time.time_ns()))
        sender.send(content)
    return departures


class Compared(NamedTuple):
    """Of a model: mean ages, s, shares refused, measured and by the model; the share of packets with the same fate.

    Attributes:
        later: s by which an arrival that both have was later than the model's, median and 95th percentile.
    """

    ages: tuple[float, float]
    refused: tuple[float, float]
    same_fate: float
    later: tuple[float, float]

    @property
    def age_off(self) -> float:
        """The model's mean age less the measured one, as a share of that."""
        return self.ages[1] / self.ages[0] - 1.0

    @property
    def passes(self) -> bool:
        """Is it within the bar?"""
        return abs(self.age_off) <= MOST_AGE and abs(self.refused[1] - self.refused[0]) <= MOST_REFUSED


def compared(packets: list[tuple[int, int, int]], medium: Medium) -> Compared:
    """The same departures into the post office."""
    rows = np.array(packets, dtype=np.int64)
    sent = [rows[rows[:, 0] == sender, 1] for sender in range(SENDERS)]

    def gaps(sender: int) -> Any:
        return chain((np.diff(sent[sender], prepend=0) / SECOND).tolist(), repeat(1e6))

    office = Office(ScheduleConfig(medium=medium), SENDERS, gaps, constant(CONTENT)).run(len(rows)).finish()
    kernel, work = copy(office), medium.work(FRAME)
    kernel.arrived = [
        sorted(
            ((number, left, came) for number, (_, left, came) in enumerate(mine.tolist(), 1) if came >= 0),
            key=lambda row: row[2],
        )
        for mine in (rows[rows[:, 0] == sender] for sender in range(SENDERS))
    ]
    ours, theirs = (
        {(sender, number): came for sender, mine in enumerate(each.arrived) for number, _, came in mine}
        for each in (office, kernel)
    )
    later = [(theirs[key] - (ours[key] - work)) / SECOND for key in ours.keys() & theirs.keys()]
    age = float(np.mean([office.age(sender, work / SECOND) for sender in range(SENDERS)]))
    return Compared(
        (kernel.mean_age(), age),
        (1.0 - len(theirs) / len(rows), 1.0 - len(ours) / len(rows)),
        1.0 - len(ours.keys() ^ theirs.keys()) / len(rows),
        (float(np.median(later)), float(np.quantile(later, 0.95))),
    )


def recorded() -> Mapping[str, list[tuple[int, int, int]]]:
    """What was recorded last, by name in PLAYS."""
    runs: dict[str, list[tuple[int, int, int]]] = json.loads(gzip.decompress(FILE.read_bytes()))["runs"]
    return runs


def table() -> str:
    """Markdown, of what was recorded last."""
    lines = [
        "| run | model | mean age, measured / model, ms | off | refused, measured / model, % | same fate, % | bar |",
        "| --- | --- | ---: | ---: | ---: | ---: | --- |",
    ]
    for name, packets in recorded().items():
        play = PLAYS[name]
        for model, medium in {"the law": play.medium, **wrong(play)}.items():
            c = compared(packets, medium)
            ages, refused = (f"{1e3 * c.ages[0]:.1f} / {1e3 * c.ages[1]:.1f}", c.refused)
            lines.append(
                f"| {name} | {model} | {ages} | {100 * c.age_off:+.1f} % | {100 * refused[0]:.1f} / "
                f"{100 * refused[1]:.1f} | {100 * c.same_fate:.1f} | {'passes' if c.passes else 'refused'} |"
            )
            if model == "the law":
                later = f"arrivals are later than the law's by {1e3 * c.later[0]:.2f} ms in the median, "
                lines.append(f"| | {later}{1e3 * c.later[1]:.2f} ms at the 95th percentile | | | | | |")
    return "\n".join(lines)


def main() -> None:
    """Record anew, if this machine can, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recorded", action="store_true", help="compare what was recorded last")
    parser.add_argument("--inside", choices=PLAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        print(json.dumps(record(options.inside), separators=(",", ":")))
        return
    if not options.recorded:
        if lack := hosts.missing("nsenter"):
            raise SystemExit(f"Nothing recorded: {lack}")
        running = {name: hosts.apart("benchmarks.kernel_queue", "--inside", name) for name in PLAYS}
        runs = {name: json.loads(hosts.output(process)) for name, process in running.items()}
        FILE.parent.mkdir(exist_ok=True)
        content = json.dumps({"schema_version": 1, "runs": runs}, separators=(",", ":"))
        FILE.write_bytes(gzip.compress(content.encode(), mtime=0))
    print(table())


if __name__ == "__main__":
    main()
