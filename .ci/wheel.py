"""The installed wheel is whole and its environments run on the core dependencies alone."""

import importlib.metadata
import sys
from pathlib import Path

import heron_env
from heron_env.registry import make, registered

checkout, listing = Path(sys.argv[1]), Path(sys.argv[2])
package = Path(heron_env.__file__).parent
assert checkout not in package.parents, f"imported from the checkout: {package}"
assert heron_env.__version__ == importlib.metadata.version("heron_env")

missing = [name for name in listing.read_text().split() if not (package.parent / name).is_file()]
assert not missing, f"in the repository but not in the wheel: {missing}"
for name in ("py.typed", "profiles.npz", "optima.json"):
    assert any(package.rglob(name)), f"the wheel has no {name}"
bytes_shipped = sum(path.stat().st_size for path in (package / "zoo").rglob("*") if path.is_file())
assert bytes_shipped <= 1_200_000, f"checkpoints in the wheel: {bytes_shipped:,} bytes"

assert registered(), "no environment is registered"
for name in registered():
    env = make(name)
    env.reset(seed=0)
    for _ in range(3):
        observations, rewards, *_ = env.step({agent: env.action_space(agent).sample() for agent in env.agents})
    assert all(env.observation_space(agent).contains(vector) for agent, vector in observations.items())
    env.close()
    print(f"{name}: {len(rewards)} agents stepped from the wheel")
# Not scipy: numba looks for it by itself.
foreign = {"torch", "stable_baselines3", "matplotlib", "jinja2", "pandas"} & {m.partition(".")[0] for m in sys.modules}
assert not foreign, f"stepping needed {foreign}, which the core does not install"
