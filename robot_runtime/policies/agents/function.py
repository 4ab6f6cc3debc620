"""Plain functions: ``f(observations)`` returns whatever an agent of the Habitat challenges may return."""

from __future__ import annotations

from robot_runtime.policies.agents.habitat import HabitatInterface


class FunctionInterface(HabitatInterface):
    """See the module. It is not told when an episode begins."""

    kind = "function"
