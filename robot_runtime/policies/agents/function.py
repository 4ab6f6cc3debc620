"""Plain functions: ``f(observations)`` with the return values of the Habitat challenges' agents."""

from robot_runtime.policies.agents.habitat import HabitatInterface


class FunctionInterface(HabitatInterface):
    """Functions, which get no notice of an episode's start."""

    kind = "function"
