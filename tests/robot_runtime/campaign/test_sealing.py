from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import yaml
from mcap.reader import make_reader
from small_campaign import WrittenCampaign, plan
from websockets.sync.client import connect

from robot_runtime.campaign.plan import PlannedPolicy
from robot_runtime.campaign.report import write_report
from robot_runtime.campaign.robot_process import ContactCount, SupervisedPolicy
from robot_runtime.campaign.sealing import PacedPolicy, SealedPolicy, check_commitments, read_key, seal, served, unblind
from robot_runtime.campaign.verification import Verification
from robot_runtime.common.clock import SimulatedClock, seconds_to_ns
from robot_runtime.errors import ConfigError, LinkLost, PolicyError, RecordingError
from robot_runtime.policy import Observation, Policy, World
from robot_runtime.tasks.task import Task, load_task
from tests.benchmarks.runtime.simulated_campaigns import run_campaign, state_of, write_plan


class Talkative(Policy):
    name = "talkative"
    needs = ("depth",)

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error

    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        return

    def act(self, observation: Observation) -> str:  # type: ignore[override]
        if self.error is not None:
            raise self.error
        return "stop"

    def info(self) -> dict[str, str]:
        return {"i_am": "talkative"}


def test_a_sealed_plan_tells_nothing_and_the_key_is_its_owners(tmp_path: Path) -> None:
    key = tmp_path / "key.yaml"
    sealed = seal(plan(), key)
    text = yaml.safe_dump(sealed.document())
    assert "goal-follower" not in text
    assert "random" not in text
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert check_commitments(sealed, read_key(key).policies) == []
    with pytest.raises(RecordingError, match=r"key\.yaml"):
        seal(plan(), key)
    with pytest.raises(ConfigError, match="sealed already"):
        seal(sealed, tmp_path / "other.yaml")


def test_names_are_dealt_at_random_and_equal_policies_have_other_commitments(tmp_path: Path) -> None:
    dealt = set()
    for number in range(12):
        seal(plan(), tmp_path / f"{number}.yaml")
        dealt.add(read_key(tmp_path / f"{number}.yaml").policies["P1"].name)
    assert dealt == {"P1", "P2"}
    same = {"P1": {"spec": "random"}, "P2": {"spec": "random"}}
    sealed = seal(plan(policies=same), tmp_path / "same.yaml")
    assert len({policy.commitment for policy in sealed.policies.values()}) == 2


def test_another_policy_does_not_fit_the_commitment(tmp_path: Path) -> None:
    sealed = seal(plan(), tmp_path / "key.yaml")
    policies = read_key(tmp_path / "key.yaml").policies
    swapped = {"P1": policies["P2"], "P2": policies["P1"]}
    assert len(check_commitments(sealed, swapped)) == 2
    other = SealedPolicy("x", PlannedPolicy("oracle"), policies["P1"].salt)
    assert len(check_commitments(sealed, policies | {"P1": other})) == 1


def everything_in(folder: Path) -> Iterator[bytes]:
    """Names and contents of all files, and of logs what is in their compressed chunks."""
    for path in folder.rglob("*"):
        yield str(path.relative_to(folder)).encode()
        if path.is_file():
            yield path.read_bytes()
        if path.suffix == ".mcap":
            with path.open("rb") as file:
                reader = make_reader(file)
                yield from (message.data for _, _, message in reader.iter_messages())
                yield from (repr(one).encode() for one in reader.iter_metadata())
                yield repr(reader.get_summary()).encode()


@pytest.mark.slow  # servers and clients of two policies
def test_no_file_of_a_blind_campaign_tells_who_is_who_until_it_is_unblinded(tmp_path: Path) -> None:
    open_plan = write_plan(tmp_path, 2, test={"largest": 2})
    key_path = tmp_path / "key.yaml"
    sealed = seal(open_plan, key_path)
    with served(read_key(key_path), "127.0.0.1", 0, None, lambda _: None) as servers:
        addresses = {f"P{n}": f"ws://127.0.0.1:{server.port}" for n, server in enumerate(servers, 1)}
        document = sealed.document()
        for name, address in addresses.items():
            document["policies"][name]["server"] = address
        made = plan(**document)
        campaign = tmp_path / "campaign"
        assert run_campaign(made, campaign).reason in ("undecided", "all_run")
        greetings = []
        for address in addresses.values():
            with connect(address) as connection:
                greetings.append(connection.recv())
    secrets = [b"goal-follower", b"goal_follower", b"GoalFollower", b"baselines", b"blind:Random"]
    secrets += [one.salt.encode() for one in read_key(key_path).policies.values()]
    write_report(campaign, campaign / "report")
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    readable = [*everything_in(campaign), *greetings, (tmp_path / "plan.yaml").read_bytes()]
    assert [secret for secret in secrets for content in readable if secret in content] == []
    seen = b"".join(readable)
    assert b"sealed:P1" in seen  # which is in a compressed chunk
    assert b"P2" in b"".join(greetings)
    assert len({greeting.replace(b"P2", b"P1") for greeting in greetings}) == 1
    assert {kind for attempt in state_of(campaign).attempts.values() for kind in attempt.kinds} == set()
    unblind(campaign, read_key(key_path))
    assert Verification(campaign).findings == []
    unblinded = state_of(campaign).unblinded
    assert unblinded is not None
    assert {one["policy"]["spec"] for one in unblinded["policies"].values()} == {"goal-follower", "random"}


def test_a_campaign_is_unblinded_at_its_end_only(tmp_path: Path) -> None:
    sealed = seal(plan(), tmp_path / "key.yaml")
    campaign = WrittenCampaign(tmp_path / "campaign", sealed)
    campaign.ledger.close()
    with pytest.raises(ConfigError, match="not ended"):
        unblind(tmp_path / "campaign", read_key(tmp_path / "key.yaml"))


@pytest.mark.parametrize(
    "error", [PolicyError("talkative broke", "mend talkative"), ValueError("talkative"), SystemExit(3)]
)
def test_a_sealed_policys_errors_and_reasons_do_not_name_it(error: BaseException) -> None:
    with closing(SupervisedPolicy(Talkative(error), "P1", ContactCount(), commitment="c" * 64)) as policy:
        with pytest.raises(PolicyError, match="policy P1 failed") as caught:
            policy.act({"depth": np.zeros(1)})
        assert "talkative" not in str(caught.value)
        assert policy.info() == {}
        assert policy.source is not None
        assert policy.source.spec == "sealed:P1"


def test_a_sealed_policy_does_not_tell_its_task_or_memory() -> None:
    talkative = Talkative()
    talkative.task, talkative.follows = load_task("pointnav_quick"), True  # type: ignore[misc]
    for commitment, told in (("c" * 64, (None, False)), ("", (talkative.task, True))):
        policy = SupervisedPolicy(talkative, "P1", ContactCount(), commitment=commitment)
        assert (policy.task, policy.follows) == told


def test_a_lost_link_is_told_apart_from_a_fault_of_the_policy() -> None:
    policy = SupervisedPolicy(Talkative(LinkLost("ws://x: gone", "wait")), "P1", ContactCount(), commitment="c" * 64)
    with pytest.raises(LinkLost, match="policy server:"):
        policy.act({})


def test_a_run_ends_at_the_plans_number_of_contacts() -> None:
    contacts = ContactCount()
    policy = SupervisedPolicy(Talkative(), "P1", contacts, limit=2)
    policy.reset(load_task("pointnav_quick"), 0)
    contacts.contacts = 1
    assert policy.act({}) == "stop"
    contacts.contacts = 2
    with pytest.raises(PolicyError, match="contact limit"):
        policy.act({})


class Slow(Talkative):
    """A policy that takes a time to decide."""

    def __init__(self, clock: SimulatedClock, takes_s: float) -> None:
        super().__init__()
        self.clock, self.takes_s = clock, takes_s

    def act(self, observation: Observation) -> str:
        self.clock.sleep(self.takes_s)
        return "stop"


@pytest.mark.parametrize(("takes_s", "answers_after_s"), [(0.0, 0.05), (0.012, 0.05), (0.05, 0.05), (0.06, 0.1)])
def test_a_sealed_policy_answers_after_a_multiple_of_the_pace(takes_s: float, answers_after_s: float) -> None:
    clock = SimulatedClock(1_000_000)
    with closing(PacedPolicy(Slow(clock, takes_s), clock)) as policy:
        begun_ns = clock.now_ns()
        assert policy.act({}) == "stop"
        assert clock.now_ns() - begun_ns == seconds_to_ns(answers_after_s)
