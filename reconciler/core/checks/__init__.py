"""Checks: small pure functions over facts, each with a stable id, that say what is so and what a person can do.

What fails and concerns a boot is a refusal of the plan; `fleet doctor` shows everything. A package of the user's can
add checks: an entry point of the group `fleet.checks` names a `Check`, a `NodeCheck`, or a tuple of them.
"""

from reconciler.core.checks.case import Case, Site
from reconciler.core.checks.check import ALWAYS, BOOT_ONLY, AnyCheck, Check, NodeCheck, Occasion
from reconciler.core.checks.finding import Finding, Result
from reconciler.core.checks.judging import Judge, Judgement
from reconciler.core.checks.registry import BUILT_IN, CHECKS, NODE_CHECKS
from reconciler.core.checks.silences import Silenced, Silences

__all__ = [
    "ALWAYS",
    "BOOT_ONLY",
    "BUILT_IN",
    "CHECKS",
    "NODE_CHECKS",
    "AnyCheck",
    "Case",
    "Check",
    "Finding",
    "Judge",
    "Judgement",
    "NodeCheck",
    "Occasion",
    "Result",
    "Silenced",
    "Silences",
    "Site",
]
