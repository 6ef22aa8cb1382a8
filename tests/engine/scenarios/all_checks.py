"""All checks of random scenarios."""

from tests.engine.scenarios.checks import Ending, Idle, Lawful, Promises, Quota, Reasons, Rebuilt
from tests.engine.scenarios.driver import Check
from tests.engine.scenarios.growth_checks import Extra
from tests.engine.scenarios.limits import CommonLimits, Limits


def checks() -> list[Check]:
    """One of each."""
    of_plans: list[Check] = [Quota(), Lawful(), Promises(), Ending(), Idle(), Rebuilt(), Reasons()]
    return [*of_plans, Limits(), CommonLimits(), Extra()]
