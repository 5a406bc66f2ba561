"""The conformance kit: everything we ask of our own environments, asked of yours. `check_env(...)` or `heron check`."""

from heron_env.testing.check import Check, CheckReport, Finding, Remark, Status, Subject
from heron_env.testing.kit import CHECKS, check_env

__all__ = ["CHECKS", "Check", "CheckReport", "Finding", "Remark", "Status", "Subject", "check_env"]
