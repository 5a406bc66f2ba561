"""`heron` in this process, as tests ask it."""

import json
from typing import Any

from typer.testing import CliRunner

from heron_env.cli import app


def heron(*words: object, code: int | None = 0, **how: Any) -> Any:
    """What the command did. `code`: how it must end, None: anyhow; `how`: of CliRunner.invoke."""
    done = CliRunner().invoke(app, [*map(str, words)], **how)
    assert code is None or done.exit_code == code, done.output
    return done


def as_json(*words: object, code: int = 0) -> Any:
    """What it prints with --json, parsed: nothing else may be on stdout."""
    return json.loads(heron(*words, "--json", code=code).stdout)
