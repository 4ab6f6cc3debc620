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

from typing_extensions import override

from robot_runtime.actions.timed import Decision
from robot_runtime.common.own_directory import OwnDirectory
from robot_runtime.errors import PolicyError, RuntimeFault
from robot_runtime.policies.agents.habitat import HabitatInterface
from robot_runtime.policies.isolation import remedy_for
from robot_runtime.policy import Answer, ChunkedPolicy, Observation, Policy, World
from robot_runtime.tasks.task import Task


@runtime_checkable
class HabitatStyleAgent(Protocol):
    """Structural type of habitat-lab's ``habitat.Agent``, which is not imported."""

    def reset(self) -> None:
        """Start an episode."""

    def act(self, observations: Observation) -> Any:
        """Return the next action."""


class HabitatAgent(ChunkedPolicy):
    """Policy of an agent of the Habitat challenges.

    The interface has no seed and no task: the agent seeds itself, and ``needs`` is its attribute of that name, if any.
    """

    name = "habitat-agent"

    def __init__(self, agent: HabitatStyleAgent, name: str) -> None:
        self.name = name  # type: ignore[misc]  # one wrapper class stands for many agents
        self.needs = tuple(getattr(agent, "needs", ()))  # type: ignore[misc]
        self._agent = agent
        self._interface = HabitatInterface(name, {"needs": self.needs})
        self._task: Task | None = None
        self._answer: Answer | None = None

    @override
    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        self._task, self._answer, self.rest = task, None, ()
        try:
            self._agent.reset()
        except (Exception, SystemExit) as error:
            raise _raised(self.name, "reset()", error) from error

    @override
    def answered(self, observation: Observation) -> tuple[Decision, ...]:
        """The agent's decisions.

        Raises:
            PolicyError: the agent raised, or returned something that is not an action.
            UnknownAction: the action is none of habitat-lab's, or none of the task's.
        """
        if self._task is None:
            raise PolicyError(f"agent {self.name!r} has no episode", "call reset() first")
        try:
            # The runtime's arrays are read-only; agents written for a simulator may write into them.
            shown = self._interface.agent_observation({n: a.copy() for n, a in observation.items()}, self._task)
            returned = self._agent.act(shown)
        except (Exception, SystemExit) as error:
            raise _raised(self.name, "act()", error) from error
        decisions, self._answer = self._interface.decisions(returned, self._task)
        return decisions

    @override
    def answer(self, observation: Observation) -> Answer | None:
        return self._answer


def make_agent(name: str, imported: Callable[[], Any], arguments: Mapping[str, Any]) -> Policy:
    """Construct an agent. A directory that its import or constructor changes to is its own (:attr:`Policy.directory`).

    Args:
        name: name of the agent, for messages.
        imported: function that imports and returns its class or factory.
        arguments: arguments of its constructor.

    Raises:
        PolicyError: the agent cannot be found, imported, constructed or used; an argument is not a number, but its
            annotation is ``int`` or ``float``.
    """
    directory = OwnDirectory()
    with directory:
        agent = _construct(name, _checked(name, imported(), arguments), arguments)
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


def _construct(spec: str, factory: Any, arguments: Mapping[str, Any]) -> object:
    try:
        instance: object = factory(**arguments)
    except RuntimeFault:
        raise
    except (Exception, SystemExit) as error:
        raise _raised(spec, "constructor", error) from error
    return instance


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
