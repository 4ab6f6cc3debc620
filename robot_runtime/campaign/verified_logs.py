"""Verification of a campaign's logs and verdicts: each is evidence for one run, under the plan's conditions."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from robot_runtime.campaign.contents import Contents, scene_sha256
from robot_runtime.campaign.counting import changed
from robot_runtime.campaign.facts import Facts, facts_of
from robot_runtime.campaign.ledger import CLOCK_TOLERANCE_S, LOGS, Entry
from robot_runtime.campaign.outcomes import same
from robot_runtime.campaign.plan import JUDGES, Plan
from robot_runtime.campaign.state import Attempt, State
from robot_runtime.common import config
from robot_runtime.errors import ConfigError, RecordingError, RuntimeFault
from robot_runtime.metrics.measures import COMMON
from robot_runtime.recording.log_files import sha256_of
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.verdict_files import read_verdicts, verdicts_path
from robot_runtime.records import EpisodeHeader
from robot_runtime.robots.loader import read_robot_file
from robot_runtime.scoring.summary import Maps

What = Literal["changed", "left out", "re-run", "re-judged", "order", "time", "answer", "identity"]
"""Kind of a finding."""

DRIFT_S = 5.0
"""Largest difference between the computer's clock and its time since the start, within one start of the computer."""


def check_times(
    entries: Sequence[Entry], find: Callable[[What, str, str], None], note: Callable[[str], None]
) -> dict[int, float]:
    """Check the clock; returns the seconds by which it was set before each line, where it was.

    A clock that was set is noted; it is a finding only where a session or a run began before it was right again.
    """
    steps_s: dict[int, float] = {}
    latest = entries[0].at
    behind = 0.0
    behind_since: Entry | None = None
    for before, after in pairwise(entries):
        where = f"line {after.n + 1}"
        wall_s = (after.at - before.at).total_seconds()
        up_s = after["up_s"] - before["up_s"] if after["boot"] == before["boot"] else None
        if up_s is not None and up_s < 0:
            find("time", where, f"the computer's time since its start ran back by {-up_s:.0f} s")
        elif up_s is not None and abs(wall_s - up_s) > DRIFT_S:
            steps_s[after.n] = abs(wall_s - up_s)
            note(f"{where}: the clock was set by {wall_s - up_s:+.0f} s, or the computer was suspended")
        elif wall_s < -CLOCK_TOLERANCE_S:
            steps_s[after.n] = -wall_s
            note(f"{where}: the clock was set back by {-wall_s:.0f} s")
        latest, behind = max(latest, after.at), max(0.0, (latest - after.at).total_seconds())
        if behind <= CLOCK_TOLERANCE_S:
            behind_since = None
        elif behind_since is None:
            behind_since = after
        if behind_since is not None and after.kind in ("begun", "session"):
            what = "run" if after.kind == "begun" else after.kind
            find("time", where, f"a {what} began while the clock was {behind:.0f} s behind the lines before")
    if behind_since is not None and behind_since.kind != "paused":
        note(f"line {behind_since.n + 1}: the clock was set back by {behind:.0f} s, and stayed so; no run began since")
    return steps_s


VERSIONS = ("python", "robot_runtime", "libraries")
"""Fields of a provenance that name software."""

_SEEN_STEPS = 20
"""Steps of a log whose times are compared with those of other logs; and about as many whose images are checked."""


class LogCheck:
    """Check of all logs, in the order of the ledger.

    Attributes:
        session: line of the present session; None before the first.
    """

    def __init__(
        self, folder: Path, plan: Plan, contents: Contents | None, find: Callable[[What, str, str], None]
    ) -> None:
        self._folder, self._plan, self._contents, self._find = folder, plan, contents, find
        self._task = None if contents is None else contents.parsed_task()
        self._maps = Maps()
        self._seen: dict[str, str] = {}
        self._first: dict[str, str] = {}
        self._verdicts: dict[str, list[Entry]] = {}
        self.session: Entry | None = None

    def check_run(self, entry: Entry, attempt: Attempt | None, where: str, slack_s: float) -> Facts:
        """Check the log of an ``ended`` line, and return what is proved: nothing without a log.

        Args:
            entry: the line.
            attempt: the attempt that it ends; None if there is none.
            where: the line's place.
            slack_s: seconds by which the computer's clock was set since the attempt's first line.
        """
        name, stated = entry["attempt"], entry["log"]
        nothing = Facts(None, "no log", "killed")
        if attempt is None:
            self._find("left out", where, f"{name} ended and was never begun")
            return nothing
        if stated is None:
            return Facts.of(entry["facts"], where)
        path = self._folder / stated
        if is_linked(self._folder, path):
            self._find("changed", stated, "is a link to somewhere else")
            return nothing
        if not path.is_file():
            self._find("left out", stated, "the log is missing")
            return nothing
        try:
            return self._check_log(entry, attempt, where, slack_s)
        except OSError as error:
            self._find("left out", stated, f"cannot be read: {error.strerror or error}")
            return nothing

    def _check_log(self, entry: Entry, attempt: Attempt, where: str, slack_s: float) -> Facts:
        stated = entry["log"]
        path = self._folder / stated
        sha256 = sha256_of(path)
        if sha256 != entry["sha256"]:
            self._find("changed", stated, "the log is not the one that was written")
        facts = facts_of(self._plan, path, self._maps, lambda note: self._find("changed", stated, note))
        if facts.kind not in ("killed", "damaged"):  # logs that end within their first bytes are all the same
            self._check_once(sha256, stated)
        proved, stated_metrics = facts.document(), entry["facts"].get("metrics", {})
        required = {metric.name for metric in COMMON}  # ledgers of earlier versions lack those of single kinds
        proved["metrics"] = {n: v for n, v in facts.metrics.items() if n in stated_metrics or n in required}
        if not same(proved, entry["facts"]):
            self._find("changed", where, f"what it says of {attempt.name} is not what its log says")
        if facts.kind == "damaged":
            return facts
        with LogReader(path) as log:
            self._check_header(log.header, attempt, stated)
            self._check_time(log.header, attempt, entry, stated, slack_s)
            times = self._check_steps(log, stated)
        if len(times) > 1 and any(times):
            # Host times are never the same twice, not even where a simulator repeats a run.
            self._check_once(hashlib.sha256(json.dumps(times, sort_keys=True).encode()).hexdigest(), stated)
        return facts

    def _check_steps(self, log: LogReader, stated: str) -> list[dict[str, float]]:
        """Check the chain, and the images of steps all over the log; returns the host times of the first steps."""
        if self._contents is not None and not log.chained:
            self._find("changed", stated, "has no chain, although its version writes one")
        apart = 1 + (0 if log.end is None else log.end.steps) // _SEEN_STEPS
        times: list[dict[str, float]] = []
        try:
            for record in log.steps(images=False):
                if len(times) < _SEEN_STEPS:
                    times.append(dict(record.phase_s))
                if log.end is not None and record.index % apart == 0:
                    log.with_images(record)
        except RecordingError as error:
            self._find("changed", stated, error.message.replace(f"{log.path}: ", ""))
        return times

    def _check_once(self, evidence: str, stated: str) -> None:
        if self._seen.setdefault(evidence, stated) != stated:
            self._find("re-run", stated, f"is the same run as {self._seen[evidence]}")

    def check_verdict(self, entry: Entry, attempt: Attempt | None, where: str) -> None:
        """Check a judge's line; arguments as for :meth:`check_run`."""
        if attempt is None or attempt.ended is None:
            self._find("re-judged", where, f"{entry['attempt']} was judged before it had ended")
        elif len({by for by, said in attempt.judges.items() if said.success is not None} - {entry["by"]}) >= JUDGES:
            self._find("re-judged", where, f"{entry['attempt']} had its {JUDGES} judges")
        self._verdicts.setdefault(entry["attempt"], []).append(entry)

    def check_files(self, state: State) -> None:
        """Look for logs and verdicts that the ledger does not name."""
        named = {attempt.ended["log"] for attempt in state.attempts.values() if attempt.ended is not None}
        unsettled = {attempt.name for attempt in state.unfinished}
        try:
            found = sorted((self._folder / LOGS).rglob("*.mcap"))
        except OSError as error:
            self._find("left out", LOGS, f"cannot be read: {error.strerror or error}")
            found = []
        for path in found:
            stated = path.relative_to(self._folder).as_posix()
            if stated not in named and path.parent.name not in unsettled:
                self._find("re-run", stated, "a log that the ledger does not name")
        for attempt in state.attempts.values():
            if attempt.ended is not None and attempt.ended["log"] is not None:
                self._check_verdicts(attempt.name, self._folder / attempt.ended["log"])

    def _check_header(self, header: EpisodeHeader, attempt: Attempt, where: str) -> None:
        begun, plan = attempt.begun, self._plan
        if header.agent != attempt.policy:
            self._find("identity", where, f"is of policy {header.agent!r}, not of {attempt.policy!r}")
        if header.seed != begun["seed"]:
            self._find("identity", where, "ran with another seed")
        if header.episode.key != begun["episode"]:
            self._find("changed", where, "is of another episode: start, goal or scene differ")
        if header.dataset != plan.episodes:
            self._find("changed", where, f"its episode is of {header.dataset}, the plan names {plan.episodes}")
        self._check_policy(header, attempt.policy, where)
        for name, limit, ran in (
            ("steps", plan.limits.steps, header.task.max_steps),
            ("seconds", plan.limits.minutes and 60 * plan.limits.minutes, header.task.max_seconds),
        ):
            if limit is not None and limit != ran:
                self._find("changed", where, f"ran with a limit of {ran} {name}, the plan has {limit}")
        if self._task is not None and header.task != self._task:
            own, planned = config.unparse(header.task), config.unparse(self._task)
            self._find("changed", where, f"the task is not the plan's: {', '.join(changed(own, planned))}")
        if self._contents is not None and scene_sha256(header.scene) != self._contents.scenes.get(header.episode.scene):
            self._find("changed", where, "the scene is not the plan's")
        self._check_robot(header, attempt.robot, where)
        self._same_as_first("task", repr(header.task), "the task is not that of the runs before", where)
        sources = repr(sorted((role, tuple(names)) for role, names in header.localizers.items()))
        self._same_as_first(
            f"robot {attempt.robot}", sources, "its localizer or referee is not that of the runs before", where
        )
        scene, robot = header.episode.scene, f"config {attempt.robot}"
        self._same_as_first(f"scene {scene}", header.scene.digest, f"scene {scene} is another than before", where)
        text = json.dumps([header.robot, header.robot_config], sort_keys=True, default=str)
        self._same_as_first(robot, text, f"robot {attempt.robot} is another than in the runs before", where)

    def _same_as_first(self, of: str, value: str, words: str, where: str) -> None:
        """Find a value that differs from that of the first run, once."""
        if self._first.setdefault(of, value) not in (value, ""):
            self._first[of] = ""
            self._find("changed", where, words)

    def _check_policy(self, header: EpisodeHeader, name: str, where: str) -> None:
        planned, source = self._plan.policies[name], header.policy
        if planned.commitment:
            if source is None or source.digest != planned.commitment:
                self._find("identity", where, "is not of the sealed policy")
            return
        if source is None:
            if self._contents is not None:
                self._find("identity", where, f"does not name the source of policy {name}")
            return
        expected = planned.source
        for what, own, stated in (
            ("source", source.spec, expected.spec),
            ("arguments", dict(source.arguments), dict(expected.public().arguments)),
            ("interpreter", source.python, expected.python),
            ("time limit", source.timeout_s, expected.timeout_s),
        ):
            if own != stated:
                self._find("identity", where, f"policy {name} ran with the {what} {own}, the plan names {stated}")
        if self._contents is not None and source.digest != self._contents.policies.get(name):
            self._find("identity", where, f"the files of policy {name} are not the plan's")
        self._same_as_first(
            f"policy {name}", str(source.digest), f"the files of policy {name} changed during the campaign", where
        )

    def _check_robot(self, header: EpisodeHeader, number: int, where: str) -> None:
        if not 0 <= number < len(self._plan.robots):
            self._find("changed", where, f"the plan has no robot {number}")
            return
        planned = self._plan.robots[number]
        if not planned.robot.endswith((".yaml", ".yml")):  # else a file of the laboratory: the contents hold it
            with suppress(ConfigError):
                if (named := read_robot_file(planned.robot)[1].name) != header.robot:
                    words = f"is of robot {header.robot!r}, the plan names {planned.robot!r}: {named!r}"
                    self._find("identity", where, words)
        if self._contents is None:
            return
        if number >= len(self._contents.robots):
            self._find("changed", where, f"the contents have no robot {number}")
            return
        robot = self._contents.robots[number]
        if header.robot != robot.name:
            self._find("identity", where, f"is of robot {header.robot!r}, not of {robot.name!r}")
        elif not same(without_none(header.robot_config), without_none(robot.file)):
            names = changed(without_none(header.robot_config), without_none(robot.file))
            self._find("changed", where, f"robot {number} is not the plan's: {', '.join(names)}")

    def _check_time(self, header: EpisodeHeader, attempt: Attempt, ended: Entry, where: str, slack_s: float) -> None:
        """Check that the log was recorded between the lines of its attempt, with the software of its session."""
        stated = header.provenance.get("recorded")
        earliest = attempt.begun.at if stated else self.session.at if self.session else None
        stated = stated or header.provenance.get("created")
        try:
            recorded = datetime.fromisoformat(str(stated))
            if earliest is not None:
                tolerance_s = CLOCK_TOLERANCE_S + slack_s
                early_s = (earliest - recorded).total_seconds() - tolerance_s
                late_s = (recorded - ended.at).total_seconds() - tolerance_s
                if early_s > 0 or late_s > 0:
                    self._find("time", where, f"was recorded at {stated}, not between the lines of {attempt.name}")
        except (TypeError, ValueError):
            self._find("time", where, f"was recorded at {stated!s:.40}, which is no time")
        if self.session is None:
            return
        own, of_session = versions(header.provenance), versions(self.session["provenance"])
        if own and of_session and not same(own, of_session):
            self._find("changed", where, f"was recorded with other software: {', '.join(changed(own, of_session))}")

    def _check_verdicts(self, name: str, log: Path) -> None:
        said, path = self._verdicts.get(name, []), verdicts_path(log)
        where = path.relative_to(self._folder).as_posix()
        if not path.is_file():
            if said:
                self._find("left out", where, "the judges' verdicts are missing")
            return
        if not said:
            self._find("re-judged", where, "was written outside the campaign")
            return
        if is_linked(self._folder, path):
            self._find("re-judged", where, "is a link to somewhere else")
            return
        try:
            if sha256_of(path) != said[-1]["sha256"]:
                self._find("re-judged", where, "is not what the judges wrote")
                return
            with LogReader(log) as opened:
                verdicts = read_verdicts(log, opened.header).statements
        except (RuntimeFault, OSError) as error:
            text = error.message if isinstance(error, RuntimeFault) else str(error)
            self._find("re-judged", where, text.replace(str(self._folder), ""))
            return
        written = [(one.who, _judgment(one.judgment), one.visible, one.note) for one in verdicts]
        stated = [
            (
                one["by"],
                (None if one["invalid"] else one["success"], one["invalid"]),
                one.get("visible"),
                one.get("note", ""),
            )
            for one in said
        ]
        if any(verdict not in written for verdict in stated) or len(written) < len(stated):
            self._find("re-judged", where, "does not say what the ledger says")


def _judgment(judgment: str | None) -> tuple[bool | None, bool]:
    return {"success": True, "fail": False}.get(judgment or ""), judgment == "invalid"


def is_linked(folder: Path, path: Path) -> bool:
    """Whether a path in a folder leads through a symbolic link below the folder."""
    between = [path, *path.parents][: len(path.relative_to(folder).parts)]
    return any(part.is_symlink() for part in between)


def versions(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """The software that a provenance names, as a ledger or as a log holds it; empty where it names none."""
    named = {name: provenance[name] for name in VERSIONS if provenance.get(name) is not None}
    libraries = named.get("libraries")
    if isinstance(libraries, str):
        try:
            named["libraries"] = json.loads(libraries)
        except ValueError:
            return named
    found: dict[str, Any] = without_none(named)
    return found


def without_none(part: Any) -> Any:
    """A JSON value without the fields that are None, as plans and contents are written."""
    if isinstance(part, Mapping):
        return {str(key): without_none(value) for key, value in part.items() if value is not None}
    return [without_none(item) for item in part] if isinstance(part, (list, tuple)) else part
