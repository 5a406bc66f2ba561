"""The conformance kit: everything we ask of our own environments, asked of yours. `check_env(...)` or `heron check`."""

from heron_env.testing.findings import Check, CheckReport, Finding, Remark, Status
from heron_env.testing.kit import CHECKS, check_env
from heron_env.testing.subject import Subject

__all__ = ["CHECKS", "Check", "CheckReport", "Finding", "Remark", "Status", "Subject", "check_env"]
