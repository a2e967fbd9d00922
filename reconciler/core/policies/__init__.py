"""Policies: what a fleet's owners forbid beyond what the planner knows. Predicates over a made plan.

A policy is asked of a plan that has something to do; what it says is laid over the plan as objections and changes none
of its steps. A mandatory objection keeps `fleet apply` from beginning (exit 3); an advisory one is only shown.
"""

from reconciler.core.objection import Level, Objection
from reconciler.core.policies.judging import judged
from reconciler.core.policies.policy import Policy, PolicyContext

__all__ = ["Level", "Objection", "Policy", "PolicyContext", "judged"]
