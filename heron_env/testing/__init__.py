"""The conformance kit, `check_env(...)` or `heron check`: everything we ask of our own environments, asked of yours.

For tests of your own: `inspect(env)` says what an environment holds; the module `clock` has the event clock's words.
"""

from heron_env.envs.decisions import Source
from heron_env.testing.check import Check, CheckReport, Finding, Remark, Status, Subject
from heron_env.testing.inspection import Inspection, inspect
from heron_env.testing.kit import CHECKS, check_env

__all__ = [
    "CHECKS", "Check", "CheckReport", "Finding", "Inspection", "Remark", "Source", "Status", "Subject", "check_env",
    "inspect",
]  # fmt: skip
