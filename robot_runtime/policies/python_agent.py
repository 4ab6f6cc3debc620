"""Agents written in Python by users: ``package.module:Class`` or ``path/to/file.py:Class``.

The class is either a :class:`~robot_runtime.policy.Policy`, or an agent as the Habitat challenges define it
(habitat-lab ``core/agent.py``): ``reset()`` and ``act(observations)``, which returns a value
that :mod:`robot_runtime.policies.agents.habitat` lists. Such an agent is wrapped in :class:`HabitatAgent` and runs in
the runtime's process, without protection from its failures; ``habitat:module:Class`` runs it in its own process.
"""

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, runtime_checkable

import numpy as np
from typing_extensions import override

from robot_runtime.common.own_directory import OwnDirectory
from robot_runtime.errors import PolicyError, RuntimeFault
from robot_runtime.policies.agents.habitat import HabitatInterface
from robot_runtime.policies.agents.interface import InterfacePolicy
from robot_runtime.policies.isolation import remedy_for
from robot_runtime.policy import Observation, Policy, World
from robot_runtime.tasks.task import Task


@runtime_checkable
class HabitatStyleAgent(Protocol):
    """Structural type of habitat-lab's ``habitat.Agent``, which is not imported."""

    def reset(self) -> None:
        """Start an episode."""

    def act(self, observations: Observation) -> Any:
        """Return the next action."""


class HabitatAgent(InterfacePolicy):
    """Policy of an agent of the Habitat challenges.

    The interface has no seed and no task: the agent seeds itself, and ``needs`` is its attribute of that name, if any.
    """

    name = "habitat-agent"

    def __init__(self, agent: HabitatStyleAgent, name: str) -> None:
        super().__init__(HabitatInterface(name, {"needs": tuple(getattr(agent, "needs", ()))}))
        self._agent = agent

    @override
    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        super().reset(task, seed, world)
        try:
            self._agent.reset()
        except (Exception, SystemExit) as error:
            raise _raised(self.name, "reset()", error) from error

    @override
    def _returned(self, shown: dict[str, Any]) -> Any:
        try:
            # The runtime's arrays are read-only; agents written for a simulator may write into them.
            return self._agent.act({n: a.copy() if isinstance(a, np.ndarray) else a for n, a in shown.items()})
        except (Exception, SystemExit) as error:
            raise _raised(self.name, "act()", error) from error


def make_agent(name: str, imported: Callable[[], Any], arguments: Mapping[str, Any]) -> Policy:
    """Construct an agent. A directory that its import or constructor changes to is its own (:attr:`Policy.directory`).

    Raises:
        PolicyError: the agent cannot be found, imported, constructed or used; an argument is not a number, but its
            annotation is ``int`` or ``float``.
    """
    directory = OwnDirectory()
    with directory:
        factory = _checked(name, imported(), arguments)
        try:
            agent: object = factory(**arguments)
        except RuntimeFault:
            raise
        except (Exception, SystemExit) as error:
            raise _raised(name, "constructor", error) from error
    policy = _as_policy(agent, name)
    policy.directory = directory
    return policy


def check_agent(name: str, imported: Callable[[], Any], arguments: Mapping[str, Any]) -> None:
    """Check what :func:`make_agent` takes, without making the agent. Raises ``PolicyError``."""
    with OwnDirectory():
        _checked(name, imported(), arguments)


def class_of(spec: str) -> Any:
    """The class or factory that ``module:Class`` or ``file.py:Class`` names. Raises ``PolicyError``."""
    module_name, _, class_name = spec.rpartition(":")
    if not module_name or not class_name:
        raise PolicyError(f"agent {spec!r} is not of the form module:Class", "write package.module:Class")
    found = getattr(_import(spec, module_name), class_name, None)
    if not callable(found):
        raise PolicyError(
            f"agent {spec!r}: module {module_name!r} has no class {class_name!r}", "check the name after the colon"
        )
    return found


def _checked(spec: str, found: Any, arguments: Mapping[str, Any]) -> Any:
    """The class or factory, if it takes these arguments."""
    signature = inspect.signature(found)
    try:
        signature.bind(**arguments)
    except TypeError as error:
        raise PolicyError(
            f"agent {spec!r} cannot be made from arguments {sorted(arguments)}: {error}",
            f"its constructor is {getattr(found, '__name__', spec)}{signature}",
        ) from error
    _check_numbers(spec, signature, arguments)
    return found


def _as_policy(agent: object, spec: str) -> Policy:
    if isinstance(agent, Policy):
        return agent
    if isinstance(agent, HabitatStyleAgent):
        return HabitatAgent(agent, spec)
    raise PolicyError(
        f"agent {spec!r}: {type(agent).__name__} has no reset() and act()",
        "derive it from robot_runtime.policy.Policy, or give it habitat-lab's reset() and act(observations)",
    )


def _import(spec: str, module_name: str) -> ModuleType:
    try:
        if module_name.endswith(".py"):
            return _import_file(Path(module_name))
        return importlib.import_module(module_name)
    except FileNotFoundError as error:
        raise PolicyError(f"agent {spec!r}: {module_name}: no such file", "check the path before the colon") from error
    except ModuleNotFoundError as error:
        own = error.name is not None and (module_name == error.name or module_name.startswith(f"{error.name}."))
        raise PolicyError(
            f"agent {spec!r}: there is no module {error.name!r}",
            "put its folder on PYTHONPATH, or name the file: path/to/file.py:Class"
            if own
            else f"install the package that provides {error.name!r}",
        ) from error
    except (Exception, SystemExit) as error:
        raise _raised(spec, "import", error) from error


def _import_file(path: Path) -> ModuleType:
    resolved = path.resolve()
    if not resolved.is_file():
        raise FileNotFoundError(resolved)
    name = f"robot_runtime_agent_{resolved.stem}_{abs(hash(resolved)):x}"
    if name in sys.modules:
        return sys.modules[name]
    specification = importlib.util.spec_from_file_location(name, resolved)
    if specification is None or specification.loader is None:
        raise ImportError(f"{resolved} is not a Python source file")
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module  # dataclasses and pickle look a class's module up there
    try:
        specification.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _check_numbers(spec: str, signature: inspect.Signature, arguments: Mapping[str, Any]) -> None:
    kinds: dict[object, tuple[type, ...]] = {int: (int,), float: (int, float), "int": (int,), "float": (int, float)}
    for name, value in arguments.items():
        parameter = signature.parameters.get(name)
        kind = None if parameter is None else kinds.get(parameter.annotation)
        if kind is not None and not isinstance(value, kind):
            raise PolicyError(
                f"agent {spec!r}: argument {name}={value!r} is no {kind[-1].__name__}", "give it a number"
            )


def _raised(name: str, where: str, error: Exception | SystemExit) -> PolicyError:
    raised = f"{type(error).__name__}: {error}"
    return PolicyError(f"agent {name!r}: {where} raised {raised}", remedy_for(raised))
