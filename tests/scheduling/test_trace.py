"""T16: records with ids, causes, times and latencies, as text that is equal exactly if the runs are."""

import pickle

import numpy as np
import pytest

from heron_env.testing import clock

IDS = ("system_agent", "battery_1")


def sample() -> clock.Trace:
    trace = clock.Trace()
    tick = trace.add(0, "AgentTick", 0, 0, clock.NOBODY, clock.NOBODY, 0, clock.AgentTick(0, 0))
    request = clock.ObservationRequest(0, 0, 1, 0, 0)
    asked = trace.add(clock.SECOND // 5, "ObservationRequest", 0, 0, 1, tick, clock.SECOND // 5, request)
    command = clock.Command(1, 0, 2, clock.SECOND // 5, np.array([0.1, -1 / 3]))
    came = trace.add(2 * clock.SECOND, "Command", 1, 0, 2, asked, 9 * clock.SECOND // 5, command)
    trace.add(2 * clock.SECOND, "ActionEffect", 1, 0, clock.NOBODY, came, 0, clock.ActionEffect(1, 0, np.array([0.1])))
    trace.add(3 * clock.SECOND, "End", clock.NOBODY, clock.NOBODY, clock.NOBODY, clock.NOBODY, 0)
    return trace


def test_a_record_knows_its_place_and_its_cause() -> None:
    trace = sample()
    assert len(trace) == 5
    record = trace[1]
    assert isinstance(record, clock.TraceRecord)
    assert (record.index, record.t_ns, record.kind, record.agent, record.number) == (
        1,
        clock.SECOND // 5,
        "ObservationRequest",
        0,
        0,
    )
    assert (record.id, record.cause, record.latency, type(record.payload)) == (
        1,
        0,
        clock.SECOND // 5,
        clock.ObservationRequest,
    )
    assert trace[record.cause].kind == "AgentTick"
    assert [each.index for each in trace] == [0, 1, 2, 3, 4]
    assert (trace[-1].index, trace[-1].kind) == (4, "End")
    assert [each.kind for each in trace[1:3]] == ["ObservationRequest", "Command"]
    with pytest.raises(IndexError):
        trace[5]


def test_the_lines_of_a_trace() -> None:
    assert sample().lines(IDS) == [
        "0 t=0 AgentTick agent=system_agent number=0 id=-1 cause=-1 latency=0 AgentTick(agent=0, number=0)",
        "1 t=200000000 ObservationRequest agent=system_agent number=0 id=1 cause=0 latency=200000000 "
        "ObservationRequest{'get_info': 'obs'}",
        "2 t=2000000000 Command agent=battery_1 number=0 id=2 cause=1 latency=1800000000 "
        "Command{'set_action': 'local', 'body': [0x1.999999999999ap-4, -0x1.5555555555555p-2]}",
        "3 t=2000000000 ActionEffect agent=battery_1 number=0 id=-1 cause=2 latency=0 "
        "ActionEffect(agent=1, number=0, values=<f8[1]:9a9999999999b93f)",
        "4 t=3000000000 End agent=- number=-1 id=-1 cause=-1 latency=0 None",
    ]


def test_the_table_of_a_trace() -> None:
    assert sample().table(IDS).splitlines() == [
        "#      time   latency  what                agent         number  cause  content",
        "0  0.000000         -  AgentTick           system_agent       0      -",
        "1  0.200000  0.200000  ObservationRequest  system_agent       0      0  {get_info: obs}",
        "2  2.000000  1.800000  Command             battery_1          0      1  "
        "{set_action: local, body: [0.1, -0.3333]}",
        "3  2.000000         -  ActionEffect        battery_1          0      2  {values: [0.1]}",
        "4  3.000000         -  End                 -                  -      -",
    ]
    assert clock.Trace().table(IDS) == "#  time  latency  what  agent  number  cause  content"


def test_a_payload_is_written_bit_by_bit() -> None:
    for value, text in [
        (None, "None"),
        (True, "True"),
        (7, "7"),
        (0.1, "0x1.999999999999ap-4"),
        (-0.0, "-0x0.0p+0"),
        (float("nan"), "nan"),
        ("a", "'a'"),
        (clock.Leg.COMMAND, "Leg.COMMAND"),
        (np.float64(0.5), "0x1.0000000000000p-1"),
        (np.int64(3), "3"),
        (np.array([1, 2], np.int16), "<i2[2]:01000200"),
        ((1, [2.0]), "[1, [0x1.0000000000000p+1]]"),
        ({"a": None, 3: "b"}, "{'a': None, 3: 'b'}"),
        (
            clock.TickResult(1.0, False, True, {}),
            "TickResult{'reward': 0x1.0000000000000p+0, 'terminated': False, 'truncated': True, 'info': {}}",
        ),
    ]:
        assert clock.exact(value) == text


def test_a_payload_without_a_fixed_order_is_refused() -> None:
    for value in [{1, 2}, object(), clock.AgentTick]:
        with pytest.raises(
            TypeError, match=r"a trace can't hold a (set|object|type): give it a to_dict\(\) or make it a data"
        ):
            clock.exact(value)


def test_the_last_bit_shows() -> None:
    assert clock.exact(np.array([0.1])) != clock.exact(np.array([np.nextafter(0.1, 1.0)]))
    assert clock.exact(0.1) != clock.exact(0.1 + 2**-56)


def test_a_trace_pickles() -> None:
    copy = pickle.loads(pickle.dumps(sample()))
    assert copy.lines(IDS) == sample().lines(IDS)
