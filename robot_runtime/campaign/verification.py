"""Verification of a campaign from its folder alone: what was changed, left out, run again or judged again.

Everything that can be computed again is: the order of the runs from the plan's seed, each run's facts from its log, the
values and the answer after each start. What cannot be computed is chained by hash, and signed where the plan says so. A
history that was forged completely, logs included, is found by the signatures, or by heads of the ledger that others
kept (the plan's hook posts them).
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from robot_runtime.campaign import outcomes
from robot_runtime.campaign.contents import FIELD, Contents, contents_of, parse_contents
from robot_runtime.campaign.counting import changed, digest
from robot_runtime.campaign.ledger import Entry, parse_line, read_bytes
from robot_runtime.campaign.lines import RULES, check_line
from robot_runtime.campaign.plan import Plan
from robot_runtime.campaign.schedule import EpisodeName
from robot_runtime.campaign.sealing import check_commitments, is_signed, sealed_policies
from robot_runtime.campaign.state import State, stored_plan, weigh
from robot_runtime.campaign.verified_logs import LogCheck, What, check_times, is_linked, versions, without_none
from robot_runtime.common.version import VERSION
from robot_runtime.errors import ConfigError, RuntimeFault
from robot_runtime.recording.integrity import Chain, stated_digest
from robot_runtime.recording.log_files import LEDGER_FILE

MAX_FINDINGS = 1000
"""Findings after which no more lines of a ledger are looked at."""

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
        contents: contents that were published with the plan; None if they were not.

    Attributes:
        findings: problems found; empty for an honest campaign.
        notes: what an honest campaign may have, and a reader should know: clocks that were set, repetitions.
        entries: lines of the ledger that can be read.
        plan: plan of the ledger.
        state: state after the ledger's last line, with the facts that the logs prove.

    Raises:
        ConfigError: there is no campaign, or its first line has no plan.
        RecordingError: the ledger cannot be read.
    """

    def __init__(
        self,
        folder: Path,
        plan: Plan | None = None,
        heads: Mapping[int, str] | None = None,
        contents: Contents | None = None,
    ) -> None:
        self.findings: list[Finding] = []
        self.notes: list[str] = []
        self._folder = folder
        self.entries = self._read_ledger()
        self.plan = stored_plan(self.entries)
        self._published, self._heads = plan, dict(heads or {})
        self._published_contents = contents
        self.state, self._told = State(self.plan, ()), State(self.plan, ())
        self._answers = {view: outcomes.RunningAnswer(self.plan) for view in outcomes.VIEWS}
        self._contents = self._read_contents()
        self._logs = LogCheck(folder, self.plan, self._contents or contents, self._find)
        self._check_plan()
        self._check_heads()
        self._steps_s = check_times(self.entries, self._find, self.notes.append)
        if self.plan.signer:
            self._check_signatures()
        for entry in self.entries:
            if self._gives_up(f"line {entry.n + 1}"):
                break
            self._replay(entry)
        self._check_end()
        self._logs.check_files(self._told)

    @property
    def sessions(self) -> str:
        """Time of the campaign, and number of its sessions and runs."""
        count = sum(entry.kind == "session" for entry in self.entries)
        first, last = (str(self.entries[place].get("at"))[:16].replace("T", " ") for place in (0, -1))
        return f"{first} to {last} UTC, {count} session{'' if count == 1 else 's'}, {len(self.state.attempts)} runs"

    @property
    def ending(self) -> tuple[str | None, outcomes.Answer]:
        """How the campaign ended, and its answer, both by the logs; see :func:`.outcomes.closing`."""
        return outcomes.closing(self.state, self._answer_in(self.plan.test.counts))

    @property
    def unchecked(self) -> list[str]:
        """What cannot be checked with what was given."""
        lines = []
        if not self._heads:
            lines.append("whether lines at the ledger's end were cut off or replaced (no --head given)")
        if not self.plan.signer:
            lines.append("who wrote the ledger (it is not signed)")
        else:
            lines.append("whether the operator has the signer's key and rewrote the ledger")
        if self._published is None:
            lines.append("whether plan and contents are those published (no --plan given)")
        elif self._published_contents is None:
            lines.append("whether the files are those published (the given plan has no contents)")
        if self._contents is None:
            lines.append("what the files were when the campaign began (its version did not write it down)")
        if self.state.rules < RULES:
            lines.append("repetitions after the end of the campaign's process (its version did not bound them)")
        return lines

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
        for view in outcomes.VIEWS:
            for start, by_policy in zip(starts, outcomes.values(state, view), strict=True):
                start[view] = by_policy
        ended, final = self.ending
        answers = {view: self._answer_in(view) for view in outcomes.VIEWS} | {self.plan.test.counts: final}
        document = {
            "campaign": self.plan.name,
            "plan_sha256": self.plan.digest,
            "contents_sha256": None if self._contents is None else digest(self._contents.document()),
            "lines": len(self.entries),
            "head": stated_digest(self.entries[-1].raw),
            "signed": bool(self.plan.signer),
            "ended": ended,
            "findings": [asdict(finding) for finding in self.findings],
            "notes": self.notes,
            "answer": {view: answers[view].document() for view in outcomes.VIEWS},
            "given_up": {number: state.progress(number).given_up for number in state.given_up},
            "with_given_up": self.with_given_up(),
            "starts": starts,
            "attempts": {
                name: {"kinds": attempt.kinds, "facts": None if attempt.facts is None else attempt.facts.document()}
                for name, attempt in state.attempts.items()
            },
        }
        result: dict[str, Any] = outcomes.rounded(document)
        return result

    def with_given_up(self) -> dict[str, dict[str, Any]]:
        """The tested answer with the starts that were given up: their missing runs failures, or successes."""
        counts = self.plan.test.counts
        return {
            name: outcomes.answer(self.plan, outcomes.values_with_given_up(self.state, counts, missing)).document()
            for name, missing in (("failure", 0.0), ("success", 1.0))
            if self.state.given_up
        }

    def _answer_in(self, view: Any) -> outcomes.Answer:
        return self._answers[view].after(outcomes.values(self.state, view))

    def _find(self, what: What, where: str, detail: str) -> None:
        self.findings.append(Finding(what, where, detail))

    def _gives_up(self, where: str) -> bool:
        """Whether there are too many findings to look at a line and those after it, which is the last finding."""
        if len(self.findings) < MAX_FINDINGS:
            return False
        self._find("changed", where, "is not looked at, nor is anything after it: too many findings")
        return True

    # --- the ledger -------------------------------------------------------------------------------------------------

    def _read_ledger(self) -> list[Entry]:
        """All lines that can be read; breaks of the chain are findings."""
        path = self._folder / LEDGER_FILE
        if not path.is_file():
            raise ConfigError(f"no campaign in {self._folder}", "give the folder of a campaign, or a copy of it")
        if is_linked(self._folder, path):
            self._find("changed", LEDGER_FILE, "is a link to somewhere else")
        data = read_bytes(path)
        entries: list[Entry] = []
        chain = Chain()
        for number, raw in enumerate(data[: data.rfind(b"\n") + 1].split(b"\n")[:-1]):
            where = f"line {number + 1}"
            if self._gives_up(where):
                break
            entry = parse_line(raw)
            try:
                if entry is None:
                    raise ConfigError("is not a line of a ledger", "restore it")
                check_line(replace(entry, n=number))
            except ConfigError as error:
                self._find("changed", where, error.message)
                chain.digest = stated_digest(raw)
                continue
            if not chain.follows(raw):
                self._find("changed", where, "does not continue the chain: it or a line before was altered")
                chain.digest = stated_digest(raw)
            elif entry.n != number:
                self._find("left out", where, f"has the number {entry.n}")
            entries.append(entry)
        return entries

    def _read_contents(self) -> Contents | None:
        stated = self.entries[0].get(FIELD)
        if stated is None:
            return None
        try:
            contents = parse_contents(stated, "the contents")
            contents.parsed_task()
        except RuntimeFault as error:
            self._find("changed", "line 1", f"its contents are malformed: {error.message}")
            return None
        return contents

    def _check_plan(self) -> None:
        first, published = self.entries[0], self._published
        if first.get("plan_sha256") != digest(first.get("plan")):
            self._find("changed", "line 1", "the plan is not the one of its hash")
        if published is not None and published.digest != self.plan.digest:
            names = changed(published.document(), self.plan.document())
            self._find("changed", "line 1", f"the plan differs from the one given: {', '.join(names)}")
        if any(entry.kind == "plan" for entry in self.entries[1:]):
            self._find("changed", "ledger", "there is more than one plan")
        given = self._published_contents or self._contents_here()
        for contents, whose in ((self._contents, "its"), (given, "the published")):
            if contents is None:
                continue
            if contents.episodes != first.get("episodes_sha256"):
                self._find("changed", "line 1", f"the file of episodes is not that of {whose} contents")
            if contents.starts != digest(first["episodes"]):
                self._find("changed", "line 1", f"the episodes are not those of {whose} contents")
            for number, (robot, planned) in enumerate(
                zip(contents.robots, self.plan.document()["robots"], strict=False)
            ):
                if robot.planned != planned:
                    self._find("changed", "line 1", f"robot {number} is not that of {whose} contents")
        own = self._contents
        if own is None and self._published_contents is not None:
            self._find("changed", "line 1", "has no contents, although they were published")
        if own is not None and given is not None:
            names = changed(own.document(), given.document())
            if differing := [name for name in names if name != "software"]:
                self._find("changed", "line 1", f"the contents differ from those published: {', '.join(differing)}")
            if "software" in names:
                self.notes.append("the plan was published with other versions of the software than it was run with")
        self._check_software()

    def _contents_here(self) -> Contents | None:
        """Contents of the plan given by its files here; None without them, or with another version of the software."""
        own = self._contents
        if self._published is None or own is None or own.software.get("robot_runtime") != VERSION:
            return None
        names = [EpisodeName(n, *listed) for n, listed in enumerate(self.entries[0]["episodes"])]
        try:
            return replace(contents_of(self._published, names), software=own.software)
        except (RuntimeFault, OSError):  # a copy, without the files: `unchecked` says so
            return None

    def _check_software(self) -> None:
        """Compare the versions in the first line with those of the sessions."""
        stated = versions(self.entries[0].get("software", {}))
        if self._contents is not None and not outcomes.same(stated, without_none(versions(self._contents.software))):
            self._find("changed", "line 1", "the software is not that of its contents")
        sessions = [versions(entry["provenance"]) for entry in self.entries if entry.kind == "session"]
        if sessions and stated and not outcomes.same(sessions[0], stated):
            self._find("changed", "line 1", "the software is not that of the first session")
        if any(not outcomes.same(before, after) for before, after in pairwise(sessions)):
            self.notes.append("the software was changed between sessions")

    def _check_heads(self) -> None:
        for number, head in sorted(self._heads.items()):
            where = f"line {number + 1}"
            if number >= len(self.entries):
                self._find("left out", where, "was seen by others and is not there")
            elif stated_digest(self.entries[number].raw) != head:
                self._find("changed", where, "is not what others have seen: it or a line before was altered")

    def _check_signatures(self) -> None:
        before = ""
        for entry in self.entries:
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
        proved = entry
        if self._told.closed is not None and entry.kind in ("event", "verdict"):
            self._find("re-judged", where, f"{entry.kind} after the campaign had ended")
        try:
            if entry.kind == "begun":
                self._check_begun(entry, where)
            elif entry.kind == "session":
                self._logs.session = entry
            elif entry.kind == "ended":
                attempt = self._told.attempts.get(entry["attempt"])
                begun = entry.n if attempt is None else attempt.begun.n
                slack_s = sum(step for number, step in self._steps_s.items() if begun < number <= entry.n)
                facts = self._logs.check_run(entry, attempt, where, slack_s)
                proved = replace(entry, content={**entry.content, "facts": facts.document()})
            elif entry.kind == "verdict":
                self._logs.check_verdict(entry, self._told.attempts.get(entry["attempt"]), where)
            elif entry.kind == "event":
                self._check_event(entry, where)
            elif entry.kind == "decision":
                self._check_decision(entry, where)
            elif entry.kind == "closed":
                self._check_closed(entry, where)
            elif entry.kind == "unblinded":
                for problem in check_commitments(self.plan, sealed_policies(entry["policies"], where)):
                    self._find("identity", where, problem)
            self._told.add(entry)
            self.state.add(proved)
        except (RuntimeFault, KeyError, TypeError, ValueError, IndexError) as error:
            message = error.message if isinstance(error, RuntimeFault) else repr(error)
            self._find("changed", where, f"does not fit: {message}")

    def _check_begun(self, entry: Entry, where: str) -> None:
        state = self._told
        if self._logs.session is None:
            self._find("left out", where, "a run before any session")
        if state.closed is not None:
            self._find("re-run", where, "a run after the campaign had ended")
        if state.unblinded is not None:
            self._find("identity", where, "a run after the policies were unblinded")
        if self._answer_in(self.plan.test.counts).ends:
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

    def _check_event(self, entry: Entry, where: str) -> None:
        """A person who knows the result must not decide whether it counts."""
        attempt = self._told.attempts[entry["attempt"]]
        if attempt.ended is None or self.plan.counting.repeated([entry["what"]]) is None:
            return
        what = f"{entry['what']} of {attempt.name}"
        text = f"{what} was reported after its end, by {entry['by']}, and makes it be run again"
        if self._told.rules < RULES:
            self.notes.append(f"{where}: {text}")
        else:
            self._find("re-run", where, text)

    def _check_decision(self, entry: Entry, where: str) -> None:
        done = len(self.state.finished)
        if entry["starts"] != done:
            self._find("answer", where, f"counts {entry['starts']} starts, {done} are finished")
        for view in outcomes.VIEWS:
            if not outcomes.same(entry[view], self._answer_in(view).document()):
                self._find("answer", where, f"the {view} answer is not the one of the runs")

    def _check_closed(self, entry: Entry, where: str) -> None:
        state = self.state
        if state.closed is not None:
            self._find("changed", where, "the campaign had ended before")
        for one in (self._told, state):
            one.closed = one.closed or entry
        reason, final = outcomes.closing(state, self._answer_in(self.plan.test.counts))
        if reason is None:
            self._find("answer", where, f"the campaign ended as {entry['reason']!r} although runs were left")
        elif reason != entry["reason"]:
            self._find("answer", where, f"the campaign ended as {reason!r}, not as {entry['reason']!r}")
        if not outcomes.same(entry["answer"], final.document()):
            self._find("answer", where, "the last answer is not the one of the runs")
        if state.to_judge:
            self._find("answer", where, f"the campaign ended although {state.to_judge[0].name} was not judged")

    def _check_end(self) -> None:
        told, last = self._told, self._told.last_decision
        if len(told.finished) != (0 if last is None else last["starts"]) and not told.to_judge:
            self._find("left out", "ledger", "a finished start has no answer after it")
        for attempt in told.unfinished:
            sessions = [entry.n for entry in self.entries if entry.kind == "session"]
            if told.closed is not None or any(number > attempt.begun.n for number in sessions):
                self._find("left out", attempt.name, "the run has no end")
        unequal, differing = weigh(self.state)
        for text in unequal:
            self._find("re-run", "ledger", text)
        self.notes += differing
        for number in self.state.given_up:
            self.notes.append(f"start {number} was given up: {self.state.progress(number).given_up}")
