"""Runner of a campaign: it gives each robot its next run, writes the ledger, and ends when the question is answered.

All that it knows is in the ledger: a new process resumes where the last one stopped, however that ended. A run is
written down before the robot moves and again when its log is closed; a run without its second line is settled by its
log when the next session begins: a log with an end counts, one without is a run that was killed.
"""

import selectors
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from robot_runtime.campaign.facts import Facts, facts_of
from robot_runtime.campaign.ledger import LOGS, START, Entry, Ledger, check_space
from robot_runtime.campaign.messages import Notifier, take_messages
from robot_runtime.campaign.outcomes import VIEWS, Answer, RunningAnswer, View, values
from robot_runtime.campaign.plan import Plan
from robot_runtime.campaign.robot_process import RunRequest
from robot_runtime.campaign.robots import RobotProcess, wait_until_free
from robot_runtime.campaign.state import State, read_state
from robot_runtime.common.clock import Stopwatch, SystemClock
from robot_runtime.common.provenance import provenance
from robot_runtime.errors import ConfigError, DeviceFault, RuntimeFault
from robot_runtime.recording.log_files import sha256_of
from robot_runtime.scoring.summary import Maps

POLL_S = 0.2
STATUS_S = 30.0
"""Interval at which a charging robot is asked for its charge."""

MOST_DEATHS = 5
"""Deaths of a robot's process in a row after which a person is asked."""

_CONFIGURATION = frozenset({"ConfigError", "DriverMissing", "SceneError", "EpisodeError"})


@dataclass(frozen=True)
class Ending:
    """End of a session.

    Attributes:
        reason: ``decided``, ``undecided``, ``all_run`` (closed for good), ``to_judge``, ``stopped`` (to be continued).
        answer: so far.
    """

    reason: str
    answer: Answer


class Runner:
    """A session of a campaign; where people judge while it runs, it waits for them as long as for other answers."""

    def __init__(
        self,
        plan: Plan,
        ledger: Ledger,
        tell: Callable[[str], None],
        on_change: Callable[[State], None] | None = None,
        make_robot: Callable[[Plan, int, Path], RobotProcess] = RobotProcess,
        judged: bool = False,
    ) -> None:
        self.plan, self._ledger, self._tell = plan, ledger, tell
        self._on_change = on_change or (lambda _: None)
        self.folder = ledger.folder
        self.state = read_state(ledger.entries)
        self._notifier = Notifier(plan.help, tell)
        self._robots = [make_robot(plan, number, self.folder) for number in range(len(plan.robots))]
        self._waiting: dict[int, tuple[int, Stopwatch]] = {}
        self._since_status = Stopwatch()
        self._maps = Maps()
        self._stop, self._judged = "", judged
        self._to_judge: Stopwatch | None = None
        self._decided_after = 0
        self._answers = {view: RunningAnswer(plan) for view in VIEWS}

    def run(self) -> Ending:
        """Run until the question is answered, nothing is left to run, or a person ends it.

        Raises:
            KeyboardInterrupt: after the running episodes were interrupted and written down.
            RuntimeFault: no further run is possible; after the running episodes were interrupted and written down.
        """
        if self.state.closed is not None:
            return Ending(self.state.closed["reason"], self._answer())
        self._ledger.check_clock()
        check_space(self.folder)
        self._settle()
        self._append("session", provenance=provenance())
        try:
            ending = self._loop()
        except BaseException as error:
            self._end_robots()
            why = error.message if isinstance(error, RuntimeFault) else str(error) or type(error).__name__
            self._append("paused", why=why)
            raise
        over = ending.reason in ("decided", "undecided", "all_run")
        if over:  # before the robots end: their pages show the result
            self._append("closed", reason=ending.reason, answer=ending.answer.document())
        self._end_robots()
        if not over:
            self._append("paused", why=ending.reason)
        return ending

    # --- the loop ---------------------------------------------------------------------------------------------------

    def _loop(self) -> Ending:
        while True:
            for robot in self._robots:
                self._take_replies(robot)
            self._take_messages()
            answer = self._answer()
            idle = not any(robot.attempt for robot in self._robots)
            if (answer.ends or self._stop) and idle:
                return Ending(self._stop or ("undecided" if answer.decision == "undecided" else "decided"), answer)
            if not (answer.ends or self._stop):
                busy = [self._assign(robot) for robot in self._robots]
                if idle and not any(busy):
                    if not self.state.to_judge:
                        answer = replace(answer, decision="undecided") if self.plan.compared else answer
                        return Ending("all_run", answer)
                    if not (self._judged and self._may_wait_for_judges()):
                        return Ending("to_judge", answer)
            self._check_patience()
            self._wait()

    def _wait(self) -> None:
        with selectors.DefaultSelector() as selector:
            for robot in self._robots:
                if robot.descriptor is not None:
                    selector.register(robot.descriptor, selectors.EVENT_READ)
            if selector.get_map():
                selector.select(POLL_S)
            else:
                SystemClock().sleep(POLL_S)

    def _assign(self, robot: RobotProcess) -> bool:
        """Give the robot its next run if it can take one; whether there is one for it, now or later."""
        due = self.state.next_run(robot.number)
        if due is None:
            return False
        if robot.attempt or robot.number in self._waiting:
            self._look_at_charge(robot)
            return True
        start, policy = due
        if robot.may_start:
            if robot.deaths >= MOST_DEATHS:
                text = f"robot {robot.number}: its process died {robot.deaths} times; see {self.folder}/robots"
                robot.deaths = 0
                self._ask(robot.number, text)
                return True
            robot.start(start.episode.number)
            return True
        if not robot.ready:
            return True
        begun = self.state.by_start.get(start.number)
        runs = len(start.policies) - len(self.state.progress(start.number).valid)
        if self.plan.battery.must_charge(robot.battery, runs, self.state.consumptions):
            percent = 100 * (robot.battery or 0.0)
            self._ask(robot.number, f"robot {robot.number}: charge it, its battery is at {percent:.0f} %", "charge")
            return True
        check_space(self.folder)
        self._ledger.check_clock()
        name = self.state.attempt_name(start, policy)
        self._append(
            "begun", attempt=name, start=start.number, policy=policy, robot=robot.number, seed=start.seed,
            episode=start.episode.key,
        )  # fmt: skip
        picture = self.folder / LOGS / begun[0].name / START if begun else None
        reference = str(picture) if picture is not None and picture.is_file() else None
        folder = str(self.folder / LOGS / name)
        robot.run(RunRequest(name, folder, start.episode.number, policy, start.seed, reference))
        return True

    def _take_replies(self, robot: RobotProcess) -> None:
        for reply in robot.answers():
            kind = reply["is"]
            if kind in ("ended", "refused", "interrupted") and robot.attempt:
                attempt, robot.attempt = robot.attempt, ""
                self._finish(attempt, reply, refused=kind == "refused")
                if kind == "refused":
                    self._ask_about(robot, reply)
            elif kind == "asks":
                self._ask(robot.number, f"robot {robot.number}: {reply['text']}", "place")
            elif kind in ("answered", "begun") and robot.number in self._waiting:
                self._append("answered", ask=self._waiting.pop(robot.number)[0], by="the robot")
            elif kind == "note":
                self._tell(f"robot {robot.number}: {reply['text']}")
            elif kind == "failed":
                if reply["error"] in _CONFIGURATION:
                    raise ConfigError(f"robot {robot.number}: {reply['message']}", reply["remedy"])
                self._ask_about(robot, reply)
            elif kind == "gone":
                self._waiting.pop(robot.number, None)
                if robot.attempt:
                    attempt, robot.attempt = robot.attempt, ""
                    self._finish(attempt, {"message": "the robot's process died"})

    def _ask_about(self, robot: RobotProcess, reply: Mapping[str, Any]) -> None:
        if reply.get("error") == "LowBattery":
            robot.battery = robot.battery or 0.0
            self._ask(robot.number, f"robot {robot.number}: {reply['message']}", "charge")
        elif reply.get("error") in ("InvalidStart", "UnreachableGoal", "EpisodeError"):
            raise ConfigError(f"robot {robot.number}: {reply['message']}", reply["remedy"])
        else:
            self._ask(robot.number, f"robot {robot.number}: {reply.get('message')}; {reply.get('remedy')}")

    # --- ledger -----------------------------------------------------------------------------------------------------

    def _append(self, kind: str, **content: Any) -> Entry:
        entry = self._ledger.append(kind, **content)
        self.state.add(entry)
        self._on_change(self.state)
        return entry

    def _settle(self) -> None:
        """End the runs of an earlier session that have no end in the ledger, by their logs."""
        for number in range(len(self.plan.robots)):
            wait_until_free(self.folder, number)
        for attempt in self.state.unfinished:
            self._finish(attempt.name, {"message": "the campaign's process died"}, recovered=True)
        for ask in list(self.state.asks):
            self._append("answered", ask=ask, by="a new session")

    def _finish(self, name: str, reply: Mapping[str, Any], recovered: bool = False, refused: bool = False) -> None:
        logs = sorted((self.folder / LOGS / name).glob("*.mcap"))
        log: dict[str, str | None] = {"log": None, "sha256": None}
        facts = Facts(None, str(reply.get("message", "")), "killed")
        if logs:
            facts = facts_of(self.plan, logs[0], self._maps)
            log = {"log": str(logs[0].relative_to(self.folder)), "sha256": sha256_of(logs[0])}
        note = {"error": reply["error"]} if "error" in reply else {}
        self._append("ended", attempt=name, **log, facts=facts.document(), recovered=recovered, refused=refused, **note)
        self._decide()

    def _decide(self) -> None:
        """Write down the answer so far, if it is not the one that was written last."""
        if self._decided_after == len(self._ledger.entries):
            return
        done = len(self.state.finished)
        last = self.state.last_decision
        stated: dict[str, Any] = {view: self._answer_in(view).document() for view in VIEWS}
        stated["starts"] = done
        self._decided_after = len(self._ledger.entries)
        if done == 0 if last is None else all(last[name] == answer for name, answer in stated.items()):
            return
        entry = self._append("decision", **stated)
        self._notifier.post({"campaign": self.plan.name, "line": entry.n, "head": self._ledger.head})

    def _answer(self) -> Answer:
        return self._answer_in(self.plan.test.counts)

    def _answer_in(self, view: View) -> Answer:
        return self._answers[view].after(values(self.state, view))

    def _take_messages(self) -> None:
        for taken in take_messages(self._ledger, self.state, self._append, self._tell):
            if taken.kind == "answered":
                self._waiting = {robot: waits for robot, waits in self._waiting.items() if waits[0] != taken["ask"]}
            if taken.kind == "end":
                self._stop = "stopped"
        self._decide()

    # --- people -----------------------------------------------------------------------------------------------------

    def _ask(self, robot: int, text: str, what: str = "help") -> None:
        if robot in self._waiting:  # it asks for the next thing once the last one is done
            self._append("answered", ask=self._waiting.pop(robot)[0], by="the robot")
        entry = self._append("asked", robot=robot, text=text, what=what)
        self._waiting[robot] = entry.n, Stopwatch()
        self._notifier.ask(text, {"campaign": self.plan.name, "ask": entry.n, "robot": robot, "what": what})

    def _look_at_charge(self, robot: RobotProcess) -> None:
        waits = self._waiting.get(robot.number)
        if waits is None or self.state.asks[waits[0]]["what"] != "charge":
            return
        if self.plan.battery.is_charged(robot.battery):
            del self._waiting[robot.number]
            self._append("answered", ask=waits[0], by="the battery")
        elif self._since_status.elapsed_s() >= STATUS_S and robot.ready:
            self._since_status.restart()
            robot.ask_status()

    def _may_wait_for_judges(self) -> bool:
        if self._to_judge is None:
            self._to_judge = Stopwatch()
            text = "runs wait for their judges: " + ", ".join(attempt.name for attempt in self.state.to_judge)
            self._notifier.ask(text, {"campaign": self.plan.name, "what": "judge"})
        return self._to_judge.elapsed_s() <= self._patience_s

    @property
    def _patience_s(self) -> float:
        return 60 * self.plan.help.patience_minutes

    def _check_patience(self) -> None:
        limit_s = self._patience_s
        for ask, since in self._waiting.values():
            if since.elapsed_s() > limit_s:
                raise DeviceFault(
                    f"no answer came for {limit_s / 60:.0f} minutes: {self.state.asks[ask]['text']}",
                    "do what was asked, and repeat the command: it resumes where it stopped",
                )

    def _end_robots(self) -> None:
        for robot in self._robots:
            if robot.pid is None:
                continue
            attempt, robot.attempt = robot.attempt, ""
            robot.end()
            if attempt:
                self._finish(attempt, {"message": "the campaign was interrupted"}, recovered=True)
