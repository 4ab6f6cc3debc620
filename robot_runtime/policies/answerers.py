"""Services that answer questions in place of an agent, by the scheme of their address: ``http://localhost:8080/v1``.

A package adds a scheme by an entry point of its name, whose object is a function ``(policy, url, model, timeout_s)``
that returns the policy with the service's answers::

    [project.entry-points."robot_runtime.answerers"]
    openpi = "openpi_client.answerer:answered"
"""

from collections.abc import Callable

from robot_runtime.common.plugins import Registry
from robot_runtime.errors import ConfigError
from robot_runtime.policy import Policy

ANSWERERS: Registry[Callable[[Policy, str, str, float], Policy]] = Registry(
    "robot_runtime.answerers", "scheme of answering services", methods=("__call__",)
)


def answered(policy: Policy, url: str, model: str, timeout_s: float) -> Policy:
    """A policy whose answers come from a service.

    Raises:
        ConfigError: the address has no scheme that is known, or the service does not take these arguments.
    """
    scheme, separator, _ = url.partition("://")
    if not separator:
        raise ConfigError(f"--answerer {url!r} is not an address", "write it like http://localhost:8080/v1")
    return ANSWERERS.load(scheme)(policy, url, model, timeout_s)
