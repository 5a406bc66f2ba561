"""The power-flow comparison: all of its cases solve the same scenarios."""

import numpy as np
import pytest

from benchmarks import baran_wu, power_flow
from benchmarks.case import Role, Setting
from heron_env.power_flow import PowerFlow


@pytest.mark.e2e
def test_ours_is_timed_alone_and_with_threads(monkeypatch):
    monkeypatch.setattr(power_flow, "SCENARIOS", 64)
    (comparison,) = power_flow.comparisons()
    cases = comparison.build(Setting(quick=True, threads=2))
    assert [case.name for case in cases if case.role is Role.OURS] == [power_flow.ONE, power_flow.THREADS]
    assert all(case.run(1e-3) > 0.0 for case in cases)
    for case in cases:
        case.close()


@pytest.mark.e2e
def test_power_grid_model_is_given_the_same_grid_and_loads():
    pgm = pytest.importorskip("power_grid_model", reason="the peer is in the extra 'dev': pip install -e '.[dev]'")
    p, q = power_flow.scenarios(8)
    update = power_flow.loads_of(pgm.initialize_array, p, q)
    found = pgm.PowerGridModel(power_flow.grid_of(pgm.initialize_array)).calculate_power_flow(
        update_data={"sym_load": update}, error_tolerance=1e-11, max_iterations=50
    )
    flows = PowerFlow(baran_wu.feeder()).solve(p, q)
    assert np.abs(found["node"]["u_pu"] - flows.voltage).max() < 1e-8
    assert 0.85 < flows.voltage.min() < 0.95
