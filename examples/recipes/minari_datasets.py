"""Minari: episodes of a rule under a network as a dataset for each group; a policy cloned from what is read back."""

# needs: heron_env minari[hdf5]==0.5.4 pillow

import os
import tempfile
from importlib.metadata import version

import numpy as np

os.environ["MINARI_DATASETS_PATH"] = tempfile.mkdtemp()  # leave it out, and they go to Minari's own folder
import minari

from heron_env import ScheduleConfig, make
from heron_env.adapters import write_minari

ID, OPTIONS = "heron/BatteryGrid-v0", {"num_batteries": 3, "scope": "owner"}
print("versions:", *(f"{name}=={version(name)}" for name in ("heron_env", "minari", "h5py", "numpy")))
numbers = np.random.default_rng(0)


def charging(vector: np.ndarray) -> np.ndarray:
    """A rule that charges, more the emptier the battery is, and now and then does something else."""
    return np.clip(3.0 * (1.0 - vector[:1]) + 0.2 * numbers.standard_normal(1), -1.0, 1.0)


network = ScheduleConfig(msg_delay=0.4, act_delay=1.0, loss=0.1)
about = {"author": "me", "algorithm_name": "charging"}
write_minari(ID, {"*": charging}, "grid/charging", episodes=20, schedule=network, about=about, **OPTIONS)

dataset = minari.load_dataset("grid/charging/battery-v0")
episodes = list(dataset.iterate_episodes())
seen, done = (np.concatenate(part) for part in zip(*((e.observations[:-1], e.actions) for e in episodes), strict=True))
line = np.linalg.lstsq(np.column_stack([seen[:, 0], np.ones(len(seen))]), done[:, 0], rcond=None)[0]
cloned = {"*": lambda vector: np.clip(line[:1] * vector[0] + line[1], -1.0, 1.0)}
env = make(ID, **OPTIONS)
chance = {"*": lambda vector: numbers.uniform(-1.0, 1.0, 1)}
random, found = (env.run_event_driven(p, seed=99, schedule=network).returns["system_agent"] for p in (chance, cloned))
print(f"result: random {random:.1f}, cloned {found:.1f} from {len(seen)} decisions of {len(episodes)} episodes")
