"""The generated source is short, is printed without numba, and is what is compiled."""

import re
import subprocess
import sys

from heron_env import make
from heron_env.testing import inspect

PROGRAM = """
import sys
from heron_env import make
from heron_env.testing import inspect
print(inspect(make("heron/BatteryGrid-v0")).program.text())
assert "numba" not in sys.modules
"""
BATTERY = """\
@leaf
def Battery_apply_action(t, a, rewards, b, i, tab, gather, g, dt, time):
    o = tab[i, 0]
    charge = BatteryChargeFeature(t[b, o], t[b, o + 1])
    r = Battery_apply_action_rule(charge, shown(a[b, tab[i, 1]:tab[i, 2]]))
    if refused(r):
        return 1
    t[b, o] = within(r, 0.0, 1.0)
    return 0"""


def test_the_source_is_short_and_reads_without_numba():
    text = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout
    functions = re.findall(r"^def (\w+)", text, re.MULTILINE)
    assert functions == [
        "Battery_apply_action", "Battery_compute_local_reward", "affect_lane", "affect", "apply", "close_lane", "close",
    ]  # fmt: skip
    assert text.split("\n\n\n")[1] == BATTERY


def test_it_is_what_is_compiled():
    inspected = inspect(make("heron/BatteryGrid-v0"))
    lanes = inspected.lanes(1)
    assert lanes.text == inspected.program.text()
    assert lanes.loops.module.__file__ is not None
    with open(lanes.loops.module.__file__, encoding="utf-8") as file:
        assert file.read().rpartition("\n# ")[0] == lanes.text  # the last line seals it
