"""What is wrong with an object that an administrator wrote, as its condition `Active` says it."""

from admitter.api.base import Problem
from admitter.api.conditions import ActiveReason
from admitter.cache.views import Json, ObjectView

Defect = tuple[ActiveReason, str]
"""A reason, and a sentence."""


def raw(view: ObjectView) -> Json:
    """An object as its model reads it."""
    return {"metadata": {"name": view.name}, "spec": view.spec}


def sentence(found: list[Problem]) -> str:
    """All problems in one."""
    return "; ".join(str(problem) for problem in found)
