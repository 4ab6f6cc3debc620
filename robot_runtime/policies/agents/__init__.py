"""Unmodified agents of other projects, each in its own process; one module per kind of agent."""

from __future__ import annotations

from robot_runtime.policies.agents.function import FunctionInterface
from robot_runtime.policies.agents.gym import GymInterface
from robot_runtime.policies.agents.habitat import Habitat2019Interface, HabitatInterface
from robot_runtime.policies.agents.interface import Interface
from robot_runtime.policies.agents.robothor import RobothorInterface

INTERFACES: dict[str, type[Interface]] = {
    interface.kind: interface
    for interface in (HabitatInterface, Habitat2019Interface, RobothorInterface, GymInterface, FunctionInterface)
}
"""The word before an agent's name, as in ``habitat:module:Class`` -> its kind."""
