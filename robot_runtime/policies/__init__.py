"""Policies and agents, which map observations to actions, and their loading by name.

A package offers an agent under a name by an entry point::

    [project.entry-points."robot_runtime.agents"]
    gate-follower = "gatenav.agent:GateFollower"
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from robot_runtime.common.plugins import Registry
from robot_runtime.errors import ConfigError, PolicyChanged, PolicyError
from robot_runtime.policies.isolation import TIME_LIMIT_S, Isolation
from robot_runtime.policies.openers import OPENERS, opener_of, python_file
from robot_runtime.policies.python_agent import check_agent, check_python, load_python, make_agent
from robot_runtime.policy import Policy, PolicySource, digest_of

AGENTS: Registry[Callable[..., Any]] = Registry("robot_runtime.agents", "agent")
"""The agents that installed packages offer: name -> class or factory of the policy, which takes its arguments."""


def load_policy(name: str, isolation: Isolation | None = None, /, **arguments: Any) -> Policy:
    """Load an agent of :data:`AGENTS`, or one of the user.

    Args:
        name: one of

            ==============================  ===================================================================
            a name of ``AGENTS``            an agent that an installed package offers
            ``module:Class``, ``x.py:Class``  a :class:`Policy` or an agent of Habitat's kind, within the runtime
            ``habitat:module:Class``        an unmodified agent in a process of its own; ``habitat`` or another
                                            scheme of :mod:`robot_runtime.policies.openers`
            ``ws://host:port``              a policy server (:mod:`robot_runtime.policies.remote`)
            a path                          a policy package
            ==============================  ===================================================================

        isolation: interpreter and time limit of an agent in a process of its own; None for the defaults.
        arguments: arguments of its constructor; of a package see
            :func:`robot_runtime.policies.package.policy.load_package_policy`, of a server
            :class:`robot_runtime.policies.remote.client.RemotePolicy`.

    Raises:
        PolicyError: there is no such agent, it cannot be imported, or it does not take these arguments.
        ConfigError: ``isolation`` is given for a policy without a process of its own.
        RuntimeFault: those of :func:`~robot_runtime.policies.package.policy.load_package_policy`.
    """
    opener = opener_of(name)
    if isolation is not None and not (opener is not None and opener.own_process):
        schemes = [scheme for scheme, other in OPENERS.usable().items() if other.own_process]
        raise ConfigError(
            f"agent {name!r} runs in the runtime's process, without an interpreter and a time limit of its own",
            f"write its kind before its name, as in habitat:{name}; kinds: {', '.join(schemes)}",
        )
    if opener is not None:
        return opener.open(name, isolation, arguments)
    if name in AGENTS:
        return make_agent(name, lambda: AGENTS.load(name), arguments)
    from robot_runtime.policies.package.files import is_package, read_manifest_bytes

    if is_package(path := Path(name)):
        from robot_runtime.policies.package.policy import load_package_policy

        return load_package_policy(path, **arguments)
    if ":" in name:
        return load_python(name, **arguments)
    if path.suffix == ".zip" or len(path.parts) > 1:
        read_manifest_bytes(path)  # raises, because it is not a package
    raise _no_such_agent(name)


def check_source(source: PolicySource) -> None:
    """Check that a policy can be found and takes its arguments, without loading a model or reaching a server.

    Raises:
        PolicyError: there is no such agent, it cannot be imported, or it does not take these arguments.
        RuntimeFault: the manifest of a package cannot be read.
    """
    name, opener = source.spec, opener_of(source.spec)
    if name in AGENTS:
        check_agent(name, lambda: AGENTS.load(name), source.values())
        return
    if opener is not None:
        opener.check(name)
        return
    from robot_runtime.policies.package.files import is_package, read_manifest

    if ":" in name and not is_package(Path(name)):
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
    digest, file = source_digest(source), _file_of(source.spec)
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


def source_digest(source: PolicySource) -> str | None:
    """Digest of the source's files; of a package that of its manifest, which holds the hashes of its other files.

    Raises:
        RuntimeFault: the manifest of a package cannot be read.
    """
    path = _file_of(source.spec)
    if path is None:
        return digest_of(None, source.arguments)
    from robot_runtime.policies.package.files import is_package, read_manifest_bytes

    return digest_of(read_manifest_bytes(path) if is_package(path) else path, source.arguments)


def _file_of(name: str) -> Path | None:
    """The package or the Python file of a policy's name; None of an agent of :data:`AGENTS`, a module or a server."""
    if name in AGENTS:
        return None
    if (opener := opener_of(name)) is not None:
        return opener.file(name)
    return python_file(name) if ":" in name else Path(name)
