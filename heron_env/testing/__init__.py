"""Conformance tests for environments: `check_env(...)` or `heron check`.

For your own tests: `inspect(env)` shows the content of an environment; module `clock` has the event clock's parts.
"""

from heron_env.envs.decisions import Source
from heron_env.testing.check import Check, CheckReport, Finding, Remark, Status, Subject
from heron_env.testing.inspection import Inspection, inspect
from heron_env.testing.kit import CHECKS, check_env

__all__ = [
    "CHECKS", "Check", "CheckReport", "Finding", "Inspection", "Remark", "Source", "Status", "Subject", "check_env",
    "inspect",
]  # fmt: skip
