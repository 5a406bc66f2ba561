"""Ask a server of ours everything that its OpenAPI allows and forbids: `python tests/serve/contract.py SCHEMATHESIS`.

The argument is the command `schemathesis`, which has an environment of its own. Exit code 0: nothing was found.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from serve.service import Service

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
CHECKS += ",negative_data_rejection,unsupported_method,missing_required_header"


def main(schemathesis: str, examples: str = "60") -> int:
    """The exit code of schemathesis."""
    with tempfile.TemporaryDirectory() as folder, Service(Path(folder), "--allow-loopback") as service:
        for _ in range(2):
            status, made = service.ask("POST", "/simulations", {"env": "heron/BatteryGrid-v0"})
            assert status == 201, made
        command = [
            schemathesis, "run", f"{service.url}/openapi.json", "--seed", "0", "--max-examples", examples,
            "--checks", CHECKS, "--phases", "examples,coverage,fuzzing,stateful", "--workers", "1",
            "--generation-database", "none",
        ]  # fmt: skip
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
