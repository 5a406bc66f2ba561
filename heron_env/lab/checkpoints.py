"""Trained policies wherever they lie: a run folder, one file of numpy arrays, or a file that this package ships.

A checkpoint is an `.npz` of what acts: float32 arrays, called as torch's state dict calls them behind the number of
their group, and the run's configuration as JSON (bytes in `config`). It is read without torch and without unpickling,
and decides bit for bit as the run folder does.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

from heron_env.core.policy import Policies
from heron_env.errors import ConfigError, RunFolderError, did_you_mean
from heron_env.files.reading import read
from heron_env.files.writing import write
from heron_env.given import path_of
from heron_env.lab.policies import ENDING, SHIPPED
from heron_env.lab.runs import Run, RunFolder, config_in
from heron_env.lab.trained import array_of
from heron_env.trust import Trust, listed, trusting

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv

MOST: Final = 300_000
"""Bytes of a checkpoint."""
CONFIG: Final = "config"
ACTS: Final = ("mlp_extractor.policy_net.", "action_net.", "log_std", "memory.")
"""How the names of what acts begin in a state dict; the others value."""
ZOO: Final = Path(__file__).resolve().parents[1] / "zoo"
"""What is shipped: the board's table, and for each of its worlds the checkpoints of the first training seed."""
CHECKPOINTS: Final = "heron_board_checkpoints.tar"
"""Those of all seeds, an asset of each release."""


@dataclass(frozen=True)
class Checkpoint(Run):
    """A trained policy in one file, as `RunFolder.save` writes it."""

    arrays: Mapping[str, NDArray[np.float32]]
    data: bytes

    @classmethod
    def open(cls, path: str | Path) -> Checkpoint:
        """Read and check it. Raises RunFolderError."""
        path = path_of(path, "Checkpoint.open(path)")
        try:
            arrays = _arrays(data := read(path, MOST))
            text = arrays.pop(CONFIG).tobytes()
            if strange := [name for name, array in arrays.items() if array.dtype != np.float32]:
                raise ValueError(f"{strange[0]!r:.60} holds {arrays[strange[0]].dtype}, no float32")
        except FileNotFoundError as error:
            raise RunFolderError(f"{path} does not exist; correct the path, or export the run again") from error
        except Exception as error:  # a damaged archive may end in anything
            raise RunFolderError(
                f"{path} is no checkpoint ({error}); copy it again, or export the run again"
            ) from error
        found = cls(path, config_in(text, path), arrays, data)
        _ = found.actors
        return found

    def digest(self) -> str:
        """128 bits, in hexadecimal, of the whole file."""
        return hashlib.blake2b(self.data, digest_size=16).hexdigest()

    def weights(self, group: str) -> dict[str, NDArray[np.float32]]:
        """Arrays of what acts in a group, by the names of torch's state dict."""
        begin = f"{list(self.config.groups).index(group)}."
        return {name.removeprefix(begin): a for name, a in self.arrays.items() if name.startswith(begin)}


def _arrays(data: bytes) -> dict[str, NDArray[Any]]:
    """Of an `.npz` that is not packed. Raises ValueError and whatever zipfile and numpy have to say."""
    with NpzFile(io.BytesIO(data)) as archive:  # np.load would look for a pickle, too
        if archive.zip is None or sum(member.file_size for member in archive.zip.infolist()) > len(data):
            raise ValueError("it is packed, and may be of any size")
        if CONFIG not in archive:
            raise ValueError("it has no configuration")
        return {name: archive[name] for name in archive.files}


def export_checkpoint(run_dir: str | Path, file: str | Path) -> Checkpoint:
    """Write what acts of a run as one file of at most 300,000 bytes; the same run gives the same bytes.

    Args:
        run_dir: a run folder, or another checkpoint.
        file: where to, ending in .npz.

    Raises:
        ConfigError: another ending.
        RunFolderError: it is no run, or the policy is too large.
    """
    path, run = path_of(file, "save(file)"), open_run(run_dir)
    if path.suffix != ENDING:
        raise ConfigError(f"{path}: give the file an ending that says what it is, say {path.stem or 'policy'}{ENDING}")
    arrays: dict[str, Any] = {CONFIG: np.frombuffer(run.config.model_dump_json().encode(), np.uint8)}
    for number, group in enumerate(run.config.groups):
        weights = run.weights(group)
        arrays |= {f"{number}.{name}": array_of(weights[name]) for name in weights if name.startswith(ACTS)}
    np.savez(stream := io.BytesIO(), **arrays)
    if len(data := stream.getvalue()) > MOST:
        raise RunFolderError(
            f"{run.path}: its policy takes {len(data):,} bytes, {MOST:,} at the most; train a smaller one"
        )
    write(path, data)
    return Checkpoint.open(path)


def shipped() -> dict[str, Path]:
    """The shipped checkpoints by name, `shipped:heron/Spread-v0/ppo`."""
    return {
        f"{SHIPPED}{path.relative_to(ZOO).with_suffix('').as_posix()}": path for path in sorted(ZOO.rglob(f"*{ENDING}"))
    }


def open_run(run_dir: str | Path) -> Run:
    """A run folder, a checkpoint, or a shipped one by its name. Raises RunFolderError, ConfigError for such a name."""
    text = str(run_dir)
    if text.startswith(SHIPPED):
        if text not in (offered := shipped()):
            if re.sub(r"-seed[1-9]\d*$", "", text) in offered:
                raise ConfigError(
                    f"{text!r:.90}: one seed of each is shipped; unpack {CHECKPOINTS} of the release and give the file "
                    f"{text.removeprefix(SHIPPED)}{ENDING}"
                )
            raise ConfigError(f"{text!r:.90}: not shipped; see `heron board list`.{did_you_mean(text, offered)}")
        return Checkpoint.open(offered[text])
    return Checkpoint.open(text) if text.endswith(ENDING) else RunFolder.open(run_dir)


def load_policy(
    run_dir: str | Path,
    deterministic: bool = True,
    seed: int = 0,
    *,
    env: HeronEnv | None = None,
    trust: Trust = (),
) -> Policies:
    """Load the trained policies of a run, for `run_synchronous` and `run_event_driven`.

    The run's environment is built with the run's options, to check that the policies fit it and to get the rule that
    they correct. So it must be registered or trusted. The weights are read without unpickling. Policies with memory
    have an entry for each agent, each with its own memory; batches refuse them.

    Args:
        run_dir: a run folder that `train` wrote; a checkpoint, `policy.npz`; or the name of a shipped policy,
            "shipped:heron/Spread-v0/ppo" (`heron board list` lists them).
        deterministic: True: the most likely actions; False: drawn from the policy, keyed by `seed` and the decision.
        seed: of these draws.
        env: an environment of this kind; then none is built.
        trust: the environment that the folder names, "module:function", if it is not registered.

    Returns:
        Policies by group, or by agent if they have memory or correct different rules.

    Raises:
        RunFolderError: a file is missing, of another schema version, or does not fit the environment.
        Untrusted: the environment is neither registered nor trusted, and no other is given.

    >>> policies = load_policy("shipped:heron/Spread-v0/ppo")
    >>> list(policies)
    ['agent']
    """
    with trusting(*listed(trust)):
        return dict(open_run(run_dir).policies(deterministic, seed, env))
