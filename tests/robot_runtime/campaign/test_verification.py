from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from robot_runtime.campaign.ledger import read_heads
from robot_runtime.campaign.opening import open_campaign
from robot_runtime.campaign.plan import load_plan
from robot_runtime.campaign.robot_process import RunRequest
from robot_runtime.campaign.runner import Runner
from robot_runtime.campaign.sealing import create_key, signer
from robot_runtime.campaign.verification import Verification
from robot_runtime.errors import ConfigError
from tests.benchmarks.runtime.campaign_conditions import CONDITIONS
from tests.benchmarks.runtime.campaign_frauds import FRAUDS, Fraud, is_found
from tests.benchmarks.runtime.campaign_log_frauds import EXCHANGES, INSIDE, Exchange
from tests.benchmarks.runtime.simulated_campaigns import InlineRobot, run_campaign, run_judged_campaign, write_plan

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_judged_campaign(tmp_path_factory.mktemp("honest"), starts=2)


def test_an_honest_campaign_is_not_accused_and_its_copy_scores_the_same(honest: Path, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere" / "copy"
    shutil.copytree(honest, copy)
    there, here = Verification(copy), Verification(honest, load_plan(honest.parent / "plan.yaml"))
    assert there.findings == here.findings == []
    assert json.dumps(there.document()) == json.dumps(here.document())
    assert str(honest.parent) not in json.dumps(here.document())


@pytest.mark.parametrize("fraud", FRAUDS + CONDITIONS + INSIDE, ids=lambda fraud: fraud.name)
def test_a_fraud_is_found(honest: Path, tmp_path: Path, fraud: Fraud) -> None:
    assert is_found(fraud, honest, tmp_path / "copy")


@pytest.mark.parametrize("exchange", EXCHANGES, ids=lambda exchange: exchange.name)
def test_a_file_that_was_exchanged_meanwhile_is_found(tmp_path: Path, exchange: Exchange) -> None:
    assert exchange.is_found(tmp_path / "campaign")


def test_a_forged_history_is_found_by_its_signatures(tmp_path: Path) -> None:
    public = create_key(tmp_path / "key")
    plan = write_plan(tmp_path, 2, signer=public, test={"largest": 2})
    campaign = tmp_path / "campaign"
    with pytest.raises(ConfigError, match="names a signer"):
        run_campaign(plan, campaign)
    with open_campaign(plan, campaign, signer(tmp_path / "key", public), tell=lambda _: None) as ledger:
        Runner(plan, ledger, lambda _: None, make_robot=InlineRobot).run()
    assert Verification(campaign).findings == []
    forged = next(fraud for fraud in FRAUDS if fraud.witnessed)
    unwitnessed = Fraud(forged.name, forged.commit)
    assert is_found(unwitnessed, campaign, tmp_path / "copy")


def test_a_key_of_somebody_else_does_not_sign(tmp_path: Path) -> None:
    create_key(tmp_path / "mine")
    with pytest.raises(ConfigError, match="not the key"):
        signer(tmp_path / "mine", create_key(tmp_path / "other"))


def test_a_head_is_a_number_and_a_hash() -> None:
    assert read_heads([f"3:{'a' * 64}"]) == {3: "a" * 64}
    with pytest.raises(ConfigError, match="not a head"):
        read_heads(["3:abc"])


class KilledAtOnce(InlineRobot):
    """A robot whose process dies twice right after it created the log."""

    left = 2

    def run(self, request: RunRequest) -> None:
        if self.left == 0:
            super().run(request)
            return
        self.left, self.attempt = self.left - 1, request.attempt
        folder = Path(request.folder)
        folder.mkdir(parents=True)
        (folder / "0000_arena_0.mcap").write_bytes(b"\x89MCAP0\r\n")
        self._channel.say("gone")


def test_equal_stubs_of_killed_runs_are_no_fraud(tmp_path: Path) -> None:
    run_campaign(write_plan(tmp_path, 1, test={"largest": 1}), tmp_path / "campaign", KilledAtOnce)
    found = Verification(tmp_path / "campaign")
    assert found.findings == []
    assert [one["kinds"] for one in found.document()["attempts"].values()][:2] != [[], []]
