"""Plain functions: ``f(observations)`` with the return values of the Habitat challenges' agents."""

from __future__ import annotations

from robot_runtime.policies.agents.habitat import HabitatInterface


class FunctionInterface(HabitatInterface):
    """Functions, which get no notice of an episode's start."""

    kind = "function"
