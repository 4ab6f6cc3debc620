"""Frauds on a finished campaign, each as a person with time would commit it: hashes are computed anew where needed.

The forger has no key of the ledger's signer, and no access to the heads that others kept; two frauds forge the whole
history and are found by these alone.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robot_runtime.campaign.contents import FIELD, parse_contents
from robot_runtime.campaign.facts import facts_of
from robot_runtime.campaign.ledger import Entry
from robot_runtime.campaign.outcomes import VIEWS, answer, closing, values
from robot_runtime.campaign.plan import Plan
from robot_runtime.campaign.state import State, stored_plan
from robot_runtime.campaign.verification import Verification
from robot_runtime.recording.integrity import Chain
from robot_runtime.recording.log_files import LEDGER_FILE, sha256_of
from robot_runtime.recording.verdict_files import add_verdict
from tests.benchmarks.runtime.log_edits import LogEdit

Line = dict[str, Any]


class Forger:
    """A campaign's folder under the hands of a forger.

    Args:
        folder: campaign folder that is changed.

    Attributes:
        lines: lines of the ledger; :meth:`write` renumbers and rechains them.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines: list[Line] = [json.loads(line) for line in (folder / LEDGER_FILE).read_bytes().splitlines()]

    def write(self, number: bool = True) -> None:
        """Write the ledger with a chain that holds."""
        chain, data = Chain(), []
        for n, line in enumerate(self.lines):
            content = {key: value for key, value in line.items() if key != "chain"} | ({"n": n} if number else {})
            data.append(chain.append(json.dumps(content, separators=(",", ":")).encode()) + b"\n")
        (self.folder / LEDGER_FILE).write_bytes(b"".join(data))

    def of_kind(self, kind: str) -> list[Line]:
        """The lines of a kind."""
        return [line for line in self.lines if line["kind"] == kind]

    def log(self, ended: Line) -> Path:
        """The log of an ``ended`` line."""
        return self.folder / str(ended["log"])

    def ended(self, policy: str, success: bool) -> Line:
        """The line of the first run of a policy that succeeded, or failed."""
        return next(
            line
            for line in self.of_kind("ended")
            if f"-{policy}-" in line["attempt"] and bool(line["facts"]["metrics"].get("success")) is success
        )

    def restate(self, ended: Line, plan: Plan) -> None:
        """Let the ledger say what a log says now."""
        ended["sha256"] = sha256_of(self.log(ended))
        ended["facts"] = facts_of(plan, self.log(ended)).document()

    def recompute(self) -> None:
        """Let the answers be those of the runs."""
        plan = stored_plan([entry_of(self.lines[0])])
        state = State(plan, ())
        for line in self.lines:
            if line["kind"] == "decision":
                line["starts"] = len(state.finished)
                for view in VIEWS:
                    line[view] = answer(plan, values(state, view)).document()
            state.add(entry_of(line))
            if line["kind"] == "closed":
                final = closing(state, answer(plan, values(state, plan.test.counts)))[1]
                line["answer"] = final.document()

    def edit(self, ended: Line, change: Callable[[LogEdit], None]) -> None:
        """Change a log, with a chain that holds."""
        log = LogEdit(self.log(ended))
        change(log)
        log.chain_again()
        log.write(self.log(ended))


def entry_of(line: Line) -> Entry:
    """A line as the ledger reads it."""
    return Entry(line["n"], line["kind"], line, json.dumps(line).encode())


def _cut_step(log: LogEdit) -> None:
    del log.entries[log.numbers("/step")[2]]


def _set_success(forger: Forger, ended: Line, value: float) -> None:
    ended["facts"]["metrics"] |= {"success": value, "spl": value}
    forger.recompute()
    forger.write()


def _cut_a_step(forger: Forger) -> None:
    log = LogEdit(forger.log(forger.of_kind("ended")[0]))
    _cut_step(log)
    log.write(forger.log(forger.of_kind("ended")[0]))


def _cut_a_step_and_restate(forger: Forger) -> None:
    ended = forger.of_kind("ended")[0]
    log = LogEdit(forger.log(ended))
    _cut_step(log)
    log.write(forger.log(ended))
    ended["sha256"] = sha256_of(forger.log(ended))
    forger.write()


def _move_the_goal(forger: Forger) -> None:
    ended = forger.ended("P2", success=False)

    def move(header: dict[str, Any]) -> None:
        header["episode"]["goals"][0]["x_m"] = header["episode"]["start"]["x_m"]
        header["episode"]["goals"][0]["y_m"] = header["episode"]["start"]["y_m"]

    forger.edit(ended, lambda log: log.change("/episode", 0, move))
    forger.restate(ended, _plan(forger))
    forger.recompute()
    forger.write()


def _swap_policies(forger: Forger) -> None:
    first, second = (line for line in forger.of_kind("begun")[:2])
    names = first["attempt"], second["attempt"]
    for line in forger.lines:
        if line.get("attempt") in names:
            line["attempt"] = names[1 - names.index(line["attempt"])]
        if line["kind"] == "begun" and line["attempt"] in names:
            line["policy"] = line["attempt"].split("-")[1]
    forger.recompute()
    forger.write()


def _swap_logs(forger: Forger) -> None:
    a, b = forger.of_kind("ended")[:2]
    content = forger.log(a).read_bytes()
    forger.log(a).write_bytes(forger.log(b).read_bytes())
    forger.log(b).write_bytes(content)
    for line in (a, b):
        forger.restate(line, _plan(forger))
    forger.recompute()
    forger.write()


def _run_as_other_policy(forger: Forger) -> None:
    ended = forger.ended("P2", success=False)
    other = forger.ended("P1", success=True)
    forger.log(ended).write_bytes(forger.log(other).read_bytes())
    forger.edit(ended, lambda log: log.change("/episode", 0, lambda header: header.update(agent="P2")))
    forger.restate(ended, _plan(forger))
    forger.recompute()
    forger.write()


def _drop_lines_of_bad_run(forger: Forger) -> None:
    bad = forger.ended("P2", success=False)["attempt"]
    forger.lines = [line for line in forger.lines if line.get("attempt") != bad]
    forger.write()


def _drop_bad_start(forger: Forger) -> None:
    bad = forger.ended("P2", success=False)["attempt"][:4]
    for folder in (forger.folder / "logs").glob(f"{bad}-*"):
        shutil.rmtree(folder)
    forger.lines = [line for line in forger.lines if not str(line.get("attempt", "")).startswith(bad)]
    forger.recompute()
    forger.write()


def _delete_log(forger: Forger) -> None:
    forger.log(forger.ended("P2", success=False)).unlink()


def _say_it_was_killed(forger: Forger) -> None:
    ended = forger.ended("P2", success=False)
    forger.log(ended).unlink()
    ended |= {"log": None, "sha256": None}
    ended["facts"] |= {"end": None, "kind": "killed", "metrics": {}}
    forger.recompute()
    forger.write()


def _set_clock_back(forger: Forger) -> None:
    for line in forger.lines[len(forger.lines) // 2 :]:
        line["at"] = "2020-01-01T00:00:00+00:00"
    forger.write()


def _edit_result(forger: Forger) -> None:
    _set_success(forger, forger.ended("P2", success=False), 1.0)


def _edit_verdict(forger: Forger) -> None:
    for path in (forger.folder / "logs").rglob("*.evidence.yaml"):
        path.write_text(path.read_text().replace("judgment: fail", "judgment: success"))


def _edit_verdict_line(forger: Forger) -> None:
    for line in forger.of_kind("verdict"):
        if line["success"] is False:
            line["success"] = True
    forger.recompute()
    forger.write()


def _judge_again(forger: Forger) -> None:
    add_verdict(forger.log(forger.ended("P1", success=True)), "Eve", judgment="fail")


def _remove_verdict(forger: Forger) -> None:
    removed = next(line for line in forger.of_kind("verdict"))
    forger.lines.remove(removed)
    forger.recompute()
    forger.write()


def _run_until_good(forger: Forger) -> None:
    """Another try of a run that had failed, as if a rule had asked for it."""
    bad = forger.ended("P2", success=False)
    good = forger.ended("P1", success=True)
    name = bad["attempt"][:-1] + "2"
    target = forger.folder / "logs" / name / forger.log(bad).name
    target.parent.mkdir()
    shutil.copy(forger.log(good), target)
    begun = next(line for line in forger.of_kind("begun") if line["attempt"] == bad["attempt"])
    place = forger.lines.index(bad) + 1
    log = str(target.relative_to(forger.folder))
    more = [begun | {"attempt": name}, bad | {"attempt": name, "log": log, "sha256": sha256_of(target)}]
    forger.lines[place:place] = more
    forger.restate(more[1], _plan(forger))
    forger.recompute()
    forger.write()


def _unreported_run(forger: Forger) -> None:
    source = forger.log(forger.ended("P1", success=True)).parent
    shutil.copytree(source, source.with_name(source.name[:-1] + "9"))


def _change_metric(forger: Forger) -> None:
    forger.lines[0]["plan"]["test"]["metric"] = "soft_spl"
    forger.recompute()
    forger.write()


def _change_alpha_and_hash(forger: Forger) -> None:
    plan = forger.lines[0]["plan"]
    plan["test"]["alpha"] = 0.4
    forger.lines[0]["plan_sha256"] = stored_plan([entry_of(forger.lines[0])]).digest
    forger.recompute()
    forger.write()


def _reorder(forger: Forger) -> None:
    forger.lines[0]["plan"]["order"]["seed"] = 4
    forger.lines[0]["plan_sha256"] = stored_plan([entry_of(forger.lines[0])]).digest
    forger.write()


def _claim_an_answer(forger: Forger) -> None:
    last = forger.of_kind("decision")[-1]
    for view in VIEWS:
        last[view] |= {"decision": "P1", "p_value": 0.01}
    forger.write()


def _stop_early(forger: Forger) -> None:
    """Half of the campaign, closed as if it had been all."""
    ended = [line["attempt"] for line in forger.of_kind("ended")]
    dropped = ended[len(ended) // 2 :]
    for name in dropped:
        shutil.rmtree(forger.folder / "logs" / name)
    forger.lines = [line for line in forger.lines if line.get("attempt") not in dropped]
    forger.recompute()
    forger.write()


def _remove_help(forger: Forger) -> None:
    forger.lines.remove(forger.of_kind("event")[0])
    (forger.folder / LEDGER_FILE).write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in forger.lines))


def _forge_everything(forger: Forger) -> None:
    """A failed run becomes a short success in log, ledger and answers: nothing in the folder contradicts it."""
    ended = forger.ended("P2", success=False)

    def stay(log: LogEdit) -> None:
        log.change("/end", 0, lambda end: end.update(detail=end.get("detail", "") + " "))

    forger.edit(ended, stay)
    forger.restate(ended, _plan(forger))
    forger.recompute()
    forger.write()


def _plan(forger: Forger) -> Plan:
    return stored_plan([entry_of(forger.lines[0])])


@dataclass(frozen=True)
class Fraud:
    """A fraud.

    Attributes:
        name: description of the fraud.
        commit: function that carries it out.
        published: whether it can be found only with the plan as it was published.
        witnessed: whether it can be found only with a head of the ledger that others kept.
    """

    name: str
    commit: Callable[[Forger], None]
    published: bool = False
    witnessed: bool = False


FRAUDS = (
    Fraud("a step is cut out of a log", _cut_a_step),
    Fraud("a step is cut out, and the log's hash is written anew", _cut_a_step_and_restate),
    Fraud("the goal is moved to where the robot was", _move_the_goal),
    Fraud("the policies of two runs are swapped in the ledger", _swap_policies),
    Fraud("the logs of two runs are swapped", _swap_logs),
    Fraud("another policy's log is passed off", _run_as_other_policy),
    Fraud("a bad run is dropped from the ledger", _drop_lines_of_bad_run),
    Fraud("a bad start is dropped, logs included", _drop_bad_start),
    Fraud("the log of a bad run is deleted", _delete_log),
    Fraud("a bad run is said to have been killed", _say_it_was_killed),
    Fraud("the clock is set back", _set_clock_back),
    Fraud("a result is edited", _edit_result),
    Fraud("a verdict is edited beside the log", _edit_verdict),
    Fraud("a verdict is edited in the ledger", _edit_verdict_line),
    Fraud("a run is judged again, outside", _judge_again),
    Fraud("a verdict is removed", _remove_verdict),
    Fraud("a run is repeated until it is good", _run_until_good),
    Fraud("a run is not reported", _unreported_run),
    Fraud("the metric is changed afterwards", _change_metric),
    Fraud("alpha is changed afterwards, hashes too", _change_alpha_and_hash, published=True),
    Fraud("the order of the runs is not the plan's", _reorder),
    Fraud("an answer is claimed", _claim_an_answer),
    Fraud("the campaign is stopped when it looks good", _stop_early),
    Fraud("a report of help is removed", _remove_help),
    Fraud("a whole history is forged without a contradiction", _forge_everything, witnessed=True),
)


def is_found(fraud: Fraud, honest: Path, folder: Path) -> bool:
    """Commit a fraud on a copy of an honest campaign, and return whether the verification finds it.

    Args:
        fraud: fraud to commit.
        honest: folder of the campaign.
        folder: folder of the copy; must not exist.
    """
    shutil.copytree(honest, folder)
    before = Forger(honest)
    fraud.commit(Forger(folder))
    first = before.lines[0]
    published = (_plan(before), parse_contents(first[FIELD], "published")) if fraud.published else (None, None)
    heads = {len(before.lines) - 1: before.lines[-1]["chain"]} if fraud.witnessed else None
    return bool(Verification(folder, published[0], heads, published[1]).findings)
