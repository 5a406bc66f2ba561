"""One of the other processes: `python -m heron_env.testing.child FOLDER HASH_SEED` leaves a record there."""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path

from heron_env.testing.processes import NOT_BUILT
from heron_env.testing.recording import event_driven, synchronous
from heron_env.testing.subject import load


def main(folder: str, hash_seed: str) -> int:
    """Build, run in both clocks, and leave the record in the folder."""
    reference, options, seed, steps = pickle.loads((Path(folder) / "order").read_bytes())
    try:
        factory = load(reference)
    except Exception as error:  # noqa: BLE001  told to the process that asked
        print(f"another process can't import {reference}: {error}")
        return NOT_BUILT
    record = synchronous(factory(**options), seed, steps) + event_driven(factory(**options), seed, steps)
    (Path(folder) / f"record-{hash_seed}").write_text(json.dumps(record), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
