"""The sweep against power-grid-model, a published case, and the laws of circuits; what can't be solved says so."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks import baran_wu
from heron_env import make
from heron_env.errors import ConfigError
from heron_env.power_flow import Feeder, Line, PowerFlow, Transformer, solver
from heron_env.testing import inspect

SCENARIOS = 256
TRANSFORMER = Transformer(250.0, 0.04, 3.0, iron_losses=0.6, no_load_current=0.0024)
# buses, transformer, charging of lines in S, slack voltage, how the tree grows
GRIDS = (
    (2, None, 0.0, 1.0, "any"),
    (9, TRANSFORMER, 0.0, 1.02, "line"),
    (15, None, 1e-4, 0.97, "star"),
    (33, TRANSFORMER, 1e-5, 1.05, "any"),
    (60, None, 0.0, 1.0, "any"),
)


def random_feeder(buses, transformer, charging, slack, shape, seed=0):
    """A tree of LV cables between buses whose order says nothing about it, fed at any of them."""
    rng = np.random.default_rng(seed)
    names, lines = rng.permutation([f"bus {k}" for k in range(buses)]).tolist(), []
    for k in range(1, buses):
        up = {"line": k - 1, "star": 0, "any": int(rng.integers(k))}[shape]
        ends = [names[up], names[k]][:: rng.choice([1, -1])]
        r, x = rng.uniform(0.005, 0.05), rng.uniform(0.002, 0.02)
        lines.append(Line(*ends, r, x, rating=275.0, charging=charging * rng.uniform()))
    order = rng.permutation(names).tolist()
    return Feeder(tuple(order), tuple(lines), 0.4, names[0], slack, transformer)


def scenarios(feeder, rng, count=SCENARIOS):
    """Loads and feed-in that reach from next to nothing to beyond what the feeder can carry."""
    shape = (count, len(feeder.buses))
    sign = rng.choice([-0.5, 1.0], (count, 1)) + rng.normal(0.0, 0.5, shape)
    size = rng.uniform(0.0, 1.0, (count, 1)) ** 2 * 1500.0 / len(feeder.buses)
    p = sign * size
    return p, p * rng.uniform(-0.3, 0.6, (count, 1)) + rng.normal(0.0, 1.0, shape)


def by_power_grid_model(feeder, p, q):
    """|u| in pu, A at the lines' greater ends, the transformer's loading, kW and kvar of the slack, what failed.

    Of failed scenarios nothing is of use.
    """
    pgm = pytest.importorskip("power_grid_model", reason="the oracle needs power-grid-model: pip install -e '.[dev]'")
    array, place = pgm.initialize_array, {name: k for k, name in enumerate(feeder.buses)}
    n, source = len(feeder.buses), place[feeder.source]
    fed = feeder.transformer is not None
    node, line = array("input", "node", n + fed), array("input", "line", n - 1)
    load, slack = array("input", "sym_load", n), array("input", "source", 1)
    node["id"], node["u_rated"] = np.arange(n + fed), 1e3 * feeder.base_kv
    line["id"], line["from_status"], line["to_status"], line["i_n"] = 1000 + np.arange(n - 1), 1, 1, 1e3
    line["from_node"], line["to_node"] = ([place[getattr(x, e)] for x in feeder.lines] for e in ("start", "end"))
    line["r1"], line["x1"] = [x.r for x in feeder.lines], [x.x for x in feeder.lines]
    line["c1"], line["tan1"] = [x.charging / (100.0 * np.pi) for x in feeder.lines], 0.0
    load["id"], load["node"], load["status"], load["type"] = 2000 + np.arange(n), np.arange(n), 1, 0
    load["p_specified"] = load["q_specified"] = 0.0
    slack["id"], slack["node"], slack["status"], slack["sk"] = 3000, n if fed else source, 1, 1e25
    slack["u_ref"] = feeder.slack_voltage
    grid = {"node": node, "line": line, "sym_load": load, "source": slack}
    if feeder.transformer is not None:
        plate, t = feeder.transformer, array("input", "transformer", 1)
        volts = 1e3 * feeder.base_kv
        values = {
            "id": 4000, "from_node": n, "to_node": source, "from_status": 1, "to_status": 1, "u1": volts, "u2": volts,
            "sn": 1e3 * plate.rating, "uk": plate.short_circuit_voltage, "pk": 1e3 * plate.copper_losses,
            "i0": plate.no_load_current, "p0": 1e3 * plate.iron_losses, "winding_from": 1, "winding_to": 1, "clock": 0,
            "tap_side": 0, "tap_pos": 0, "tap_min": 0, "tap_max": 0, "tap_nom": 0, "tap_size": 0.0,
        }  # fmt: skip
        for name, value in values.items():
            t[name] = value
        grid["transformer"] = t
    update = array("update", "sym_load", p.shape)
    update["id"], update["p_specified"], update["q_specified"] = load["id"], 1e3 * p, 1e3 * q
    model = pgm.PowerGridModel(grid)
    out = model.calculate_power_flow(
        update_data={"sym_load": update}, error_tolerance=1e-11, max_iterations=100, continue_on_batch_error=True
    )
    voltage, current = out["node"]["u_pu"][:, :n].copy(), np.maximum(out["line"]["i_from"], out["line"]["i_to"])
    slack_p, slack_q = out["source"]["p"][:, 0] / 1e3, out["source"]["q"][:, 0] / 1e3
    failed = np.zeros(len(p), bool)
    if model.batch_error is not None:
        failed[model.batch_error.failed_scenarios] = True
    loading = np.zeros(len(p))
    if feeder.transformer is not None:
        rated = feeder.transformer.rating / (np.sqrt(3.0) * feeder.base_kv)
        loading = np.maximum(out["transformer"]["i_from"], out["transformer"]["i_to"])[:, 0] / rated
    return voltage, current, loading, slack_p, slack_q, failed


def compared(feeder, p, q):
    """Our solution, after every figure in it has been compared with power-grid-model's."""
    flows = PowerFlow(feeder).solve(p, q)
    voltage, current, loading, slack_p, slack_q, failed = by_power_grid_model(feeder, p, q)
    ok = flows.converged
    assert not (ok & failed).any(), "a solution where power-grid-model finds none"
    assert np.abs(flows.voltage[ok] - voltage[ok]).max() <= 1e-6
    assert np.abs(flows.slack_p[ok] - slack_p[ok]).max() <= 1e-3
    assert np.abs(flows.slack_q[ok] - slack_q[ok]).max() <= 1e-3
    if feeder.lines:
        assert np.abs(flows.current[ok] - current[ok]).max() <= 1e-2
    assert np.abs(flows.transformer[ok] - loading[ok]).max() <= 1e-6
    solvable = ~failed & (voltage.min(axis=1) > 0.6)
    assert ok[solvable].mean() > 0.99, "what is well within the feeder's limit is solved"
    return flows


def test_thousand_scenarios_agree_with_power_grid_model():
    lowest, fed_back, solved, unsolved = [], 0, 0, 0
    for seed, grid in enumerate(GRIDS):
        feeder, rng = random_feeder(*grid, seed=seed), np.random.default_rng(seed)
        flows = compared(feeder, *scenarios(feeder, rng))
        ok = flows.converged
        solved, unsolved = solved + int(ok.sum()), unsolved + int((~ok).sum())
        fed_back += int((flows.slack_p[ok] < -1.0).sum())
        lowest += flows.voltage[ok].min(axis=1).tolist()
    deep = sum(0.5 <= v <= 0.7 for v in lowest)
    assert solved >= 1000 and unsolved >= 20 and fed_back >= 100 and deep >= 10, (solved, unsolved, fed_back, deep)


def test_the_33_bus_feeder_has_its_published_solution():
    p, q = baran_wu.nominal_load()
    flows = PowerFlow(baran_wu.feeder()).solve([p], [q])
    assert flows.losses[0] == pytest.approx(202.677, abs=1e-3)
    assert flows.voltage.min() == pytest.approx(0.91309, abs=1e-5)
    assert flows.voltage.argmin() == 17, "bus 18"


def test_what_comes_in_is_what_is_taken_and_lost():
    feeder = random_feeder(*GRIDS[3], seed=8)
    p, q = scenarios(feeder, np.random.default_rng(8))
    flows = PowerFlow(feeder).solve(p / 4.0, q / 4.0)
    ok = flows.converged
    assert ok.mean() > 0.8
    assert np.allclose(flows.slack_p[ok], p[ok].sum(axis=1) / 4.0 + flows.losses[ok], atol=1e-4)


def test_two_buses_have_the_solution_of_the_quadratic_equation():
    """v^4 + (2 (r p + x q) - v0^2) v^2 + |z|^2 |s|^2 = 0 in pu; the upper root is the one that grids run at."""
    feeder = Feeder(("a", "b"), (Line("a", "b", 0.16, 0.08, rating=100.0),), 0.4)
    p, q = np.array([50.0, 100.0, 200.0, -300.0]), np.array([0.0, 40.0, 50.0, 10.0])
    r, x = 1e-3, 0.5e-3  # pu of 1 kVA: 0.16 ohm over 160 ohm
    half = 0.5 - (r * p + x * q)
    expected = np.sqrt(half + np.sqrt(half**2 - (r**2 + x**2) * (p**2 + q**2)))
    flows = PowerFlow(feeder).solve(np.stack([0 * p, p], axis=1), np.stack([0 * q, q], axis=1))
    assert np.allclose(flows.voltage[:, 1], expected, atol=1e-9)
    amperes = np.hypot(p, q) / expected / (np.sqrt(3.0) * 0.4)
    assert np.allclose(flows.current[:, 0], amperes, atol=1e-5)
    assert np.allclose(flows.loading[:, 0], amperes / 100.0, atol=1e-7)
    assert np.allclose(flows.losses, 3.0 * 0.16 * amperes**2 / 1000.0, atol=1e-6)
    assert np.array_equal(flows.transformer, np.zeros(4)), "there is none"


def test_the_greatest_load_is_found_and_what_is_beyond_it_is_refused():
    """A load behind a resistance r takes at most v0^2 / (4 r), where the voltage is a half."""
    flows = PowerFlow(Feeder(("a", "b"), (Line("a", "b", 0.16, 0.0),), 0.4)).solve(
        [[0.0, share * 250.0] for share in (0.99, 0.999, 1.001, 1.1, 10.0, 1e300)], np.zeros((6, 2))
    )
    assert flows.voltage[0, 1] == pytest.approx(0.55, abs=1e-8)
    assert flows.converged.tolist() == [True, *flows.converged[1:2].tolist(), False, False, False, False]
    for part in (flows.voltage, flows.current, flows.loading, flows.losses, flows.slack_p, flows.slack_q):
        assert np.isnan(part[2:]).all() and not np.isnan(part[0]).any()
    assert flows.iterations[2:].tolist() == [0, 0, 0, 0]


def test_a_scenario_has_the_same_bits_whatever_it_is_solved_with(monkeypatch):
    monkeypatch.setattr(solver, "PARALLEL_FROM", 1)
    feeder = random_feeder(*GRIDS[3], seed=5)
    p, q = scenarios(feeder, np.random.default_rng(5), 77)
    together = PowerFlow(feeder).solve(p, q)
    assert 0 < together.converged.sum() < 77
    threaded = PowerFlow(feeder, threads=3)
    others = [PowerFlow(feeder).solve(p[k : k + 1], q[k : k + 1]) for k in range(77)]
    for name in ("voltage", "current", "losses", "slack_q", "iterations"):
        whole = getattr(together, name)
        assert np.array_equal(getattr(threaded.solve(p, q), name), whole, equal_nan=True)
        assert np.array_equal(np.concatenate([getattr(one, name) for one in others]), whole, equal_nan=True)
    threaded.close()


def test_no_scenarios_are_no_flows():
    flows = PowerFlow(baran_wu.feeder()).solve(np.zeros((0, 33)), np.zeros((0, 33)))
    assert flows.voltage.shape == (0, 33) and flows.current.shape == (0, 32)


def test_odd_loads_are_refused():
    for p, q, words in [
        (np.zeros(33), np.zeros(33), r"solve\(p\): got the shape \(33,\); give numbers \[B, 33\]"),
        (np.zeros((4, 32)), np.zeros((4, 33)), r"solve\(p\): got the shape \(4, 32\); give numbers \[B, 33\]"),
        (np.zeros((4, 33)), np.zeros((3, 33)), r"p is \[4, 33\] and q is \[3, 33\]"),
        (np.zeros((2, 33)), np.full((2, 33), np.nan), r"solve\(q\): scenario 0 has nan at the bus '1'"),
        (np.full((2, 33), np.inf), np.zeros((2, 33)), r"solve\(p\): scenario 0 has inf at the bus '1'"),
    ]:
        with pytest.raises(ConfigError, match=words):
            PowerFlow(baran_wu.feeder()).solve(p, q)


def test_odd_options_are_refused():
    for options in [{"threads": 0}, {"tolerance": 0.0}, {"tolerance": 0.1}, {"iterations": 0}]:
        with pytest.raises(ConfigError, match="threads and iterations must be >= 1, the tolerance > 0 and < 1e-3 pu"):
            PowerFlow(baran_wu.feeder(), **options)


def test_the_sweep_is_compiled_once_for_an_installation(monkeypatch):
    made = inspect(make("heron/BatteryGrid-v0")).program.compiled().module
    module = solver.kernel.__wrapped__()
    monkeypatch.setattr(solver, "kernel", lambda: module)
    folder = Path(module.__file__).parent
    assert folder == Path(made.__file__).parent, "where compiled rules are kept"
    PowerFlow(baran_wu.feeder()).solve(*np.zeros((2, 1, 33)))
    assert list((folder / "__pycache__").glob(f"{module.__name__}.sweep-*.nbc")), "machine code lies beside it"
