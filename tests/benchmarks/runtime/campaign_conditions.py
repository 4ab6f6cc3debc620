"""Frauds about the conditions of a campaign: what was run is not what the plan names, or was weighed otherwise."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from typing import Any

from robot_runtime.campaign.counting import digest
from robot_runtime.campaign.state import stored_plan
from robot_runtime.recording.log_files import LEDGER_FILE, sha256_of
from tests.benchmarks.runtime.campaign_frauds import Forger, Fraud, Line, entry_of
from tests.benchmarks.runtime.log_edits import LogEdit

Edit = Callable[[dict[str, Any]], None]


def _plan_line(change: Edit) -> Callable[[Forger], None]:
    """A change of the plan in the first line, with its hash."""

    def commit(forger: Forger) -> None:
        first = forger.lines[0]
        change(first["plan"])
        first["plan_sha256"] = stored_plan([entry_of(first)]).digest
        forger.write()

    return commit


def _contents(change: Edit) -> Callable[[Forger], None]:
    def commit(forger: Forger) -> None:
        change(forger.lines[0]["contents"])
        forger.write()

    return commit


def _headers(change: Edit, every: bool = True) -> Callable[[Forger], None]:
    """A change of the headers of all logs, or of the last one, with all hashes."""

    def commit(forger: Forger) -> None:
        for ended in forger.of_kind("ended")[0 if every else -1 :]:
            forger.edit(ended, lambda log: log.change("/episode", 0, change))
            forger.restate(ended, stored_plan([entry_of(forger.lines[0])]))
        forger.recompute()
        forger.write()

    return commit


def _lines(kind: str, change: Callable[[Line], object], last: bool = False) -> Callable[[Forger], None]:
    """A change of all lines of a kind, or of the last, with the chain."""

    def commit(forger: Forger) -> None:
        for line in forger.of_kind(kind)[-1 if last else 0 :]:
            change(line)
        forger.write()

    return commit


def _claim_in_the_last_line(forger: Forger) -> None:
    forger.of_kind("closed")[-1]["answer"] |= {"decision": "P2", "p_value": 0.001, "means": {"P1": 0.0, "P2": 1.0}}
    forger.write()


def _success_without_a_log(forger: Forger) -> None:
    ended, good = forger.ended("P2", success=False), forger.ended("P1", success=True)
    shutil.rmtree(forger.log(ended).parent)
    ended |= {"log": None, "sha256": None, "facts": good["facts"]}
    forger.recompute()
    forger.write()


def _another_repetitions_log(forger: Forger) -> None:
    """A good log copied over a bad one of the same policy, with seed and episode edited."""
    bad, good = forger.ended("P2", success=False), forger.ended("P1", success=True)
    header = LogEdit(forger.log(bad))
    own = json.loads(header.entries[header.numbers("/episode")[0]][1].data)
    forger.log(bad).write_bytes(forger.log(good).read_bytes())
    kept = ("episode", "agent", "seed", "policy")
    forger.edit(
        bad, lambda log: log.change("/episode", 0, lambda line: line.update({name: own[name] for name in kept}))
    )
    forger.restate(bad, stored_plan([entry_of(forger.lines[0])]))
    forger.recompute()
    forger.write()


def _killed_until_good(forger: Forger) -> None:
    """Eleven runs of one policy that were killed, of which only the ledger knows."""
    bad = forger.of_kind("begun")[0]
    place = forger.lines.index(bad)
    nothing: dict[str, Any] = {
        "end": None, "detail": "", "kind": "killed", "metrics": {}, "placement_m": None, "placement_deg": None,
        "x_m": None, "y_m": None, "battery": None, "battery_end": None, "light": None, "map": "", "duration_s": 0.0,
        "taken_over": [],
    }  # fmt: skip
    more: list[Line] = []
    stem = bad["attempt"][:-1]
    for number in range(1, 12):
        begun = bad | {"attempt": f"{stem}{number}"}
        ended = forger.of_kind("ended")[0] | {"attempt": f"{stem}{number}", "log": None, "sha256": None}
        more += [begun, ended | {"facts": nothing, "recovered": True}]
    shutil.move(forger.folder / "logs" / bad["attempt"], forger.folder / "logs" / f"{stem}12")
    for line in forger.lines:
        if line.get("attempt") == bad["attempt"]:
            line["attempt"] = f"{stem}12"
            if line.get("log"):
                line["log"] = line["log"].replace(f"{stem}1/", f"{stem}12/")
    forger.lines[place:place] = more
    forger.write()


def _declared_faulty(forger: Forger) -> None:
    ended = forger.ended("P1", success=True)
    event = forger.of_kind("event")[0] | {"attempt": ended["attempt"], "what": "device_fault", "by": "Eve"}
    forger.lines.insert(forger.lines.index(ended) + 1, event)
    forger.write()


def _rules_of_an_older_version(forger: Forger) -> None:
    forger.lines[0].pop("rules")
    forger.lines[0].pop("contents")
    forger.write()


def _link_a_log(forger: Forger) -> None:
    path = forger.log(forger.of_kind("ended")[0])
    elsewhere = forger.folder.parent / f"{forger.folder.name}-elsewhere.mcap"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def _link_the_ledger(forger: Forger) -> None:
    path = forger.folder / LEDGER_FILE
    elsewhere = forger.folder.parent / f"{forger.folder.name}-ledger.jsonl"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def _double_a_line(forger: Forger) -> None:
    ended = forger.of_kind("ended")[0]
    forger.lines.insert(forger.lines.index(ended) + 1, dict(ended))
    forger.write()


def _log_of_another_run(forger: Forger) -> None:
    """Two attempts name one file."""
    first, second = forger.of_kind("ended")[:2]
    second["log"] = first["log"]
    second["sha256"] = sha256_of(forger.log(first))
    forger.write()


def _recorded(time: str) -> Callable[[Forger], None]:
    def commit(forger: Forger) -> None:
        ended = forger.of_kind("ended")[0]
        log = LogEdit(forger.log(ended))
        log.change_metadata("provenance", {"recorded": time})
        log.write(forger.log(ended))
        forger.restate(ended, stored_plan([entry_of(forger.lines[0])]))
        forger.write()

    return commit


def _recorded_with(name: str, text: str) -> Callable[[Forger], None]:
    def commit(forger: Forger) -> None:
        ended = forger.of_kind("ended")[0]
        log = LogEdit(forger.log(ended))
        log.change_metadata("provenance", {name: text})
        log.write(forger.log(ended))
        forger.restate(ended, stored_plan([entry_of(forger.lines[0])]))
        forger.write()

    return commit


def _other_episodes(forger: Forger) -> None:
    first = forger.lines[0]
    first["episodes_sha256"] = first["contents"]["episodes"] = "0" * 64
    forger.write()


def _judged_by_another(forger: Forger) -> None:
    for line in forger.of_kind("verdict"):
        line["by"] = "Bob"
    forger.write()


def _set(*path: str, value: Any) -> Edit:
    """An edit of a nested field."""

    def edit(document: dict[str, Any]) -> None:
        inner: Any = document
        for part in path[:-1]:
            inner = inner[int(part)] if isinstance(inner, list) else inner[part]
        inner[path[-1]] = value

    return edit


CONDITIONS = (
    # Those that were reported.
    Fraud("the last line claims another answer", _claim_in_the_last_line),
    Fraud("a run without a log has facts", _success_without_a_log),
    Fraud(
        "a simulated robot is passed off as a real one",
        _plan_line(_set("robots", "0", "robot", value="locobot-ros-pyrobot")),
    ),
    Fraud("the plan names another referee", _plan_line(_set("robots", "0", "referee", value="odometry"))),
    Fraud("the plan names other arguments", _plan_line(_set("policies", "P1", "arguments", value={"looks_every": 2}))),
    Fraud("the plan names a lower limit of steps", _plan_line(_set("limits", "steps", value=15))),
    Fraud(
        "the robot was exchanged during the campaign",
        _headers(_set("robot_config", "min_battery_fraction", value=0.02), every=False),
    ),
    Fraud("the episodes were others, and were put back", _other_episodes, published=True),
    Fraud("the task was another, and was put back", _contents(_set("task", "success", "distance_m", value=50.0))),
    Fraud("all logs have a larger success radius", _headers(_set("task", "success", "distance_m", value=50.0))),
    Fraud("an agent's files are not those that were published", _contents(_set("policies", "P2", value="0" * 64))),
    Fraud("runs are killed until one is good", _killed_until_good),
    Fraud("a success is declared a device's fault afterwards", _declared_faulty),
    Fraud("another run's log is passed off, with its seed edited", _another_repetitions_log),
    Fraud("a log of another time is passed off", _recorded("2020-01-01T00:00:00+00:00")),
    Fraud("the software of a log is edited", _recorded_with("robot_runtime", "9.9")),
    Fraud("the software of the plan is edited", _lines("plan", lambda line: line["software"].update(python="9.9"))),
    # Invented.
    Fraud("the rules of an older version are claimed", _rules_of_an_older_version, published=True),
    Fraud("a log is a link to a file elsewhere", _link_a_log),
    Fraud("the ledger is a link to a file elsewhere", _link_the_ledger),
    Fraud("a run ends twice", _double_a_line),
    Fraud("one log is named for two runs", _log_of_another_run),
    Fraud("a log was recorded after its line", _recorded("2099-01-01T00:00:00+00:00")),
    Fraud("a log was recorded at no time", _recorded("noon")),
    Fraud("the interpreter of a log is another one", _recorded_with("python", "2.7")),
    Fraud("the libraries of a log are others", _recorded_with("libraries", '{"numpy":"0.1"}')),
    Fraud("the scene in the contents is another one", _contents(_set("scenes", value={"arena": "0" * 64}))),
    Fraud("the robot in the contents is another one", _contents(_set("robots", "0", "name", value="other"))),
    Fraud("the starts in the contents are others", _contents(_set("starts", value=digest([])))),
    Fraud("the contents are cut", _contents(lambda contents: contents.update(task={}))),
    Fraud("the software in the contents is another one", _contents(_set("software", "python", value="9.9"))),
    Fraud("the judge's name is another one", _judged_by_another),
    Fraud("a line has a field that nobody knows", _lines("begun", lambda line: line.update(extra=1))),
    Fraud("a line has a kind that nobody knows", _lines("event", lambda line: line.update(kind="remark"))),
    Fraud("the campaign is said to have been decided", _lines("closed", lambda line: line.update(reason="decided"))),
    Fraud("a policy's interpreter is another one", _plan_line(_set("policies", "P1", "timeout_s", value=3.0))),
    Fraud("a log has another limit of steps", _headers(_set("task", "max_steps", value=39), every=False)),
    Fraud("a log is of another file of episodes", _headers(_set("dataset", value="other.yaml"), every=False)),
    Fraud("a log is of another robot", _headers(_set("robot", value="locobot"), every=False)),
    Fraud("a log's localizer is another one", _headers(_set("localizers", value={"policy": ["other"]}), every=False)),
    Fraud("a log's policy has other arguments", _headers(_set("policy", "arguments", value={"x": "1"}), every=False)),
    Fraud("a decision counts more starts", _lines("decision", lambda line: line.update(starts=9), last=True)),
)
