"""The contract as JSON Schema: `python -m heron_env.injection.schema` prints what is in docs/injection.schema.json."""

from __future__ import annotations

import json
from typing import Any

from pydantic.json_schema import models_json_schema

from heron_env.injection.contract import Request, Response


def schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of both bodies, under `$defs`: `Request` and `Response`."""
    _, told = models_json_schema([(Request, "validation"), (Response, "validation")], title="heron_env agent injection")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **told}


if __name__ == "__main__":
    print(json.dumps(schema(), indent=2, ensure_ascii=False))
