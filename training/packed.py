"""Data of studies as JSON, packed: `zcat FILE` shows them."""

import gzip
import json
from pathlib import Path
from typing import Any


def load(path: Path) -> Any:
    """What a .json.gz holds."""
    return json.loads(gzip.decompress(path.read_bytes()))


def dumped(data: Any) -> bytes:
    """A .json.gz; the same bytes for the same data."""
    return gzip.compress((json.dumps(data) + "\n").encode(), 9, mtime=0)
