"""What is no radial feeder is refused, and the message says what is wrong with it."""

import pytest

from heron_env.errors import ConfigError
from heron_env.power_flow import Feeder, Line, Transformer


def line(start, end, r=0.1, x=0.1, **more):
    return Line(start, end, r, x, **more)


def test_what_is_no_feeder_is_refused():
    for buses, lines, more, words in [
        ("", [], {}, "a feeder has at least one bus"),
        ("aba", [], {}, "the bus 'a' is there twice"),
        ("abc", ["ab"], {}, r"no line leads from the source 'a' to \['c'\]"),
        ("abcd", ["ab", "cd"], {}, r"no line leads from the source 'a' to \['c', 'd'\]"),
        ("abc", ["ab", "bc", "ca"], {}, r"line \d from '.' to '.' closes a ring; a feeder is radial"),
        ("ab", ["ab", "ba"], {}, "line 1 from 'a' to 'b' closes a ring"),
        ("ab", ["ax"], {}, "line 0 names the bus 'x', which is not there"),
        ("ab", ["ab"], {"source": "z"}, "source names the bus 'z', which is not there"),
        ("ab", ["ab"], {"base_kv": 0.0}, "base_kv=0.0 kV must be a finite number > 0"),
        ("ab", ["ab"], {"slack_voltage": float("nan")}, "slack_voltage=nan pu must be a finite number > 0"),
    ]:
        with pytest.raises(ConfigError, match=words):
            Feeder(tuple(buses), tuple(line(*ends) for ends in lines), **{"base_kv": 0.4, **more})


def test_an_impossible_line_is_refused():
    for change, words in [
        ({"end": "a"}, "line 'a' to 'a': ends where it starts"),
        ({"r": -0.1}, "line 'a' to 'b': r=-0.1 ohm must be a finite number >= 0"),
        ({"x": float("inf")}, "x=inf ohm must be a finite number >= 0"),
        ({"x": "0.1"}, "x='0.1' ohm must be a finite number >= 0"),
        ({"rating": 0.0}, "rating=0.0 A must be a finite number > 0"),
        ({"charging": -1e-6}, "charging=-1e-06 S must be a finite number >= 0"),
    ]:
        with pytest.raises(ConfigError, match=words):
            line(**{"start": "a", "end": "b", **change})


def test_an_impossible_transformer_is_refused():
    for change, words in [
        ({"rating": 0.0}, "transformer: rating=0.0 kVA must be a finite number > 0"),
        ({"copper_losses": 11.0}, "copper_losses=11.0 kW are more than short_circuit_voltage=0.04 of 250 kVA"),
        ({"iron_losses": 1.0}, "iron_losses=1.0 kW are more than no_load_current=0.0 of 250 kVA"),
        ({"short_circuit_voltage": -0.04}, "short_circuit_voltage=-0.04"),
    ]:
        with pytest.raises(ConfigError, match=words):
            Transformer(**{"rating": 250.0, "short_circuit_voltage": 0.04, "copper_losses": 3.0, **change})


def test_a_single_bus_and_a_line_without_impedance_are_feeders():
    assert Feeder(("a",), (), 0.4).source == "a"
    assert Feeder(("a", "b"), (line("b", "a", 0.0, 0.0),), 0.4, "b").tree.order == (1, 0)
