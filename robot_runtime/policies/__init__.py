"""Policies and agents, which map observations to actions, and their loading by name.

A package offers an agent under a name by an entry point::

    [project.entry-points."robot_runtime.agents"]
    gate-follower = "gatenav.agent:GateFollower"
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from robot_runtime.common.plugins import Registry
from robot_runtime.errors import ConfigError, PolicyChanged, PolicyError
from robot_runtime.policies.agents import INTERFACES
from robot_runtime.policies.agents.policy import AgentPolicy
from robot_runtime.policies.agents.process import TIME_LIMIT_S, Isolation
from robot_runtime.policies.package.files import is_package, read_manifest, read_manifest_bytes
from robot_runtime.policies.package.policy import load_package_policy
from robot_runtime.policies.python_agent import check_agent, check_python, load_python, make_agent
from robot_runtime.policy import Policy, PolicySource, digest_of

AGENTS: Registry[Callable[..., Any]] = Registry("robot_runtime.agents", "agent")
"""The agents that installed packages offer: name -> class or factory of the policy, which takes its arguments."""


def has_own_process(name: str) -> bool:
    """Whether ``name`` is that of an unmodified agent with its kind, which runs in its own process."""
    kind, _, spec = name.partition(":")
    return kind in INTERFACES and bool(spec)


def is_remote(name: str) -> bool:
    """Whether ``name`` is the URL of a policy server."""
    return name.startswith(("ws://", "wss://"))


def load_policy(name: str, isolation: Isolation | None = None, /, **arguments: Any) -> Policy:
    """Load an agent of :data:`AGENTS`, or one of the user.

    Args:
        name: one of

            ==============================  ===================================================================
            a name of ``AGENTS``            an agent that an installed package offers
            ``module:Class``, ``x.py:Class``  a :class:`Policy` or an agent of Habitat's kind, within the runtime
            ``habitat:module:Class``        an unmodified agent in a process of its own; ``habitat`` or another
                                            of ``agents.INTERFACES``
            ``ws://host:port``              a policy server (:mod:`robot_runtime.policies.remote`)
            a path                          a policy package
            ==============================  ===================================================================

        isolation: of an agent in a process of its own; None for the defaults.
        arguments: of its constructor; of a package see
            :func:`robot_runtime.policies.package.policy.load_package_policy`, of a server
            :class:`robot_runtime.policies.remote.client.RemotePolicy`.

    Raises:
        PolicyError: there is no such agent, it cannot be imported, or it does not take these arguments.
        ConfigError: ``isolation`` is given for a policy without a process of its own.
        RuntimeFault: those of :func:`~robot_runtime.policies.package.policy.load_package_policy`.
    """
    if has_own_process(name):
        kind, _, spec = name.partition(":")
        return AgentPolicy(INTERFACES[kind], spec, arguments, isolation)
    if isolation is not None:
        raise ConfigError(
            f"agent {name!r} runs in the runtime's process, without an interpreter and a time limit of its own",
            f"write its kind before its name, as in habitat:{name}; kinds: {', '.join(INTERFACES)}",
        )
    if name in AGENTS:
        return make_agent(name, lambda: AGENTS.load(name), arguments)
    if is_remote(name):
        return _remote(name, **arguments)
    if is_package(path := Path(name)):
        return load_package_policy(path, **arguments)
    if ":" in name:
        return load_python(name, **arguments)
    if path.suffix == ".zip" or len(path.parts) > 1:
        read_manifest_bytes(path)  # raises, because it is no package
    raise _no_such_agent(name)


def check_source(source: PolicySource) -> None:
    """Check that a policy can be found and takes its arguments, without loading a model or reaching a server.

    Raises:
        PolicyError: there is no such agent, it cannot be imported, or it does not take these arguments.
        RuntimeFault: the manifest of a package cannot be read.
    """
    name, file = source.spec, _file_of(source.spec)
    if name in AGENTS:
        check_agent(name, lambda: AGENTS.load(name), source.values())
    elif has_own_process(name):
        if file is not None and not file.is_file():
            raise PolicyError(f"agent {name!r}: {file}: no such file", "check the path before the colon")
    elif is_remote(name):
        return
    elif ":" in name and not is_package(Path(name)):
        check_python(name, source.values())
    elif is_package(path := Path(name)) or path.suffix == ".zip" or len(path.parts) > 1:
        read_manifest(path)
    else:
        raise _no_such_agent(name)


def _no_such_agent(name: str) -> PolicyError:
    names = AGENTS.names()
    close = difflib.get_close_matches(name, names, n=1)
    return PolicyError(
        f"there is no agent {name!r}",
        f"did you mean {close[0]!r}?" if close else f"use one of {', '.join(names)}, module:Class or file.py:Class",
    )


def load_source(source: PolicySource) -> Policy:
    """Load the policy of a command line or a log, and set its ``source``.

    Args:
        source: if it has a digest, the loaded files must have the same.

    Raises:
        PolicyChanged: a file that the source names is missing or has another digest.
        RuntimeFault: those of :func:`load_policy`.
    """
    digest, file = _digest(source), _file_of(source.spec)
    if source.digest is not None and file is not None and not file.exists():
        raise PolicyChanged(
            f"{file}: the policy that the log names does not exist",
            "restore it, or change to the folder from which it was run, or name another one with --policy",
        )
    if source.digest is not None and digest != source.digest:
        raise PolicyChanged(
            f"{source.spec} is not the version in the log: that had SHA-256 {source.digest[:12]}, this has "
            f"{digest[:12] if digest else 'none of its files'}",
            "to use this version, name it with --policy",
        )
    isolation = None
    if source.python is not None or source.timeout_s is not None:
        python = None if source.python is None else Path(source.python)
        isolation = Isolation(python, TIME_LIMIT_S if source.timeout_s is None else source.timeout_s)
    policy = load_policy(source.spec, isolation, **source.values())
    policy.source = replace(source.public(), digest=digest)
    return policy


def _digest(source: PolicySource) -> str | None:
    """Digest of the source's files; of a package that of its manifest, which holds the hashes of its other files."""
    path = _file_of(source.spec)
    package = path is not None and is_package(path)
    return digest_of(read_manifest_bytes(path) if path is not None and package else path, source.arguments)


def _file_of(name: str) -> Path | None:
    """The package or the Python file of a policy's name; None of an agent that ships, a module or a server."""
    if name in AGENTS or is_remote(name):
        return None
    if ":" not in name:
        return Path(name)
    file = name.rpartition(":")[0].rpartition(":")[2]
    return Path(file) if file.endswith(".py") else None


def _remote(url: str, **arguments: Any) -> Policy:
    try:
        from robot_runtime.policies.remote.client import RemotePolicy
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"{url}: remote policies need {error.name!r}", "pip install 'robot-runtime[remote]'"
        ) from error
    known = list(inspect.signature(RemotePolicy).parameters)[1:]
    unknown = [name for name in arguments if name not in known]
    if unknown:
        raise ConfigError(f"{url}: a remote policy has no argument {', '.join(unknown)}", f"use {', '.join(known)}")
    return RemotePolicy(url, **arguments)
