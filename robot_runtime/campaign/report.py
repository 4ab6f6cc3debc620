"""Report of a campaign: one page for a reviewer, and the scores as files for other programs."""

import csv
import io
import json
import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from robot_runtime.campaign.outcomes import VIEWS, Answer, RunningAnswer, answer, sentence, value, values
from robot_runtime.campaign.state import Attempt, State
from robot_runtime.campaign.verification import Verification
from robot_runtime.common.creating import creating
from robot_runtime.common.yaml_text import dump_yaml
from robot_runtime.errors import ConfigError, RecordingError
from robot_runtime.metrics.measures import definitions
from robot_runtime.metrics.settings import Rules
from robot_runtime.recording.reader import LogReader
from robot_runtime.scenes.scene import Scene
from robot_runtime.scoring.failure_causes import FailureCause, cause_text
from robot_runtime.scoring.report import pages
from robot_runtime.scoring.report.charts import Chart, element
from robot_runtime.scoring.report.export import write_json, write_parquet
from robot_runtime.scoring.report.map_drawing import Box, circle, map_box, polyline, scene_shapes, unit_of
from robot_runtime.scoring.report.panels import submission_formats
from robot_runtime.scoring.report.rendering import render
from robot_runtime.scoring.statistics.agreement import agreement_lines
from robot_runtime.scoring.summary import EpisodeScore

PAGE, RUNS = "index.html", "runs"
RULES = Rules(policy_faults="failure")


def write_report(folder: Path, out: Path) -> list[str]:
    """Write ``index.html``, ``result.json``, ``runs.csv`` and, for each policy, its scores and submissions.

    Returns:
        A line about each file that was not written, and why.

    Raises:
        RuntimeFault: there is no campaign, or a file cannot be written.
    """
    verified = Verification(folder)
    state = verified.state
    with creating(out, "give another folder") as draft:
        draft.mkdir(exist_ok=True)
        (draft / "result.json").write_text(json.dumps(verified.document(), indent=2) + "\n", encoding="utf-8")
        (draft / "runs.csv").write_text(_csv(state), encoding="utf-8")
        scores = _scores(folder, draft, state)
        (draft / PAGE).write_text(_page(verified, scores, folder, out), encoding="utf-8")
        return [line for policy, found in scores.items() for line in _write_scores(folder, draft, state, policy, found)]


def _scores(folder: Path, out: Path, state: State) -> dict[str, list[EpisodeScore]]:
    """Scores of each policy's runs that count, by paths in the campaign's folder. A page of each run is written."""
    logs: dict[Path, str] = {}
    for policy in sorted(state.plan.policies):
        counted = [progress.valid[policy] for _, progress in state.finished if policy in progress.valid]
        logs |= {folder / one.ended["log"]: policy for one in counted if one.ended is not None and one.ended["log"]}
    scores: dict[str, list[EpisodeScore]] = {policy: [] for policy in sorted(state.plan.policies)}
    for score in pages.write_report(list(logs), out / RUNS, rules=RULES):
        scores[logs[score.path]].append(replace(score, path=score.path.relative_to(folder)))
    return scores


def _write_scores(folder: Path, out: Path, state: State, policy: str, scores: list[EpisodeScore]) -> list[str]:
    """Write the files of a policy."""
    if not scores:
        return [f"{policy}: no run counts"]
    write_json(out / f"{policy}.scores.json", scores)
    whole = [replace(score, path=folder / score.path) for score in scores]
    missing: list[str] = []
    missing += _tried(out / f"{policy}.parquet", lambda path: write_parquet(path, scores))
    for form in submission_formats().values():
        write = partial(form.write, scores=whole, split=state.plan.split or None)
        missing += _tried(out / f"{policy}.{form.suffix}", write)
    return missing


def _tried(path: Path, write: Any) -> list[str]:
    try:
        write(path)
    except (ConfigError, RecordingError) as error:  # not every task has every challenge's form
        path.unlink(missing_ok=True)
        return [f"{path.name}: {error.message}"]
    return []


def _csv(state: State) -> str:
    """A row per attempt."""
    text = io.StringIO()
    conditions = ("placement_m", "placement_deg", "battery", "battery_end", "light", "duration_s")
    of_runs = [attempt.facts.metrics for attempt in state.attempts.values() if attempt.facts is not None]
    names = list(definitions(name for metrics in of_runs for name in metrics))
    head = ["start", "episode", "policy", "attempt", "robot", "counts", "kinds", *VIEWS, *names, *conditions, "log"]
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    for attempt in state.attempts.values():
        progress = state.progress(attempt.start)
        counts = progress.valid.get(attempt.policy) is attempt and progress.done
        facts = attempt.facts
        metrics: Mapping[str, Any] = {} if facts is None else facts.metrics
        row: list[Any] = [attempt.start, state.starts[attempt.start].episode.id, attempt.policy, attempt.name]
        row += [attempt.robot, counts, " ".join(attempt.kinds)]
        row += [value(state, attempt, view) if counts else None for view in VIEWS]
        row += [metrics.get(name) for name in names]
        row += [None if facts is None else getattr(facts, name) for name in conditions]
        row += [None if attempt.ended is None else attempt.ended["log"]]
        writer.writerow(row)
    return text.getvalue()


def _page(verified: Verification, scores: Mapping[str, list[EpisodeScore]], folder: Path, out: Path) -> str:
    state, plan = verified.state, verified.plan
    scored = [score for listed in scores.values() for score in listed]
    causes = {score.path.parent.name: score.cause for score in scored if score.cause is not None}
    links = {
        score.path.parent.name: (f"{RUNS}/{pages.PAGES}/{i}.html", quote(os.path.relpath(folder / score.path, out)))
        for i, score in enumerate(scored)
    }
    names = sorted(plan.policies)
    ended, tested = verified.ending
    answers = {view: answer(plan, values(state, view)) for view in VIEWS} | {plan.test.counts: tested}
    drawings, pictures = _starts_seen(folder, state)
    words = {"decided": "answered", "undecided": "no answer", "all_run": "all run", None: "not ended"}
    compared = plan.compared
    return render(
        "campaign.html",
        "robot_runtime.campaign",
        plan=plan,
        state=words[ended],
        ended=ended,
        answer=_named(state, sentence(plan, tested)),
        findings=verified.findings,
        notes=verified.notes,
        unchecked="; ".join(verified.unchecked),
        given_up=[
            f"With the missing runs of starts that were given up as {name}: {_named(state, result['decision'])}."
            for name, result in verified.with_given_up().items()
        ],
        document=verified.document(),
        names=[_named(state, name) for name in names],
        results=[_result(state, view, result, names) for view, result in answers.items()],
        difference="-" if compared is None else _named(state, f"{compared[1]} less {compared[0]}"),
        plots=_plots(state) if compared is not None and state.finished else [],
        policies=[(name, _policy(state, name)) for name in names],
        level=f"{100 * (1 - plan.test.alpha):g} %",
        sessions=verified.sessions,
        causes=_causes(state, causes, names),
        kinds=_kinds(state, names),
        judges=_judges(state),
        remarks=[(attempt.name, by, text) for attempt in state.attempts.values() for by, text in attempt.remarks],
        drawings=drawings,
        pictures=pictures,
        starts=[_start(state, number, names, causes, links) for number in sorted(state.by_start)],
        plan_text=dump_yaml(plan.document()),
    )


def _named(state: State, text: str) -> str:
    """A text with the names of unblinded policies next to their sealed ones."""
    if state.unblinded is None:
        return text
    who = {name: unsealed["name"] for name, unsealed in state.unblinded["policies"].items()}
    sealed = "|".join(sorted(map(re.escape, who), key=len, reverse=True))
    return re.sub(rf"(?<![\w.-])({sealed})(?![\w-])", lambda match: f"{who[match[1]]} ({match[1]})", text)


def _result(state: State, view: str, result: Answer, names: list[str]) -> dict[str, Any]:
    plan = state.plan
    interval = "-" if result.low is None or result.high is None else f"{result.low:+.3f} .. {result.high:+.3f}"
    return {
        "view": view,
        "tested": view == plan.test.counts and plan.compared is not None,
        "starts": result.pairs,
        "means": [f"{result.means[name]:.3f}" if name in result.means else "-" for name in names],
        "difference": "-" if result.mean is None else f"{result.mean:+.3f}",
        "interval": interval,
        "p": "-" if result.p_value is None else f"{result.p_value:.2g}",
        "answer": {"continue": "not yet", "single": "-", "several": "-"}.get(
            result.decision, _named(state, result.decision)
        ),
    }


def _plots(state: State) -> list[Markup]:
    """Interval and p-value after each start, as they were known then."""
    plan = state.plan
    running = RunningAnswer(plan)
    after = [running.add(start) for start in values(state, plan.test.counts)]
    xs = [float(result.pairs) for result in after]
    last = max(2.0, xs[-1])
    difference = Chart(f"difference in {plan.test.metric}, and its interval at any time", (1.0, last), (-1.0, 1.0))
    difference.y_ticks()
    difference.x_ticks(whole=True, title="starts")
    for css, line in (
        ("shortest", [result.low for result in after]),
        ("track", [result.mean for result in after]),
        ("shortest", [result.high for result in after]),
    ):
        difference.curve(css, xs, line)
    p_value = Chart("p at any time, and alpha", (1.0, last), (0.0, 1.0))
    p_value.y_ticks()
    p_value.x_ticks(whole=True, title="starts")
    p_value.level("limit", plan.test.alpha)
    p_value.curve("track", xs, [result.p_value for result in after])
    return [difference.svg(), p_value.svg()]


def _policy(state: State, name: str) -> str:
    planned = state.plan.policies[name]
    if state.unblinded is not None:
        unsealed = state.unblinded["policies"][name]
        arguments = " ".join(f"{key}={value}" for key, value in unsealed["policy"].get("arguments", {}).items())
        return f"{unsealed['name']}: {unsealed['policy']['spec']} {arguments}".rstrip()
    return f"sealed, commitment {planned.commitment}" if planned.commitment else str(planned.source)


def _kinds(state: State, names: list[str]) -> list[dict[str, Any]]:
    kinds = sorted({kind for attempt in state.attempts.values() for kind in attempt.kinds})
    return [
        {
            "kind": kind.replace("_", " "),
            "counts": [
                sum(kind in attempt.kinds for attempt in state.attempts.values() if attempt.policy == name)
                for name in names
            ],
            **{view: state.plan.counting.rule(kind, view) for view in VIEWS},
        }
        for kind in kinds
    ]


def _causes(state: State, causes: Mapping[str, FailureCause], names: list[str]) -> list[tuple[str, list[int]]]:
    """Number of each policy's failed runs by cause, the most frequent first."""
    counts = Counter((cause.name, state.attempts[name].policy) for name, cause in causes.items())
    rows = [(cause_text(cause), [counts[cause, name] for name in names]) for cause in {name for name, _ in counts}]
    return sorted(rows, key=lambda row: (-sum(row[1]), row[0]))


def _judges(state: State) -> str:
    judged = [attempt for attempt in state.attempts.values() if attempt.judges]
    if not judged:
        return ""
    who = ", ".join(sorted({by for attempt in judged for by in attempt.judges}))
    given = [
        {by: said.success for by, said in attempt.judges.items() if said.success is not None} for attempt in judged
    ]
    return ". ".join([f"{len(judged)} runs were judged by {who}", *agreement_lines(given)]) + "."


def _starts_seen(folder: Path, state: State) -> tuple[list[tuple[str, Box, Markup]], dict[int, str]]:
    """Each scene with its map's box, and the map with starts and goals; the first picture from each start."""
    scenes: dict[str, Scene] = {}
    marks: dict[str, list[Markup]] = {}
    pictures: dict[int, str] = {}
    for number, progress in state.finished:
        logs = [one.ended["log"] for one in progress.valid.values() if one.ended is not None and one.ended["log"]]
        for path in logs[:1]:
            with LogReader(folder / path) as log:
                scene, episode = log.header.scene, log.header.episode
                for record in islice(log.steps(), 1):
                    pictures[number] = pages.jpeg_uri(log.frame(record).rgb)
            scenes.setdefault(scene.name, scene)
            unit, start = unit_of(map_box(scene.map)), episode.start
            ways = [polyline("shortest", [(start.x_m, start.y_m), (goal.x_m, goal.y_m)]) for goal in episode.goals]
            goals = [circle("goal", goal.x_m, goal.y_m, 1.3 * unit, f"goal {number}") for goal in episode.goals]
            own = circle("start", start.x_m, start.y_m, 1.3 * unit, f"start {number}: {episode.id}")
            text = element("text", "number", str(number), x=start.x_m + 2 * unit, y=-start.y_m, font_size=2.4 * unit)
            marks.setdefault(scene.name, []).extend([*ways, *goals, own, text])
    shapes = {name: scene_shapes(scene) + Markup("").join(marks[name]) for name, scene in scenes.items()}
    return [(name, map_box(scene.map), shapes[name]) for name, scene in scenes.items()], pictures


def _start(
    state: State,
    number: int,
    names: list[str],
    causes: Mapping[str, FailureCause],
    links: Mapping[str, tuple[str, str]],
) -> dict[str, Any]:
    start, progress = state.starts[number], state.progress(number)
    repeats = [*progress.repeats, *([f"given up: {progress.given_up}"] if progress.given_up else [])]
    return {
        "number": number,
        "episode": start.episode.id,
        "order": " ".join(start.policies),
        "runs": [_run(state, progress.valid.get(name), causes, links) for name in names],
        "repeats": repeats,
    }


def _run(
    state: State, attempt: Attempt | None, causes: Mapping[str, FailureCause], links: Mapping[str, tuple[str, str]]
) -> dict[str, Any]:
    if attempt is None or attempt.facts is None:
        return {"css": "", "text": "-", "detail": "", "why": "", "links": None}
    strict, lenient = (value(state, attempt, view) for view in VIEWS)
    text = f"{strict:.2f}" if strict == lenient else f"{strict:.2f} / {lenient:.2f}"
    facts = attempt.facts
    placed = "" if facts.placement_m is None else f", placed {100 * facts.placement_m:.0f} cm off"
    kinds = f", {', '.join(attempt.kinds).replace('_', ' ')}" if attempt.kinds else ""
    end = (facts.end or "no end").replace("_", " ")
    detail = f"{end}, {facts.metrics.get('steps') or 0:.0f} steps, {facts.duration_s:.0f} s{placed}{kinds}"
    cause = causes.get(attempt.name)
    why = "" if cause is None else f"{cause.text}: {cause.evidence}"
    shown = {"text": text, "detail": detail, "why": why, "links": links.get(attempt.name)}
    return {"css": "won" if strict >= 0.5 else "lost", **shown}
