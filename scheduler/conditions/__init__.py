"""Conditions: the safe subset of Python expressions that a task's `if` may hold.

Pure. Must not know tasks, states or files; it gets names and values.
"""

from scheduler.conditions.evaluation import evaluate
from scheduler.conditions.syntax import ConditionError, ConditionProblem, Reference, check, names

__all__ = ["ConditionError", "ConditionProblem", "Reference", "check", "evaluate", "names"]
