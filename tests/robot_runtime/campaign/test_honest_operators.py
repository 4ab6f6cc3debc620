"""What an honest operator's campaign may have: it is noted, with its size, and nobody is accused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from small_campaign import WrittenCampaign, facts, plan

from robot_runtime.campaign import ledger as ledgers
from robot_runtime.campaign.contents import read_published
from robot_runtime.campaign.ledger import MAX_BYTES, Ledger
from robot_runtime.campaign.messages import send, take_alone
from robot_runtime.campaign.report import write_report
from robot_runtime.campaign.state import read_state, tail_probability, weigh
from robot_runtime.campaign.status import read_status, verified_status
from robot_runtime.campaign.verification import Verification
from robot_runtime.cli.main import run_command
from robot_runtime.errors import ConfigError, RecordingError
from robot_runtime.recording.log_files import LEDGER_FILE
from tests.benchmarks.runtime.campaign_conditions import CONDITIONS
from tests.benchmarks.runtime.campaign_frauds import FRAUDS, Forger, Line
from tests.benchmarks.runtime.simulated_campaigns import run_campaign, state_of, write_plan


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("honest")
    run_campaign(write_plan(folder, 1, test={"largest": 1}), folder / "campaign")
    return folder / "campaign"


def changed(honest: Path, folder: Path, change: Callable[[list[Line]], None]) -> Verification:
    shutil.copytree(honest, folder)
    forger = Forger(folder)
    change(forger.lines)
    forger.write()
    return Verification(folder)


def _shift(lines: list[Line], hours: int) -> None:
    """The wall clock of all lines after the session's is ahead, as after a suspension or NTP's first step."""
    from datetime import datetime, timedelta

    for line in lines:
        line["at"] = (datetime.fromisoformat(line["at"]) + timedelta(hours=hours)).isoformat()


def test_a_suspended_laptop_and_ntps_first_step_are_notes(honest: Path, tmp_path: Path) -> None:
    def suspend(lines: list[Line]) -> None:
        # A campaign that paused before its last line, and whose computer then slept for eight hours.
        _shift(lines[-1:], 8)

    found = changed(honest, tmp_path / "copy", suspend)
    assert found.findings == []
    assert any("+28" in note for note in found.notes)


def test_a_clock_that_was_set_back_and_mended_is_a_note(honest: Path, tmp_path: Path) -> None:
    def set_back(lines: list[Line]) -> None:
        paused = lines[-1] | {"kind": "paused", "why": "the clock was set back"}
        for name in ("reason", "answer"):
            paused.pop(name)
        _shift([paused], -1)
        lines.insert(len(lines) - 1, paused)

    found = changed(honest, tmp_path / "copy", set_back)
    assert found.findings == []
    assert any("-3" in note for note in found.notes)


def test_a_computer_that_was_up_for_weeks_is_none_of_the_auditors_business(honest: Path, tmp_path: Path) -> None:
    def be_up_for_30_days(lines: list[Line]) -> None:
        for line in lines:
            line["up_s"] += 30 * 86_400.0

    assert changed(honest, tmp_path / "copy", be_up_for_30_days).findings == []


def test_time_since_the_start_counts_suspension() -> None:
    import time

    up_s = ledgers._up_s()
    assert up_s == pytest.approx(time.clock_gettime(time.CLOCK_BOOTTIME), abs=5.0)


def test_a_clock_is_compared_with_the_latest_line(tmp_path: Path) -> None:
    times = iter(["2030-01-01T10:00:00+00:00", "2030-01-01T09:00:00+00:00", "2030-01-01T09:30:00+00:00"])
    with Ledger(tmp_path, now=lambda: next(times)) as ledger:
        ledger.append("event")
        ledger.append("event")
        with pytest.raises(ConfigError, match="1800 s behind"):
            ledger.check_clock()


def test_an_older_campaign_is_readable_and_what_it_lacks_is_said(honest: Path, tmp_path: Path) -> None:
    def older(lines: list[Line]) -> None:
        del lines[0]["contents"], lines[0]["rules"]

    found = changed(honest, tmp_path / "copy", older)
    assert found.findings == []
    assert any("did not write it down" in line for line in found.unchecked)


def test_status_and_report_compute_what_the_last_line_only_claims(honest: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(honest, copy)
    claim = next(fraud for fraud in CONDITIONS if fraud.name == "the last line claims another answer")
    claim.commit(Forger(copy))
    status = read_status(copy)
    assert "P2 is better" not in status.answer
    assert "another one" in status.answer
    write_report(copy, tmp_path / "report")
    page = (tmp_path / "report" / "index.html").read_text()
    assert "P2 is better" not in page
    assert "contradictions were found" in page
    assert "Not checked: " in page


def test_the_status_is_that_of_the_logs(honest: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(honest, copy)
    fraud = next(fraud for fraud in FRAUDS if fraud.name == "a result is edited")
    honestly = verified_status(copy)
    assert honestly.answer == read_status(copy).answer
    fraud.commit(Forger(copy))
    assert "P2 1.000" in read_status(copy).answer
    assert run_command(["campaign", "status", str(copy)]) == 0
    shown = capsys.readouterr().out
    assert honestly.answer in shown
    assert "contradictions in its folder" in shown


def test_a_lost_log_proves_nothing(honest: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(honest, copy)
    shutil.rmtree(copy / "logs")
    found = Verification(copy)
    assert {one.what for one in found.findings} >= {"left out"}
    assert found.document()["starts"] == []


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b'{"n":9,"kind":"event","n":9}\n', "not a line"),
        (b'{"n":9,"kind":"event","x":NaN}\n', "not a line"),
        (b"[" * 10_000 + b"\n", "not a line"),
        (b"\xff\xfe\n", "not a line"),
        (b'{"n":9,"kind":["event"]}\n', "not a line"),
        (b'{"n":9,"kind":"verdict"}\n', "field"),
        (b'{"n":9,"kind":"event","at":"noon"}\n', "field"),
        (b"\n", "not a line"),
    ],
)
def test_any_strange_line_is_a_finding(honest: Path, tmp_path: Path, line: bytes, words: str) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(honest, copy)
    with (copy / LEDGER_FILE).open("ab") as file:
        file.write(line)
    assert any(words in one.detail for one in Verification(copy).findings)


def test_a_huge_ledger_is_refused(honest: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(honest, copy)
    with (copy / LEDGER_FILE).open("r+b") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(RecordingError, match="more than 32 MB"):
        Verification(copy)


def test_runs_that_were_killed_are_tries(tmp_path: Path) -> None:
    campaign = WrittenCampaign(tmp_path, plan(), rules=2)
    for _ in range(3):
        campaign.run_next(facts(kind="killed"), recovered=True)
    assert campaign.state.given_up == [0]


def test_kills_that_fall_on_one_policy_are_no_accident(tmp_path: Path) -> None:
    campaign = WrittenCampaign(tmp_path, plan())
    while (due := campaign.state.next_run(0)) is not None:
        tries = sum(one.policy == "P2" for one in campaign.state.by_start.get(due[0].number, ()))
        campaign.run_next(facts(kind="killed" if due[1] == "P2" and tries < 5 else None), recovered=True)
    findings, _ = weigh(campaign.state)
    assert len(findings) == 1
    assert "30 of 36 runs of P2 did not count, of the others 0 of 6" in findings[0]


def test_kills_of_both_policies_are_no_finding(tmp_path: Path) -> None:
    campaign = WrittenCampaign(tmp_path, plan())
    killed: set[str] = set()
    while (due := campaign.state.next_run(0)) is not None:
        name = f"{due[0].number}-{due[1]}"
        campaign.run_next(facts(kind=None if name in killed else "killed"), recovered=True)
        killed.add(name)
    assert weigh(campaign.state) == ([], [])


def test_the_probability_is_fishers() -> None:
    assert tail_probability(12, 12, 12, 16) == pytest.approx(1 / 1820)
    assert tail_probability(0, 5, 3, 10) == 1.0


def test_who_knows_the_result_cannot_make_a_run_be_repeated(honest: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(honest, copy)
    forger = Forger(copy)
    del forger.lines[-1]
    forger.write()
    name = next(iter(state_of(copy).attempts))
    send(copy, {"kind": "event", "attempt": name, "what": "device_fault", "by": "Eve"})
    assert "result is known" in take_alone(copy)[0]
    assert read_state(ledgers.read_ledger(copy)).attempts[name].events == []


def test_a_published_plan_holds_the_contents(honest: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "published.yaml"
    assert run_command(["campaign", "plan", str(honest.parent / "plan.yaml"), "--publish", str(out)]) == 0
    assert "task, SHA-256" in capsys.readouterr().out
    published, contents = read_published(out)
    assert contents is not None
    found = Verification(honest, published, contents=contents)
    assert found.findings == []
    assert found.notes == []
    first = json.loads((honest / LEDGER_FILE).read_bytes().splitlines()[0])
    assert contents.document() == first["contents"]


def test_a_clock_that_was_set_back_after_the_last_run_began_is_a_note(honest: Path, tmp_path: Path) -> None:
    found = changed(honest, tmp_path / "copy", lambda lines: _shift(lines[-1:], -1))
    assert found.findings == []
    assert any("no run began since" in note for note in found.notes)


def test_a_run_that_begins_while_the_clock_is_behind_is_a_finding(honest: Path, tmp_path: Path) -> None:
    begun = [json.loads(line)["kind"] for line in (honest / LEDGER_FILE).read_bytes().splitlines()].index("begun")
    found = changed(honest, tmp_path / "copy", lambda lines: _shift(lines[begun:], -1))
    assert any("a run began while the clock was" in one.detail for one in found.findings)
