"""Sealed policies: their names are known to the holder of a key file, but not to those who run or judge a campaign.

The plan has a commitment to each policy's source, SHA-256 over source and a secret salt. The holder of the key, another
user or another computer, runs the policies behind servers which give only their sealed names. Unblinding publishes
sources and salts: anyone can then check the commitments.
"""

import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from typing_extensions import override

from robot_runtime.actions.timed import Decision
from robot_runtime.campaign.counting import digest
from robot_runtime.campaign.ledger import Ledger, Sign
from robot_runtime.campaign.plan import Plan, PlannedPolicy
from robot_runtime.campaign.robot_process import ContactCount, SupervisedPolicy
from robot_runtime.campaign.state import read_state
from robot_runtime.common import config
from robot_runtime.common.clock import Clock, SystemClock, seconds_to_ns
from robot_runtime.common.creating import creating
from robot_runtime.common.yaml_text import dump_yaml
from robot_runtime.errors import ConfigError
from robot_runtime.policies import load_source
from robot_runtime.policies.wrapper import PolicyWrapper
from robot_runtime.policy import Answer, Observation, Policy, World
from robot_runtime.servers.policy import PolicyServer, check_servable
from robot_runtime.tasks.task import Task, load_task


def write_secret(path: Path, text: str) -> None:
    """Write a new file for its owner's eyes only. Raises ``RecordingError``, also if it is there already."""
    with creating(path, fresh=True) as draft:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)


def create_key(path: Path) -> str:
    """Write a new private key, for its owner's eyes only, and return the public one as 64 hexadecimal digits.

    Raises:
        ConfigError: the library is not installed.
        RecordingError: the file cannot be written, or is there already.
    """
    key = _ed25519().Ed25519PrivateKey.generate()
    write_secret(path, key.private_bytes_raw().hex() + "\n")
    return str(key.public_key().public_bytes_raw().hex())


def signer(path: Path, public: str) -> Sign:
    """The signing function of a private key.

    Raises:
        ConfigError: the file is not a key, or another than the plan's.
    """
    library = _ed25519()
    try:
        key = library.Ed25519PrivateKey.from_private_bytes(bytes.fromhex(path.read_text(encoding="ascii").strip()))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{path}: not a private key: {error}", "make one with `robot-runtime campaign key`"
        ) from error
    if key.public_key().public_bytes_raw().hex() != public:
        raise ConfigError(f"{path}: is not the key of the plan's signer", "give that key, or name this one in the plan")
    return lambda data: str(key.sign(data).hex())


def is_signed(data: bytes, signature: str, public: str) -> bool:
    """Whether a signature over ``data`` is of the owner of a public key. Raises ``ConfigError`` without the library."""
    from cryptography.exceptions import InvalidSignature

    try:
        _ed25519().Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(bytes.fromhex(signature), data)
    except (InvalidSignature, ValueError):
        return False
    return True


def _ed25519() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise ConfigError(
            "signatures need the package cryptography; it is not installed", "pip install 'robot-runtime[signature]'"
        ) from error
    return ed25519


FIRST_PORT = 8800
PACE_S = 0.05
"""Answers of sealed policies take a multiple of this time. It is short compared with any action of a robot."""


@dataclass(frozen=True)
class SealedPolicy(config.Strict):
    """A sealed name in the key.

    Attributes:
        name: name that the organizer gave it.
        policy: its source.
        salt: secret, 64 hexadecimal digits.
        files: SHA-256 of the files that the source names; None where it names none.
    """

    name: str
    policy: PlannedPolicy
    salt: str
    files: str | None = None

    @property
    def commitment(self) -> str:
        """SHA-256 over all of it."""
        return digest(config.unparse(self))


@dataclass(frozen=True)
class Key(config.Strict):
    """Content of a key file.

    Attributes:
        campaign: name of the plan.
        task: task of the plan.
        policies: policies by sealed name.
    """

    campaign: str
    task: str
    policies: dict[str, SealedPolicy]


def seal(plan: Plan, key_path: Path, host: str = "127.0.0.1", first_port: int = FIRST_PORT) -> Plan:
    """Write the key of a plan with open policies, for its owner's eyes only, and return the sealed plan.

    Sealed names are dealt at random. Each policy is loaded once, so that one that is missing, does not fit the task or
    cannot be served is named now.

    Raises:
        ConfigError: a policy is sealed already.
        RecordingError: the key cannot be written, or is there already.
        RuntimeFault: a policy cannot be loaded, does not fit the task, or is one that needs the simulator's state.
    """
    task, names = plan.limited_task(), list(plan.policies)
    secrets.SystemRandom().shuffle(names)
    sealed: dict[str, SealedPolicy] = {}
    for number, name in enumerate(names, 1):
        policy = plan.policies[name]
        if policy.commitment:
            raise ConfigError(f"policy {name!r} is sealed already", "seal the plan with the policies' sources")
        with closing(load_source(policy.source)) as loaded:
            check_servable(loaded, task)
            files = None if loaded.source is None else loaded.source.digest
        sealed[f"P{number}"] = SealedPolicy(name, policy, secrets.token_hex(32), files)
    key = Key(plan.name, plan.task, sealed)
    write_secret(key_path, dump_yaml(config.unparse(key)))
    public = {
        name: PlannedPolicy(commitment=policy.commitment, server=f"ws://{host}:{first_port + number}")
        for number, (name, policy) in enumerate(sealed.items())
    }
    return replace(plan, policies=public, blind=True)


def read_key(path: Path) -> Key:
    """A key file. Raises ``ConfigError``."""
    return config.load(path, Key)


class PacedPolicy(PolicyWrapper):
    """A policy whose answers take a multiple of :data:`PACE_S`: small differences in speed do not tell who it is."""

    def __init__(self, inner: Policy, clock: Clock) -> None:
        super().__init__(inner, inner.name)
        self._clock = clock

    @override
    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        with self._paced():
            self.inner.reset(task, seed, world)

    @override
    def act(self, observation: Observation) -> Decision:
        with self._paced():
            return self.inner.act(observation)

    @override
    def answer(self, observation: Observation) -> Answer | None:
        with self._paced():
            return self.inner.answer(observation)

    @contextmanager
    def _paced(self) -> Iterator[None]:
        begun_ns, pace_ns = self._clock.now_ns(), seconds_to_ns(PACE_S)
        try:
            yield
        finally:
            taken_ns = self._clock.now_ns() - begun_ns
            self._clock.sleep_until(begun_ns + max(1, -(-taken_ns // pace_ns)) * pace_ns)


@contextmanager
def served(
    key: Key, host: str, first_port: int, token: str | None, on_error: Callable[[str], None]
) -> Iterator[list[PolicyServer]]:
    """Servers of all policies of a key, each with its sealed name, all with the same needs, at the same pace.

    Args:
        key: key of the campaign.
        host: host to listen on.
        first_port: port of the first policy's server; 0 for any free ones.
        token: token that robots must show; None for none.
        on_error: gets the messages of failed requests, for the holder of the key alone.

    Raises:
        PolicyChanged: a policy's files are not those that were sealed.
        RuntimeFault: a policy cannot be loaded, or is one that needs the simulator's state.
    """
    task = load_task(key.task)
    with ExitStack() as stack:
        policies = []
        for name, sealed in key.policies.items():
            source = replace(sealed.policy.source, digest=sealed.files)
            loaded = stack.enter_context(closing(load_source(source)))
            supervised = SupervisedPolicy(loaded, name, ContactCount(), commitment=sealed.commitment)
            policies.append(PacedPolicy(supervised, SystemClock()))
        needs = tuple(sorted({need for policy in policies for need in policy.needs}))
        servers = []
        for number, policy in enumerate(policies):
            policy.needs = needs  # type: ignore[misc]  # the sensors that it asks for would tell which it is
            address = (host, first_port + number if first_port else 0)
            server = PolicyServer(policy, task, address, token, on_error=on_error)
            servers.append(stack.enter_context(server))
        yield servers


def check_commitments(plan: Plan, policies: Mapping[str, SealedPolicy]) -> list[str]:
    """Contradictions between the commitments of a plan and the statement of an unblinding; empty for none."""
    problems = [
        f"policy {name}: is not the one to which the plan is committed"
        for name, planned in plan.policies.items()
        if name not in policies or policies[name].commitment != planned.commitment
    ]
    return problems + [f"policy {name}: is not in the plan" for name in policies if name not in plan.policies]


def sealed_policies(document: Any, where: str) -> dict[str, SealedPolicy]:
    """The policies of an unblinding's line. Raises ``ConfigError``."""
    return {str(name): config.parse(policy, SealedPolicy, where) for name, policy in dict(document).items()}


def unblind(folder: Path, key: Key) -> dict[str, SealedPolicy]:
    """Write who is who into a campaign's ledger, and return it.

    Raises:
        ConfigError: the campaign is not blind, has not ended, or is not the key's; or its ledger is signed.
        RuntimeFault: as :class:`Ledger`.
    """
    with Ledger(folder) as ledger:
        state = read_state(ledger.entries)
        problems = check_commitments(state.plan, key.policies)
        if problems:
            raise ConfigError(f"{folder}: {problems[0]}", "give the key with which this plan was sealed")
        if state.closed is None:
            raise ConfigError(f"{folder}: the campaign has not ended", "unblind it when it has")
        if state.unblinded is None:
            ledger.append("unblinded", policies={name: config.unparse(sealed) for name, sealed in key.policies.items()})
    return key.policies
