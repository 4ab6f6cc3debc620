"""Sessions of campaigns in one process: people who are asked, judge, report and stop; what prevents a session."""

from __future__ import annotations

import csv
import gzip
import io
import json
import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from chromium import browser

from robot_runtime.actions.timed import Decision
from robot_runtime.campaign.ledger import read_ledger
from robot_runtime.campaign.messages import give_verdict, run_of, send
from robot_runtime.campaign.opening import open_campaign
from robot_runtime.campaign.outcomes import values
from robot_runtime.campaign.report import write_report
from robot_runtime.campaign.robot_process import RunRequest
from robot_runtime.campaign.runner import Runner
from robot_runtime.campaign.state import State
from robot_runtime.campaign.status import read_status
from robot_runtime.campaign.verification import Verification
from robot_runtime.cli.main import run_command
from robot_runtime.errors import ConfigError, DeviceFault, EpisodeError, RecordingError
from robot_runtime.policy import Observation, Policy, World
from robot_runtime.scenes.objects import ObjectPose
from robot_runtime.tasks.task import Task
from tests.benchmarks.runtime.simulated_campaigns import InlineRobot, run_campaign, state_of, write_plan

pytestmark = pytest.mark.slow  # each runs a campaign


class FlatBattery(InlineRobot):
    """Its charge is low at the beginning, and full once it has been asked for."""

    charges = (0.3, 0.9)

    def ask_status(self) -> None:
        self._channel.say("status", battery=self.charges[1])

    def answers(self) -> list[Mapping[str, Any]]:
        found = [{**one, "battery": self.charges[0]} if one["is"] == "ready" else one for one in super().answers()]
        self._take([one for one in found if one["is"] == "ready"])
        return found


class Refusing(InlineRobot):
    """A robot that is refused the first time."""

    refused = False

    def run(self, request: RunRequest) -> None:
        if not self.refused:
            self.refused, self.attempt = True, request.attempt
            self._channel.say("refused", error="DeviceFault", message="the camera is unplugged", remedy="plug it in")
            return
        super().run(request)


class Draining(InlineRobot):
    """A robot that loses a quarter of its charge before each run, and is charged as soon as that is asked for."""

    charge = 1.0

    def run(self, request: RunRequest) -> None:
        assert self._session is not None
        self.charge -= 0.25
        self._session.robot.base._battery_fraction = self.charge  # type: ignore[attr-defined]  # the fake's constant
        super().run(request)

    def ask_status(self) -> None:
        self.charge = 1.0
        self._channel.say("status", battery=self.charge)


class Faulty(InlineRobot):
    """A robot whose runs all fail."""

    def run(self, request: RunRequest) -> None:
        self.attempt = request.attempt
        self._channel.say("ended", error="DeviceFault", message="the base is silent", remedy="check its cable")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "campaigns" / "small"


def test_a_campaign_whose_runs_fail_ends_with_an_error(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("robot_runtime.campaign.robots.RobotProcess", Faulty)
    write_plan(tmp_path, 2, test={"largest": 2})
    command = ["campaign", "run", str(tmp_path / "plan.yaml"), "--out", str(folder)]
    for _ in ("runs", "is repeated"):
        assert run_command(command) == EpisodeError.exit_code
        said = " ".join(capsys.readouterr().err.split())
        assert "2 of 2 starts were given up" in said
    run_command(["campaign", "verify", str(folder)])
    assert "start 1 was given up: " in capsys.readouterr().out


def test_a_robot_with_a_low_battery_asks_to_be_charged_and_goes_on_by_itself(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("robot_runtime.campaign.runner.STATUS_S", 0.0)
    plan = write_plan(tmp_path, 1, test={"largest": 1})
    run_campaign(plan, folder, FlatBattery)
    entries = read_ledger(folder)
    asked = next(entry for entry in entries if entry.kind == "asked")
    assert "charge it, its battery is at 30 %" in asked["text"]
    assert next(entry for entry in entries if entry.kind == "answered")["by"] == "the battery"
    assert asked.n < next(entry.n for entry in entries if entry.kind == "begun")


def test_a_robot_drives_to_its_starts_and_asks_only_for_its_charge_and_for_ways_that_it_does_not_find(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("robot_runtime.campaign.runner.STATUS_S", 0.0)
    plan = write_plan(tmp_path, 2, test={"largest": 2}, robots=[{"robot": "fake", "placing": "drive"}])
    assert run_campaign(plan, folder, Draining).reason == "undecided"
    entries = read_ledger(folder)
    answers = {entry["ask"]: entry["by"] for entry in entries if entry.kind == "answered"}
    asked = [(entry["what"], answers[entry.n]) for entry in entries if entry.kind == "asked"]
    assert asked[0] == ("charge", "the battery")
    assert set(asked[1:]) <= {("place", "the robot")}  # a robot without physics may leave the room
    errors_m = [one.facts.placement_m for one in state_of(folder).attempts.values() if one.facts is not None]
    assert len(errors_m) == 4
    assert max(error_m or 0.0 for error_m in errors_m) < 0.1
    assert Verification(folder).findings == []


def test_what_people_say_on_the_page_or_the_command_line_is_in_the_ledger(tmp_path: Path, folder: Path) -> None:
    plan = write_plan(tmp_path, 1, test={"largest": 1}, judging={"judges": 1})
    page: list[str] = []

    def judge_first(state: State) -> None:
        ended = [one for one in state.attempts.values() if one.ended is not None]
        if len(ended) == 1 and not page:
            log = folder / ended[0].ended["log"]  # type: ignore[index]
            page.append(give_verdict(log, "Ada", judgment="success", note="at the door"))
            page.append(give_verdict(log, "Ada", note="decided at steps 2", intervention="takeover"))

    assert run_campaign(plan, folder, on_change=judge_first).reason == "to_judge"
    assert page == ["handed to the process that runs the campaign"] * 2
    first, second = state_of(folder).attempts.values()
    log = folder / second.ended["log"]  # type: ignore[index]
    assert run_of(log) == (folder.resolve(), second.name)
    assert run_command(["verdict", str(log), "--by", "Ada", "--fail"]) == 0
    assert run_command(["campaign", "judge", str(folder), first.name, "--by", "Ben", "--fail"]) == 0
    assert run_command(["campaign", "note", str(folder), first.name, "near the door", "--by", "Ben"]) == 0
    with pytest.raises(ConfigError, match="do not record poses"):
        give_verdict(log, "Ada", objects={"mug": ObjectPose((0.0, 0.0, 0.0))})

    assert run_campaign(plan, folder).reason == "undecided"
    assert "has ended" in give_verdict(log, "Ben", judgment="success")
    first, second = state_of(folder).attempts.values()
    assert {by: said.success for by, said in first.judges.items()} == {"Ada": True, "Ben": False}
    assert first.kinds == ["takeover"]
    assert first.remarks == [("Ada", "at the door"), ("Ada", "decided at steps 2"), ("Ben", "near the door")]
    assert {by: said.success for by, said in second.judges.items()} == {"Ada": False}
    assert Verification(folder).findings == []


def test_a_session_with_a_page_waits_for_judges_as_long_as_for_other_answers(tmp_path: Path, folder: Path) -> None:
    rules = {"judging": {"judges": 1}, "help": {"patience_minutes": 0.001}}
    plan, said = write_plan(tmp_path, 1, test={"largest": 1}, **rules), list[str]()
    with open_campaign(plan, folder, tell=said.append) as ledger:
        assert Runner(plan, ledger, said.append, make_robot=InlineRobot, judged=True).run().reason == "to_judge"
    assert "wait for their judges" in said[-1]


def test_a_verdict_on_a_run_that_has_not_ended_waits_for_its_end(tmp_path: Path, folder: Path) -> None:
    def judge_early(state: State) -> None:
        for attempt in state.unfinished:
            send(folder, {"kind": "verdict", "attempt": attempt.name, "by": "Ada", "success": True})

    plan = write_plan(tmp_path, 1, test={"largest": 1}, judging={"judges": 1})
    assert run_campaign(plan, folder, on_change=judge_early).reason == "undecided"
    assert not [entry for entry in read_ledger(folder) if entry.kind == "refused_message"]


def test_what_only_a_person_can_mend_is_asked_for_and_posted(tmp_path: Path, folder: Path) -> None:
    posted: list[dict[str, Any]] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    with HTTPServer(("127.0.0.1", 0), Hook) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        plan = write_plan(tmp_path, 1, test={"largest": 1}, help={"hook": f"http://127.0.0.1:{server.server_port}"})

        def answer(state: State) -> None:
            for ask in state.asks:
                send(folder, {"kind": "answer", "ask": ask, "by": "Ada"})

        run_campaign(plan, folder, Refusing, answer)
        server.shutdown()
    assert "the camera is unplugged; plug it in" in posted[0]["asks"]
    assert {one["head"] for one in posted if "head" in one} <= {entry["chain"] for entry in read_ledger(folder)}
    assert [entry["by"] for entry in read_ledger(folder) if entry.kind == "answered"] == ["Ada"]
    assert state_of(folder).progress(0).done


def test_nobody_answering_ends_the_session_and_loses_nothing(tmp_path: Path, folder: Path) -> None:
    plan = write_plan(tmp_path, 1, test={"largest": 1}, help={"patience_minutes": 0.001})
    with pytest.raises(DeviceFault, match="no answer came"):
        run_campaign(plan, folder, Refusing)
    assert run_campaign(plan, folder).reason == "undecided"


def test_a_person_stops_a_campaign_after_the_running_episode_and_it_goes_on_later(tmp_path: Path, folder: Path) -> None:
    plan = write_plan(tmp_path, 2, test={"largest": 2})

    sent: list[Path] = []

    def stop(state: State) -> None:
        if state.unfinished and not sent:
            sent.append(send(folder, {"kind": "end", "by": "Ada"}))

    assert run_campaign(plan, folder, on_change=stop).reason == "stopped"
    assert len(state_of(folder).attempts) == 1
    assert run_campaign(plan, folder).reason == "undecided"


def test_messages_that_do_not_fit_are_written_down_and_change_nothing(tmp_path: Path, folder: Path) -> None:
    plan = write_plan(tmp_path, 1, test={"largest": 1})
    (folder / "inbox").mkdir(parents=True)
    (folder / "inbox" / "0.json").write_text("{]")
    send(folder, {"kind": "verdict", "attempt": "0000-P9-1", "by": "Eve", "success": True})
    with pytest.raises(ConfigError, match="not a message"):
        send(folder, {"kind": "bribe"})
    run_campaign(plan, folder)
    refused = [entry["why"] for entry in read_ledger(folder) if entry.kind == "refused_message"]
    assert len(refused) == 2
    assert "0000-P9-1" in refused[1]
    assert list((folder / "inbox").iterdir()) == []


def test_too_little_space_stops_a_session_before_the_robot_moves(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = write_plan(tmp_path, 1)
    monkeypatch.setattr("robot_runtime.campaign.ledger.FREE_BYTES", 1 << 60)
    with pytest.raises(RecordingError, match="nothing is lost"):
        run_campaign(plan, folder)
    assert [entry.kind for entry in read_ledger(folder)] == ["plan"]


def test_changed_episodes_and_plans_are_refused(tmp_path: Path, folder: Path) -> None:
    plan = write_plan(tmp_path, 1, test={"largest": 1})
    run_campaign(plan, folder)
    with pytest.raises(ConfigError, match=r"changed since its campaign began.*test"):
        run_campaign(write_plan(tmp_path, 1, test={"largest": 2}), folder)
    with pytest.raises(ConfigError, match=r"starts\.yaml: is not the file"):
        run_campaign(write_plan(tmp_path, 2, test={"largest": 1}), folder)


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("ended")
    folder = top / "campaigns" / "small"
    run_campaign(write_plan(top, 2, test={"largest": 2}, question="Which <one>?", split="val"), folder)
    return folder


def test_the_status_is_read_without_a_lock(ended: Path) -> None:
    status = read_status(ended)
    assert (status.running, status.finished, status.starts_done, status.starts_planned) == (False, True, 2, 2)
    assert "no answer" in status.answer
    document = status.to_json()
    assert json.loads(json.dumps(document))["title"] == "small"
    assert [row["state"] for row in document["rows"]] == ["done", "done"]


def test_the_report_has_the_answer_and_the_scores_as_files(ended: Path, tmp_path: Path) -> None:
    missing = write_report(ended, tmp_path)
    page = (tmp_path / "index.html").read_text()
    assert "Which &lt;one&gt;?" in page
    assert "Answer: no answer; success after 2 starts" in page
    assert "Nothing was changed" in page
    rows = list(csv.DictReader(io.StringIO((tmp_path / "runs.csv").read_text())))
    assert [row["counts"] for row in rows] == ["True"] * 4
    assert {path.name for path in tmp_path.iterdir()} >= {
        "result.json",
        "P1.scores.json",
        "P1.parquet",
        "P1.habitat.json",
    }
    assert missing == []
    with gzip.open(tmp_path / "P1.metrics.json.gz", "rt") as file:
        assert len(json.load(file)["val"]["episodes"]) == 2
    again = tmp_path / "again"
    write_report(ended, again)
    assert (again / "P1.scores.json").read_bytes() == (tmp_path / "P1.scores.json").read_bytes()


@pytest.mark.slow  # a browser
def test_the_report_shows_starts_runs_and_logs(ended: Path, tmp_path: Path) -> None:
    write_report(ended, tmp_path / "report")
    page = tmp_path / "report" / "index.html"
    with browser(tmp_path / "profile") as tab:
        tab.open(page)
        tab.looks_right()
        links = tab.run("[...document.querySelectorAll('.starts a')].map((one) => [one.textContent, one.href])")
        assert tab.run("document.querySelectorAll('.starts img').length") == 2
        assert tab.run("document.querySelectorAll('svg.map .start').length") == 2
        assert tab.run("document.querySelectorAll('svg.map .goal').length") == 2
        tab.visit(next(href for text, href in links if text == "path and pictures"))
        tab.looks_right()
        assert tab.run("document.querySelectorAll('.timebar input').length") == 1
        assert not tab.faults
    assert [text for text, _ in links] == ["path and pictures", "log"] * 4
    assert all(Path(unquote(urlsplit(href).path)).is_file() for _, href in links)


class Overruling(Policy):
    """A policy that a person overrules at the second step, as the console does."""

    def __init__(self, policy: Policy) -> None:
        self.name, self.needs, self.source = policy.name, policy.needs, policy.source  # type: ignore[misc]
        self._policy, self._steps = policy, 0

    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        self._steps = 0
        self._policy.reset(task, seed, world)

    def act(self, observation: Observation) -> Decision:
        self._steps += 1
        return self._policy.act(observation)

    def info(self) -> dict[str, Any]:
        return {"operator": {"intervention": True, "by": "Ada"}} if self._steps == 2 else {}


class TakenOver(InlineRobot):
    def operate(self, *_: object) -> AbstractContextManager[Any]:  # type: ignore[override]
        class Operation:
            subscribers = ()

            def supervised(self, policy: Policy) -> Policy:
                return Overruling(policy)

            def episode(self, *_: object) -> AbstractContextManager[None]:
                return nullcontext()

        return nullcontext(Operation())


def test_steps_that_a_person_decided_are_marked_and_fail_the_strict_result(tmp_path: Path, folder: Path) -> None:
    run_campaign(write_plan(tmp_path, 1, test={"largest": 1}), folder, TakenOver)
    state = state_of(folder)
    for attempt in state.attempts.values():
        assert attempt.facts is not None
        assert (attempt.facts.kind, attempt.facts.taken_over) == ("takeover", (2,))
    assert values(state, "strict") == [{"P1": 0.0, "P2": 0.0}]
    assert values(state, "lenient")[0]["P1"] == state.attempts["0000-P1-1"].facts.metrics["success"]  # type: ignore[union-attr]
