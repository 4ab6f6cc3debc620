"""Policies and agents, which map observations to actions, and their loading by name.

A package offers an agent under a name by an entry point::

    [project.entry-points."robot_runtime.agents"]
    gate-follower = "gatenav.agent:GateFollower"
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from typing_extensions import override

from robot_runtime.common.plugins import Registry
from robot_runtime.errors import ConfigError, PolicyChanged
from robot_runtime.policies.isolation import TIME_LIMIT_S, Isolation
from robot_runtime.policies.openers import OPENERS, PolicyOpener, python_file
from robot_runtime.policies.python_agent import check_agent, class_of, make_agent
from robot_runtime.policy import Policy, PolicySource, digest_of

AGENTS: Registry[Callable[..., Any]] = Registry("robot_runtime.agents", "agent")
"""The agents that installed packages offer: name -> class or factory of the policy, which takes its arguments."""


class _InProcess(PolicyOpener):
    """Opener of Python agents within the runtime, by a function that imports the class or factory of a name."""

    def __init__(self, imported: Callable[[str], Any], file: Callable[[str], Path | None]) -> None:
        self._imported, self._file = imported, file

    @override
    def open(self, spec: str, isolation: Isolation | None, arguments: dict[str, Any]) -> Policy:
        return make_agent(spec, lambda: self._imported(spec), arguments)

    @override
    def check(self, spec: str, arguments: Mapping[str, Any]) -> None:
        check_agent(spec, lambda: self._imported(spec), arguments)

    @override
    def file(self, spec: str) -> Path | None:
        return self._file(spec)


_OFFERED = _InProcess(AGENTS.load, lambda _: None)
_PYTHON = _InProcess(class_of, python_file)


def opener_of(spec: str) -> PolicyOpener:
    """The opener of a policy's name: the one place that decides what a name means.

    Raises ``PluginError`` if the package that offers the scheme cannot be used. A name without meaning is an error when
    the opener is used.
    """
    if spec in AGENTS:
        return _OFFERED
    scheme, _, rest = spec.partition(":")
    if rest and (opener := OPENERS.find(scheme)) is not None:
        return opener
    if ":" in spec and not (rest.startswith("//") or scheme in OPENERS or Path(spec).exists()):
        return _PYTHON
    from robot_runtime.policies.files import FileOpener

    return FileOpener(AGENTS.names())


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
    if isolation is not None and not opener.own_process:
        schemes = [scheme for scheme, other in OPENERS.usable().items() if other.own_process]
        raise ConfigError(
            f"agent {name!r} runs in the runtime's process, without an interpreter and a time limit of its own",
            f"write its kind before its name, as in habitat:{name}; kinds: {', '.join(schemes)}",
        )
    return opener.open(name, isolation, arguments)


def check_source(source: PolicySource) -> None:
    """Check that a policy can be found and takes its arguments, without loading a model or reaching a server.

    Raises:
        PolicyError: there is no such agent, it cannot be imported, or it does not take these arguments.
        RuntimeFault: the manifest of a package cannot be read.
    """
    opener_of(source.spec).check(source.spec, source.values())


def load_source(source: PolicySource) -> Policy:
    """Load the policy of a command line or a log, and set its ``source``.

    Args:
        source: if it has a digest, the loaded files must have the same.

    Raises:
        PolicyChanged: a file that the source names is missing or has another digest.
        RuntimeFault: those of :func:`load_policy`.
    """
    if source.digest is not None and (file := opener_of(source.spec).file(source.spec)) and not file.exists():
        raise PolicyChanged(
            f"{file}: the policy that the log names does not exist",
            "restore it, or change to the folder from which it was run, or name another one with --policy",
        )
    digest = source_digest(source)
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
    return digest_of(opener_of(source.spec).content(source.spec), source.arguments)
