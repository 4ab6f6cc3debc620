"""Supervision of a policy during a run: limits of the plan, sealed name, and errors that do not name it."""

from typing import Any

from typing_extensions import override

from robot_runtime.actions.timed import Decision
from robot_runtime.campaign.counting import LINK_LOST
from robot_runtime.errors import LinkLost, PolicyError, UnknownAction
from robot_runtime.policies.wrapper import PolicyWrapper
from robot_runtime.policy import Observation, Policy, PolicySource, World
from robot_runtime.records import EpisodeHeader, StepRecord, Subscriber
from robot_runtime.scoring.failure_causes import CONTACT_LIMIT
from robot_runtime.tasks.task import Task


class ContactCount(Subscriber):
    """Number of actions of the present episode that ended in contact.

    Attributes:
        contacts: so far.
    """

    def __init__(self) -> None:
        self.contacts = 0

    @override
    def on_episode_start(self, header: EpisodeHeader) -> None:
        self.contacts = 0

    @override
    def on_step(self, record: StepRecord) -> None:
        self.contacts += record.result is not None and record.result.collided


class SupervisedPolicy(PolicyWrapper):
    """A policy under the plan's name, whose run ends at the plan's number of contacts.

    Args:
        policy: policy that decides; the caller closes it.
        name: name in logs.
        contacts: counter that gets the environment's steps.
        limit: number of contacts that ends a run; None for none.
        commitment: commitment of a sealed policy: its source in logs. What it says of its decisions is not logged, its
            errors do not name it, and its task and its kind of memory are not told. Empty for a policy that is not
            sealed.
    """

    def __init__(
        self, policy: Policy, name: str, contacts: ContactCount, limit: int | None = None, commitment: str = ""
    ) -> None:
        super().__init__(policy, name)
        self._contacts, self._limit, self._sealed = contacts, limit, bool(commitment)
        if commitment:
            self.source = PolicySource(f"sealed:{name}", digest=commitment)
            self.task, self.follows = None, False  # type: ignore[misc]

    @override
    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        try:
            self.inner.reset(task, seed, world)
        except (Exception, SystemExit) as error:
            raise self._named(error) from error

    @override
    def act(self, observation: Observation) -> Decision:
        if self._limit is not None and self._contacts.contacts >= self._limit:
            raise PolicyError(
                f"{CONTACT_LIMIT}: contact {self._contacts.contacts}, at {self._limit} the plan ends a run",
                "see the plan's limits",
            )
        try:
            return self.inner.act(observation)
        except (Exception, SystemExit) as error:
            raise self._named(error) from error

    @override
    def info(self) -> dict[str, Any]:
        return {} if self._sealed else self.inner.info()

    def _named(self, error: BaseException) -> BaseException:
        """The error with what the facts of the run need, and without what names a sealed policy."""
        if isinstance(error, LinkLost):
            return LinkLost(f"{LINK_LOST} {error.message}", error.remedy)
        if isinstance(error, UnknownAction) or not self._sealed:
            return error
        return PolicyError(f"policy {self.name} failed", "the holder of the key finds why in the server's output")
