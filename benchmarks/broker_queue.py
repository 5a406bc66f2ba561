"""A real MQTT broker on a lossy path against the post office: the same departures into both (T27).

    python -m benchmarks.broker_queue               # records anew, 30 min: root, mosquitto, paho-mqtt
    python -m benchmarks.broker_queue --recorded    # compares what was recorded last

A publisher on one host, mosquitto and a subscriber on another (network namespaces), all with TCP_NODELAY. On the path
between publisher and broker each packet is lost by chance, either way, acknowledgements too. In each round all losses
run side by side; the delays of the run without loss are those of the law's link.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import os
import socket
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import chain, product, repeat
from pathlib import Path
from subprocess import DEVNULL, Popen
from typing import Any, Final, NamedTuple

import numpy as np

from benchmarks import hosts
from benchmarks.shared_links import Office, constant
from heron_env import Empirical, ScheduleConfig
from heron_env.scheduling.media import Reliable, tcp
from heron_env.seeding import stream
from heron_env.testing.clock import SECOND

FILE: Final = Path(__file__).with_name("results") / "links" / "broker.json.gz"
LOSSES: Final = (0.01, 0.03, 0.05, 0.1)
QOS, SESSIONS, ROUNDS, MESSAGES, GAP, PORT, SEEDS = (0, 1), 2, 5, 700, 0.1, 1883, 60
"""Sessions, and rounds of each QoS in each; messages of a run, GAP s apart in the mean; seeds of the post office."""
UNIT: Final = 10_000
"""ns; times are recorded in it."""
LATE: Final = 0.05
"""What counts as late, s."""
MOST_SCORE, MOST_MEAN = 3.0, 0.3
"""The bar: deviations of one run by which its share of late messages may be off; how far the median of the runs' means
may be off that of the law's runs, as a share."""
LAWS: Final[dict[str, Reliable]] = {
    "tcp()": tcp()["transport"],
    "without gaps": Reliable(rto=0.2, backoff=2.0, tries=16),
}


class Run(NamedTuple):
    """Messages of one run, in the order of departure.

    Attributes:
        gaps: time since the departure before, in units of 10 µs; delays: alike.
        dropped: the share of packets that the path lost.
    """

    loss: float
    qos: int
    round: int
    gaps: list[int]
    delays: list[int]
    dropped: float


def record(loss: float, qos: int, number: int) -> Run:
    """This host publishes, a far one has broker and subscriber. Raises SystemExit if a message does not arrive."""
    from paho.mqtt.client import Client
    from paho.mqtt.enums import CallbackAPIVersion

    seed = [round(100 * loss), qos, number]
    with hosts.far_host() as pid:
        link = hosts.LossyLink(pid, *seed)
        with broker(pid):
            arrivals: dict[int, int] = {}
            subscriber = Client(CallbackAPIVersion.VERSION2, reconnect_on_failure=False)
            subscriber.on_message = lambda *words: arrivals.update({int(words[2].payload): time.monotonic_ns()})
            subscribed = threading.Event()
            subscriber.on_subscribe = lambda *words: subscribed.set()
            with hosts.standing_on(pid):
                _connect(subscriber)
            subscriber.subscribe("news", qos)
            subscriber.loop_start()
            publisher = Client(CallbackAPIVersion.VERSION2, reconnect_on_failure=False)
            _connect(publisher)
            publisher.loop_start()
            while not (publisher.is_connected() and subscribed.is_set()):
                time.sleep(0.01)
            link.loss = loss
            random, at, departures = stream(0, "departures", *seed), time.monotonic() + 0.5, list[int]()
            for message in range(MESSAGES):
                at += random.exponential(GAP)
                time.sleep(max(0.0, at - time.monotonic()))
                departures.append(time.monotonic_ns())
                publisher.publish("news", f"{message:08}", qos)
            end = time.monotonic() + 120.0
            while len(arrivals) < MESSAGES and time.monotonic() < end:
                time.sleep(0.1)
    if len(arrivals) < MESSAGES:
        raise SystemExit(f"{MESSAGES - len(arrivals)} of {MESSAGES} messages did not arrive")
    gaps = np.diff(np.array(departures) // UNIT, prepend=departures[0] // UNIT - 1).tolist()
    delays = [(arrivals[message] - ns) // UNIT for message, ns in enumerate(departures)]
    dropped = round(link.dropped / max(1, link.dropped + link.carried), 4)
    return Run(loss, qos, number, gaps, delays, dropped)


def _connect(client: Any) -> None:
    """With TCP_NODELAY, and Linux's usual congestion control; a connection that ends is not made again."""
    client.connect(hosts.FAR, PORT, keepalive=600)
    client.socket().setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.socket().setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")


@contextmanager
def broker(pid: int) -> Iterator[None]:
    """mosquitto on the other host, once it listens."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "mosquitto.conf"
        lines = (f"listener {PORT}", "allow_anonymous true", "set_tcp_nodelay true", "persistence false", "user root")
        file.write_text("\n".join((*lines, "")))
        command = f"nsenter --target {pid} --net {hosts.path_of('mosquitto')} -c {file}"
        process = Popen(command.split(), stdout=DEVNULL, stderr=DEVNULL)
        try:
            while True:
                try:
                    socket.create_connection((hosts.FAR, PORT), timeout=1).close()
                    break
                except OSError:
                    if process.poll() is not None:
                        raise SystemExit("mosquitto did not start") from None
                    time.sleep(0.05)
            yield
        finally:
            process.kill()
            process.wait()


def in_the_post_office(run: Run, calm: Run, law: Reliable, seed: int) -> np.ndarray[Any, Any]:
    """Delays, s, of a run's messages on a link with the delays of a run without loss and with this run's loss."""
    config = ScheduleConfig(msg_delay=Empirical(seconds(calm.delays)), loss=run.loss, transport=law)
    office = Office(config, 1, lambda _: chain(seconds(run.gaps), repeat(1e6)), constant(0.0), seed)
    arrived = office.run(len(run.gaps)).finish().arrived[0]
    return np.array([came - left for _, left, came in arrived]) / SECOND


def seconds(times: list[int]) -> list[float]:
    """Of times as they are recorded."""
    return [time * UNIT / SECOND for time in times]


def late_and_mean(delays: np.ndarray[Any, Any]) -> tuple[float, float]:
    """The share of late messages, and the mean delay, s."""
    return float(np.mean(delays > LATE)), float(np.mean(delays))


class Compared(NamedTuple):
    """Some runs of one loss, and a law: by run, share late, mean, s; the law's, by seed."""

    measured: list[tuple[float, float]]
    expected: list[tuple[float, float]]

    @property
    def scores(self) -> list[float]:
        """By run, how many deviations of one run its share of late messages is off."""
        late = np.array(self.expected)[:, 0]
        return [float((share - late.mean()) / late.std(ddof=1)) for share, _ in self.measured]

    @property
    def mean_off(self) -> float:
        """The median of the means, measured less the law's, as a share of that."""
        measured, expected = (float(np.median([mean for _, mean in each])) for each in self)
        return measured / expected - 1.0

    @property
    def passes(self) -> bool:
        """Is it within the bar?"""
        return max(map(abs, self.scores)) <= MOST_SCORE and abs(self.mean_off) <= MOST_MEAN


def compared(runs: Sequence[Run], law: Reliable, seeds: int = SEEDS) -> Compared:
    """Runs of one loss; seeds take turns with their departures, and with the delays of their rounds without loss."""
    calm = {(run.qos, run.round): run for run in recorded() if run.loss == 0.0}
    expected = [
        late_and_mean(in_the_post_office(run, calm[run.qos, run.round], law, seed))
        for seed, run in zip(range(seeds), chain.from_iterable(repeat(runs)), strict=False)
    ]
    return Compared([late_and_mean(np.array(seconds(run.delays))) for run in runs], expected)


@cache
def recorded() -> tuple[Run, ...]:
    """What was recorded last."""
    return tuple(Run(**each) for each in json.loads(gzip.decompress(FILE.read_bytes()))["runs"])


def table() -> str:
    """Markdown, of what was recorded last."""
    lines = [
        "| loss | QoS | session | law | late by run, % | law's, ± one run | off by run, deviations | mean by run, ms "
        "| law's median | median off | bar |",
        "| ---: | ---: | ---: | --- | --- | ---: | --- | --- | ---: | ---: | --- |",
    ]
    for loss, qos, session, (name, law) in product(LOSSES, QOS, range(SESSIONS), LAWS.items()):
        alike = [run for run in recorded() if (run.loss, run.qos, run.round // ROUNDS) == (loss, qos, session)]
        c = compared(alike, law)
        measured, expected = 100 * np.array(c.measured)[:, 0], 100 * np.array(c.expected)[:, 0]
        means, median = 1e3 * np.array(c.measured)[:, 1], 1e3 * np.median(np.array(c.expected)[:, 1])
        lines.append(
            f"| {100 * loss:.0f} % | {qos} | {session + 1} | {name} | {_listed(measured)} | {expected.mean():.1f} ± "
            f"{expected.std(ddof=1):.1f} | {_listed(c.scores)} | {_listed(means)} | {median:.1f} "
            f"| {100 * c.mean_off:+.0f} % | {'passes' if c.passes else 'refused'} |"
        )
    calm = [run for run in recorded() if run.loss == 0.0]
    delays = 1e3 * np.concatenate([seconds(run.delays) for run in calm])
    lines += [
        "",
        f"Without loss: median {np.median(delays):.2f} ms, mean {delays.mean():.2f} ms, "
        f"{100 * np.mean(delays > 1e3 * LATE):.2f} % late. Packets dropped: "
        + ", ".join(
            f"{100 * np.mean([run.dropped for run in recorded() if run.loss == loss]):.1f} % at {100 * loss:.0f} %"
            for loss in LOSSES
        ),
    ]
    return "\n".join(lines)


def _listed(values: Iterable[float]) -> str:
    return ", ".join(f"{value:.1f}" for value in values)


def missing() -> str:
    """What this machine lacks, in words; "" if it has all."""
    if importlib.util.find_spec("paho") is None:
        return "paho-mqtt is not installed: pip install paho-mqtt"
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "/dev/net/tun can't be opened: needs root"
    return hosts.missing("nsenter", "mosquitto")


def main() -> None:
    """Record anew, if this machine can, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recorded", action="store_true", help="compare what was recorded last")
    parser.add_argument("--inside", nargs=3, type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        loss, qos, number = options.inside
        print(json.dumps(record(loss, int(qos), int(number))._asdict(), separators=(",", ":")))
        return
    if not options.recorded:
        if lack := missing():
            raise SystemExit(f"Nothing recorded: {lack}")
        runs = []
        for number, qos in product(range(SESSIONS * ROUNDS), QOS):
            side_by_side = [hosts.apart("benchmarks.broker_queue", "--inside", x, qos, number) for x in (0.0, *LOSSES)]
            runs += [json.loads(hosts.output(process)) for process in side_by_side]
        FILE.parent.mkdir(exist_ok=True)
        content = json.dumps({"schema_version": 1, "runs": runs}, separators=(",", ":"))
        FILE.write_bytes(gzip.compress(content.encode(), mtime=0))
    print(table())


if __name__ == "__main__":
    main()
