"""Verification of a campaign from its folder alone: what was changed, left out, run again or judged again.

Everything that can be computed again is: the order of the runs from the plan's seed, each run's facts from its log, the
values and the answer after each start. What cannot be computed is chained by hash, and signed where the plan says so. A
history that was forged completely, logs included, is found by the signatures, or by heads of the ledger that others
kept (the plan's hook posts them).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from robot_runtime.campaign.facts import facts_of
from robot_runtime.campaign.ledger import CLOCK_TOLERANCE_S, LOGS, Entry, is_signed, parse_line, sha256_of
from robot_runtime.campaign.outcomes import VIEWS, RunningAnswer, rounded, same, values
from robot_runtime.campaign.plan import Plan, changed, digest
from robot_runtime.campaign.sealing import check_commitments, sealed_policies
from robot_runtime.campaign.state import Attempt, State, stored_plan
from robot_runtime.errors import ConfigError, RecordingError, RuntimeFault
from robot_runtime.recording.chain import Chain, stated_digest
from robot_runtime.recording.log_files import LEDGER_FILE
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.verdict_files import read_verdicts, verdicts_path
from robot_runtime.records import EpisodeHeader
from robot_runtime.scoring.summary import Maps

What = Literal["changed", "left out", "re-run", "re-judged", "order", "time", "answer", "identity"]
DRIFT_S = 5.0
"""Largest difference between the computer's clock and its time since the start, within one start of the computer."""

_SIGNATURE = re.compile(rb',"signature":"([0-9a-f]*)"(,"chain":"[0-9a-f]{64}")?\}\Z')


@dataclass(frozen=True)
class Finding:
    """One contradiction.

    Attributes:
        what: kind.
        where: line of the ledger, attempt or file.
        detail: one sentence.
    """

    what: What
    where: str
    detail: str


class Verification:
    """Verification of the campaign in a folder.

    Args:
        folder: folder of the campaign, or a copy of it.
        plan: plan that was published before the campaign; None to trust the ledger's.
        heads: heads of the ledger that others kept, by number of the line.

    Attributes:
        findings: problems found; empty for an honest campaign.
        plan: plan of the ledger.
        state: state after the ledger's last line.

    Raises:
        ConfigError: there is no campaign.
    """

    def __init__(self, folder: Path, plan: Plan | None = None, heads: Mapping[int, str] | None = None) -> None:
        self.findings: list[Finding] = []
        self._folder = folder
        self._entries = self._read_ledger()
        self.plan = stored_plan(self._entries)
        self.state = State(self.plan, ())
        self._answers = {view: RunningAnswer(self.plan) for view in VIEWS}
        self._logs = LogCheck(folder, self.plan, self._find)
        self._check_plan(plan)
        self._check_heads(heads or {})
        self._check_times()
        if self.plan.signer:
            self._check_signatures()
        for entry in self._entries:
            self._replay(entry)
        self._check_end()
        self._logs.check_files(self.state)

    @property
    def sessions(self) -> str:
        """Time of the campaign, and number of its sessions and runs."""
        count = sum(entry.kind == "session" for entry in self._entries)
        first, last = (str(self._entries[place].get("at"))[:16].replace("T", " ") for place in (0, -1))
        return f"{first} to {last} UTC, {count} session{'' if count == 1 else 's'}, {len(self.state.attempts)} runs"

    def document(self) -> dict[str, Any]:
        """Result as JSON, the same for every copy of the folder."""
        state = self.state
        starts = [
            {
                "start": number,
                "episode": state.starts[number].episode.id,
                "runs": {policy: attempt.name for policy, attempt in sorted(progress.valid.items())},
                "repeats": list(progress.repeats),
            }
            for number, progress in state.finished
        ]
        for view in VIEWS:
            for start, by_policy in zip(starts, values(state, view), strict=True):
                start[view] = by_policy
        document = {
            "campaign": self.plan.name,
            "plan_sha256": self.plan.digest,
            "lines": len(self._entries),
            "head": stated_digest(self._entries[-1].raw),
            "signed": bool(self.plan.signer),
            "ended": None if state.closed is None else state.closed.get("reason"),
            "findings": [asdict(finding) for finding in self.findings],
            "answer": {view: self._answers[view].after(values(state, view)).document() for view in VIEWS},
            "starts": starts,
            "attempts": {
                name: {"kinds": attempt.kinds, "facts": None if attempt.facts is None else attempt.facts.document()}
                for name, attempt in state.attempts.items()
            },
        }
        result: dict[str, Any] = rounded(document)
        return result

    def _find(self, what: What, where: str, detail: str) -> None:
        self.findings.append(Finding(what, where, detail))

    # --- the ledger -------------------------------------------------------------------------------------------------

    def _read_ledger(self) -> list[Entry]:
        """All lines that can be read; breaks of the chain are findings."""
        path = self._folder / LEDGER_FILE
        if not path.is_file():
            raise ConfigError(f"no campaign in {self._folder}", "give the folder of a campaign, or a copy of it")
        data = path.read_bytes()
        entries: list[Entry] = []
        chain = Chain()
        for number, raw in enumerate(data[: data.rfind(b"\n") + 1].splitlines()):
            entry = parse_line(number, raw)
            if entry is None:
                self._find("changed", f"line {number + 1}", "is not a line of a ledger")
                continue
            if not chain.follows(raw):
                self._find(
                    "changed", f"line {number + 1}", "does not continue the chain: it or a line before was altered"
                )
                chain.digest = stated_digest(raw)
            elif entry.n != number:
                self._find("left out", f"line {number + 1}", f"has the number {entry.n}")
            entries.append(entry)
        return entries

    def _check_plan(self, published: Plan | None) -> None:
        first = self._entries[0]
        if first.get("plan_sha256") != digest(first.get("plan")):
            self._find("changed", "line 1", "the plan is not the one of its hash")
        if published is not None and published.digest != self.plan.digest:
            names = changed(published.document(), self.plan.document())
            self._find("changed", "line 1", f"the plan differs from the one given: {', '.join(names)}")
        if any(entry.kind == "plan" for entry in self._entries[1:]):
            self._find("changed", "ledger", "there is more than one plan")

    def _check_heads(self, heads: Mapping[int, str]) -> None:
        for number, head in sorted(heads.items()):
            if number >= len(self._entries):
                self._find("left out", f"line {number + 1}", "was seen by others and is not there")
            elif stated_digest(self._entries[number].raw) != head:
                self._find(
                    "changed", f"line {number + 1}", "is not what others have seen: it or a line before was altered"
                )

    def _check_times(self) -> None:
        for before, after in pairwise(self._entries):
            try:
                wall_s = (after.at - before.at).total_seconds()
                up_s = after["up_s"] - before["up_s"] if after["boot"] == before["boot"] else None
            except (KeyError, TypeError, ValueError) as error:
                self._find("changed", f"line {after.n + 1}", f"has no time: {error}")
                continue
            if wall_s < -CLOCK_TOLERANCE_S:
                self._find("time", f"line {after.n + 1}", f"the clock was set back by {-wall_s:.0f} s")
            elif up_s is not None and abs(wall_s - up_s) > DRIFT_S:
                self._find("time", f"line {after.n + 1}", f"the clock was set by {wall_s - up_s:+.0f} s")

    def _check_signatures(self) -> None:
        before = ""
        for entry in self._entries:
            signature = _SIGNATURE.search(entry.raw)
            signed = _SIGNATURE.sub(b"}", entry.raw)
            if entry.kind == "unblinded":  # its commitments prove it, and the holder of the key is another one
                before = stated_digest(entry.raw)
                continue
            if signature is None or not is_signed(before.encode() + signed, signature[1].decode(), self.plan.signer):
                self._find("identity", f"line {entry.n + 1}", "is not signed by the plan's signer")
            before = stated_digest(entry.raw)

    # --- what happened ----------------------------------------------------------------------------------------------

    def _replay(self, entry: Entry) -> None:
        where = f"line {entry.n + 1}"
        try:
            if entry.kind == "begun":
                self._check_begun(entry, where)
            elif entry.kind == "ended":
                self._logs.check_run(entry, self.state.attempts.get(entry["attempt"]), where)
            elif entry.kind == "verdict":
                self._logs.check_verdict(entry)
            elif entry.kind == "decision":
                self._check_decision(entry, where)
            elif entry.kind == "unblinded":
                problems = check_commitments(self.plan, sealed_policies(entry["policies"], where))
                for problem in problems:
                    self._find("identity", where, problem)
            self.state.add(entry)
        except (RuntimeFault, KeyError, TypeError, ValueError, IndexError) as error:
            message = error.message if isinstance(error, RuntimeFault) else repr(error)
            self._find("changed", where, f"does not fit: {message}")

    def _check_begun(self, entry: Entry, where: str) -> None:
        state = self.state
        if state.closed is not None:
            self._find("re-run", where, "a run after the campaign had ended")
        if state.unblinded is not None:
            self._find("identity", where, "a run after the policies were unblinded")
        if self._answer_ends():
            self._find("re-run", where, "a run after the question had been answered")
        due = state.next_run(entry["robot"])
        stated = (entry["start"], entry["policy"])
        if due is None or stated != (due[0].number, due[1]):
            again = any(attempt.policy == stated[1] for attempt in state.by_start.get(stated[0], ()))
            expected = "nothing" if due is None else f"{due[1]} from start {due[0].number}"
            detail = f"{stated[1]} ran from start {stated[0]}, due was {expected}"
            self._find("re-run" if again else "order", where, detail)
            return
        start, policy = due
        if entry["attempt"] != state.attempt_name(start, policy):
            self._find("left out", where, f"the run is called {entry['attempt']}: one before it is missing")
        if (entry["seed"], entry["episode"]) != (start.seed, start.episode.key):
            self._find("changed", where, "seed or episode are not those of the plan")

    def _answer_ends(self) -> bool:
        last = self.state.last_decision
        decision = None if last is None else last.get(self.plan.test.counts, {}).get("decision")
        return decision in ("undecided", *self.plan.policies)

    def _check_decision(self, entry: Entry, where: str) -> None:
        done = len(self.state.finished)
        if entry["starts"] != done:
            self._find("answer", where, f"counts {entry['starts']} starts, {done} are finished")
        for view in VIEWS:
            if not same(entry[view], self._answers[view].after(values(self.state, view)).document()):
                self._find("answer", where, f"the {view} answer is not the one of the runs")

    def _check_end(self) -> None:
        state = self.state
        last = state.last_decision
        if len(state.finished) != (0 if last is None else last["starts"]) and not state.to_judge:
            self._find("left out", "ledger", "a finished start has no answer after it")
        for attempt in state.unfinished:
            sessions = [entry.n for entry in self._entries if entry.kind == "session"]
            if state.closed is not None or any(number > attempt.begun.n for number in sessions):
                self._find("left out", attempt.name, "the run has no end")
        if state.closed is None:
            return
        reason, decided = state.closed["reason"], self._answer_ends()
        open_runs = any(state.next_run(robot) is not None for robot in range(len(self.plan.robots)))
        if reason == "all_run" and open_runs:
            self._find("answer", f"line {state.closed.n + 1}", "the campaign ended although runs were left")
        if reason in ("decided", "undecided") and not decided:
            self._find("answer", f"line {state.closed.n + 1}", "the campaign ended without an answer")


def read_heads(texts: Iterable[str]) -> dict[int, str]:
    """Heads as ``LINE:HEAD``, where LINE counts from 0 as in the ledger's ``n``. Raises ``ConfigError``."""
    heads = {}
    for text in texts:
        number, colon, head = text.partition(":")
        if not (colon and number.isdecimal() and re.fullmatch(r"[0-9a-f]{64}", head)):
            raise ConfigError(f"{text!r} is not a head", "write it as LINE:HEAD, as the hook posted it")
        heads[int(number)] = head
    return heads


class LogCheck:
    """Check of all logs, in the order of the ledger.

    Args:
        folder: folder of the campaign.
        plan: plan of the campaign.
        find: gets kind, place and detail of each finding.
    """

    def __init__(self, folder: Path, plan: Plan, find: Callable[[What, str, str], None]) -> None:
        self._folder, self._plan, self._find = folder, plan, find
        self._maps = Maps()
        self._seen: dict[str, str] = {}
        self._tasks: set[str] = set()
        self._sources: dict[str, set[str]] = {}
        self._verdicts: dict[str, list[Entry]] = {}

    def check_run(self, entry: Entry, attempt: Attempt | None, where: str) -> None:
        """Check the log of an ``ended`` line."""
        name, stated = entry["attempt"], entry["log"]
        if attempt is None:
            self._find("left out", where, f"{name} ended and was never begun")
            return
        if stated is None:
            return
        path = self._folder / stated
        if Path(stated).parts[:2] != (LOGS, name) or ".." in Path(stated).parts:
            self._find("changed", where, f"the log of {name} is stated as {stated}")
            return
        if not path.is_file():
            self._find("left out", stated, "the log is missing")
            return
        sha256 = sha256_of(path)
        if sha256 != entry["sha256"]:
            self._find("changed", stated, "the log is not the one that was written")
        facts = facts_of(self._plan, path, self._maps)
        if facts.kind not in ("killed", "damaged"):  # logs that end within their first bytes are all the same
            if sha256 in self._seen:
                self._find("re-run", stated, f"is the same log as {self._seen[sha256]}")
            self._seen[sha256] = stated
        if not same(facts.document(), entry["facts"]):
            self._find("changed", where, f"what it says of {name} is not what its log says")
        if facts.kind != "damaged":
            with LogReader(path) as log:
                self._check_header(log.header, attempt, stated)

    def check_verdict(self, entry: Entry) -> None:
        """Take note of a judge's line."""
        self._verdicts.setdefault(entry["attempt"], []).append(entry)

    def check_files(self, state: State) -> None:
        """Look for logs and verdicts that the ledger does not name."""
        named = {attempt.ended["log"] for attempt in state.attempts.values() if attempt.ended is not None}
        unsettled = {attempt.name for attempt in state.unfinished}
        for path in sorted((self._folder / LOGS).rglob("*.mcap")):
            stated = path.relative_to(self._folder).as_posix()
            if stated not in named and path.parent.name not in unsettled:
                self._find("re-run", stated, "a log that the ledger does not name")
        for attempt in state.attempts.values():
            if attempt.ended is not None and attempt.ended["log"] is not None:
                self._check_verdicts(attempt.name, self._folder / attempt.ended["log"])

    def _check_header(self, header: EpisodeHeader, attempt: Attempt, where: str) -> None:
        begun, planned = attempt.begun, self._plan.policies[attempt.policy]
        if header.agent != attempt.policy:
            self._find("identity", where, f"is of policy {header.agent!r}, not of {attempt.policy!r}")
        if header.seed != begun["seed"]:
            self._find("identity", where, "ran with another seed")
        if header.episode.key != begun["episode"]:
            self._find("changed", where, "is of another episode: start, goal or scene differ")
        source = header.policy
        if planned.commitment and (source is None or source.digest != planned.commitment):
            self._find("identity", where, "is not of the sealed policy")
        if not planned.commitment and source is not None:
            if source.spec != planned.spec:
                self._find("identity", where, f"was run by {source.spec}, the plan names {planned.spec}")
            self._sources.setdefault(attempt.policy, set()).add(str(source.digest))
            if len(self._sources[attempt.policy]) == 2:
                self._find("identity", where, f"the files of policy {attempt.policy} changed during the campaign")
        self._tasks.add(repr(header.task))
        if len(self._tasks) == 2:
            self._find("changed", where, "the task is not that of the runs before")

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
        if sha256_of(path) != said[-1]["sha256"]:
            self._find("re-judged", where, "is not what the judges wrote")
            return
        try:
            with LogReader(log) as opened:
                verdicts = read_verdicts(log, opened.header).statements
        except RecordingError as error:
            self._find("re-judged", where, error.message.replace(str(self._folder), ""))
            return
        written = [(verdict.who, _judgment(verdict.judgment)) for verdict in verdicts]
        stated = [
            (verdict["by"], (verdict["success"] if not verdict["invalid"] else None, verdict["invalid"]))
            for verdict in said
        ]
        if any(verdict not in written for verdict in stated) or len(written) < len(stated):
            self._find("re-judged", where, "does not say what the ledger says")


def _judgment(judgment: str | None) -> tuple[bool | None, bool]:
    return {"success": True, "fail": False}.get(judgment or ""), judgment == "invalid"
