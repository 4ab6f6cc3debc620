"""Frauds inside logs and at the ledger's end, with all hashes computed anew; and frauds that forge nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foxglove_schemas_protobuf.PoseInFrame_pb2 import PoseInFrame
from typing_extensions import override

from robot_runtime.campaign.plan import load_plan
from robot_runtime.campaign.state import stored_plan
from robot_runtime.campaign.verification import Verification
from robot_runtime.recording.log_files import sha256_of
from robot_runtime.recording.verdict_files import add_verdict, verdicts_path
from robot_runtime.scenes.scene import find_scene
from tests.benchmarks.runtime.campaign_frauds import Forger, Fraud, Line, entry_of
from tests.benchmarks.runtime.log_edits import LogEdit
from tests.benchmarks.runtime.simulated_campaigns import InlineRobot, run_campaign, write_plan

AGENT = """
from robot_runtime.policies.baselines.blind import GoalFollower

class Agent(GoalFollower):
    '''Says what the published file says.'''
"""


def _log(change: Callable[[LogEdit], None]) -> Callable[[Forger], None]:
    """A change of the log of a failed run, with all hashes, its facts, and the answers."""

    def commit(forger: Forger) -> None:
        _restate(forger, forger.ended("P2", success=False), change)

    return commit


def _restate(forger: Forger, ended: Line, change: Callable[[LogEdit], None]) -> None:
    forger.edit(ended, change)
    forger.restate(ended, stored_plan([entry_of(forger.lines[0])]))
    forger.recompute()
    forger.write()


def _bend(step_m: float) -> Callable[[LogEdit], None]:
    """Let the referee's poses move along x by so much more in each step than the robot did."""

    def change(log: LogEdit) -> None:
        for number, place in enumerate(log.numbers("/referee/pose")):
            message = PoseInFrame.FromString(log.entries[place][1].data)
            message.pose.position.x += step_m * number
            log.put(place, message.SerializeToString())
            log.change("/step", number, _move(message.pose.position.x))

    return change


def _move(x_m: float) -> Callable[[dict[str, Any]], None]:
    return lambda step: step["referee"]["pose"].update(x_m=x_m)


def _other_depth(log: LogEdit) -> None:
    """Other pixels at the edge of the images, from the tenth on."""
    for place in log.numbers("/camera/depth")[10:]:
        data = log.entries[place][1].data
        log.put(place, data[:-64] + bytes(byte ^ 0xFF for byte in data[-64:]))


def _without_images(log: LogEdit) -> None:
    log.entries = [entry for entry in log.entries if entry[0] != "/camera/rgb"]


def _attachment(name: str, old: bytes, new: bytes) -> Callable[[LogEdit], None]:
    def change(log: LogEdit) -> None:
        assert old in log.attachments[name]
        log.attachments[name] = log.attachments[name].replace(old, new)

    return change


def _unchained(forger: Forger) -> None:
    """The log passes for one of an older version."""
    ended = forger.ended("P2", success=False)
    log = LogEdit(forger.log(ended))
    log.unchain()
    log.write(forger.log(ended))
    forger.restate(ended, stored_plan([entry_of(forger.lines[0])]))
    forger.write()


def _stopped_in_its_middle(log: LogEdit) -> None:
    """The steps of the second half are gone, and the last action is said to have been to stop."""
    last = len(log.numbers("/step")) // 2
    time = log.entries[log.numbers("/step")[last]][1].log_time
    log.entries = [entry for entry in log.entries if entry[0] == "/end" or entry[1].log_time <= time]
    log.change("/step", last, lambda step: step.update(action="stop"))
    log.change("/end", 0, lambda end: end.update(reason="stop", steps=last))


def _after_the_end(kind: str, **content: Any) -> Callable[[Forger], None]:
    """Another word on a run, when its result and the campaign's are known."""

    def commit(forger: Forger) -> None:
        closed, good = forger.lines[-1], forger.ended("P1", success=True)
        said = {"attempt": good["attempt"], "by": "Eve", "at": closed["at"], "up_s": closed["up_s"], "message": "0-0"}
        if kind == "verdict":
            add_verdict(forger.log(good), "Eve", judgment="fail")
            said["sha256"] = sha256_of(verdicts_path(forger.log(good)))
        forger.lines.append(forger.of_kind(kind)[0] | said | content)
        forger.write()

    return commit


def _judged_before_it_ended(forger: Forger) -> None:
    verdict = forger.of_kind("verdict")[0]
    begun = next(line for line in forger.of_kind("begun") if line["attempt"] == verdict["attempt"])
    forger.lines.remove(verdict)
    forger.lines.insert(forger.lines.index(begun) + 1, verdict | {"at": begun["at"], "up_s": begun["up_s"]})
    forger.recompute()
    forger.write()


def _drop(kind: str) -> Callable[[Forger], None]:
    """All lines of a kind are dropped, and the answers computed anew."""

    def commit(forger: Forger) -> None:
        forger.lines = [line for line in forger.lines if line["kind"] != kind]
        forger.recompute()
        forger.write()

    return commit


def _cut_and_go_on(forger: Forger) -> None:
    """The last start is forgotten, at a line's end, and run again."""
    last = max(line["attempt"][:4] for line in forger.of_kind("begun"))
    place = next(number for number, line in enumerate(forger.lines) if str(line.get("attempt", "")).startswith(last))
    forger.lines = forger.lines[:place]
    for folder in (forger.folder / "logs").glob(f"{last}-*"):
        shutil.rmtree(folder)
    forger.write()
    run_campaign(stored_plan([entry_of(forger.lines[0])]), forger.folder)


def _third_judge(forger: Forger) -> None:
    good, verdict = forger.ended("P1", success=True), forger.of_kind("verdict")[-1]
    more = []
    for name in ("Eve", "Mallory"):
        add_verdict(forger.log(good), name, judgment="fail")
        said = {"attempt": good["attempt"], "by": name, "success": False, "message": name}
        more.append(verdict | said | {"sha256": sha256_of(verdicts_path(forger.log(good)))})
    place = forger.lines.index(verdict) + 1
    forger.lines[place:place] = more
    forger.recompute()
    forger.write()


def _seen(forger: Forger) -> None:
    for line in forger.of_kind("verdict"):
        line["visible"] = True
    forger.write()


INSIDE = (
    *(Fraud(f"poses are bent by {bend_m} m per step", _log(_bend(bend_m))) for bend_m in (0.04, 0.1, 0.4)),
    Fraud("images of a log are others", _log(_other_depth)),
    Fraud("a log has no images any more", _log(_without_images)),
    Fraud("the map's cells in a log are others", _log(_attachment("map.pgm", b"\x00", b"\xfe"))),
    Fraud("the map's scale in a log is another one", _log(_attachment("map.yaml", b"0.05", b"0.049"))),
    Fraud("the scene in a log is another one", _log(_attachment("scene.yaml", b'"wall', b'"hall'))),
    Fraud(
        "a log does not name its policy", _log(lambda log: log.change("/episode", 0, lambda h: h.update(policy=None)))
    ),
    Fraud("a log has no chain", _unchained),
    Fraud("a run is cut in its middle, with a stop", _log(_stopped_in_its_middle), witnessed=True),
    Fraud("a run is judged again after the end", _after_the_end("verdict", success=False)),
    Fraud("help is reported after the end", _after_the_end("event")),
    Fraud("a run was judged before it had ended", _judged_before_it_ended),
    Fraud("reports of help are dropped, with the answers", _drop("event"), witnessed=True),
    Fraud("the sessions are dropped", _drop("session")),
    Fraud("the answers are dropped", _drop("decision")),
    Fraud("the end is dropped, to go on", _drop("closed"), witnessed=True),
    Fraud("the last start is forgotten, and run again", _cut_and_go_on, witnessed=True),
    Fraud("two more judges are invented", _third_judge),
    Fraud("a judge is said to have seen the goal", _seen),
)


@dataclass(frozen=True)
class Exchange:
    """A file that is another one while the robot runs, and is put back: nothing is forged.

    Attributes:
        name: description of the fraud.
        file: path in the folder of the plan.
        old, new: text that is replaced.
    """

    name: str
    file: str
    old: str
    new: str

    def is_found(self, folder: Path) -> bool:
        """Run a campaign in a new folder, and return whether the verification finds the exchange."""
        folder.mkdir()
        shutil.copytree(find_scene("arena"), folder / "scene")
        robot = {"name": "own", "driver": "drivers.fake.driver.make_robot"}
        (folder / "robot.yaml").write_text(json.dumps(robot), encoding="utf-8")
        (folder / "agent.py").write_text(AGENT, encoding="utf-8")
        policies = {"P1": {"spec": f"{folder}/agent.py:Agent"}, "P2": {"spec": "random"}}
        plan = write_plan(
            folder,
            1,
            scenes={"*": str(folder / "scene")},
            robots=[{"robot": str(folder / "robot.yaml")}],
            policies=policies,
        )
        path = folder / self.file
        honest = path.read_text(encoding="utf-8")
        assert self.old in honest, self.file

        class Exchanging(InlineRobot):
            @override
            def start(self, episode: int) -> None:
                path.write_text(honest.replace(self_.old, self_.new), encoding="utf-8")
                super().start(episode)

            @override
            def end(self) -> None:
                super().end()
                path.write_text(honest, encoding="utf-8")

        self_ = self
        run_campaign(plan, folder / "campaign", Exchanging)
        return bool(Verification(folder / "campaign", load_plan(folder / "plan.yaml")).findings)


EXCHANGES = (
    Exchange("the robot was exchanged, and put back", "robot.yaml", '"own"', '"own", "min_battery_fraction": 0.02'),
    Exchange("the task was exchanged, and put back", "light.yaml", "distance_m: 0.", "distance_m: 9."),
    Exchange("the episodes were exchanged, and put back", "starts.yaml", "position: [5.", "position: [4."),
    Exchange("the map's scale was exchanged, and put back", "scene/map.yaml", "0.05", "0.049"),
    Exchange("an agent was edited, and put back", "agent.py", "published file", "secret file"),
)
