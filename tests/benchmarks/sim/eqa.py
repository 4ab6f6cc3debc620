"""``bench eqa``: the table of embodied question answering, and its rows."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tests.benchmarks.report import JsonFile, Row, report

if TYPE_CHECKING:
    from robot_runtime.policy import Policy
    from robot_runtime.scenes.scene import Scene
    from tests.benchmarks.sim.eqa_episodes import Outcome

MEMORY, PATH_MEMORY, LAST_FRAME = "memory", "shortest path + memory", "shortest path + last frame"
NAVIGATOR, LEARNED, PRIOR = "learned", "shortest path + learned", "prior"
Outcomes = dict[str, list["Outcome"]]


def eqa(
    flats: Annotated[int, typer.Option(min=0, help="Generated flats, which no agent was tuned on.")] = 2,
    questions: Annotated[int, typer.Option(min=1, help="Questions per scene, each from T-10, T-30 and T-50.")] = 4,
    house: Annotated[Path | None, typer.Option(help="An imported scene besides.")] = None,
    asked: Annotated[
        int, typer.Option(min=0, help="Generated flats, the first ones among them, in which the answerers are asked.")
    ] = 10,
    judged: Annotated[
        int, typer.Option(min=2, help="Generated flats, the first ones among them, in which the judge is measured.")
    ] = 2,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of flats, questions and robot.")] = 1,
    json: JsonFile = None,
) -> None:
    """Measure the agents of embodied question answering on the simulated robot: navigation and answers.

    The table has the metrics of Das et al. 2018, table 1, for starts 10, 30 and 50 actions before the target, with 95 %
    intervals over episodes. Learned answerers are asked at the ends of paths that nothing drives, so that more flats
    cost little. Some seven minutes on one core.
    """
    from robot_runtime.common.console import console
    from robot_runtime.scenes.scene import load_scene
    from sim_bridge.rendering import gl_context

    gl_context.choose_backend()  # before the first import of mujoco, which chooses a backend then
    outcomes, other = measure(flats, questions, house, asked, judged, seed)
    own = None if house is None else load_scene(house).name
    found: list[Row] = []
    for name, part in by_place(outcomes, own).items() if outcomes else ():
        found += rows(part, "" if not found else "house_")
        console.print(f"{name}\n{table(part)}\n", soft_wrap=True, markup=False, highlight=False)
    report("eqa", found + other, json, console)


def measure(
    flats: int, questions: int, house: Path | None, asked: int, judged: int, seed: int
) -> tuple[Outcomes, list[Row]]:
    """Run every agent on the same episodes; the outcomes by agent, and the rows of what needs no episodes."""
    from robot_runtime.common.console import progress_bar
    from robot_runtime.scenes.scene import load_scene
    from tests.benchmarks.sim.eqa_answerers import answerer_rows
    from tests.benchmarks.sim.eqa_episodes import STARTS, TASK, bench_episodes, bench_scenes, run_agent
    from tests.benchmarks.sim.eqa_judge import judge_rows

    outcomes: Outcomes = {}
    with tempfile.TemporaryDirectory() as folder, progress_bar() as progress:
        bar = progress.add_task("flats", total=max(flats, asked, judged), note="")
        made = bench_scenes(Path(folder), max(flats, asked, judged), seed, lambda: progress.advance(bar))
        scenes: list[Scene] = made[:flats] + ([] if house is None else [load_scene(house)])
        agents = _agents()
        bar = progress.add_task("episodes", total=len(agents) * len(scenes) * questions * len(STARTS), note="")
        for scene in scenes:
            episodes = bench_episodes(scene, questions, seed)
            for name, policy in agents.items():
                found = run_agent(policy, scene, episodes, seed, lambda: progress.advance(bar))
                outcomes.setdefault(name, []).extend(found)
        bar = progress.add_task("answerers", total=asked, note="")
        other: list[Row] = []
        if asked:
            other += answerer_rows(made[:asked], agents[NAVIGATOR], seed, lambda: progress.advance(bar))
        other += judge_rows(made[:judged], TASK, seed)
    return outcomes, other


def _agents() -> dict[str, Policy]:
    from robot_runtime.policies import load_policy
    from robot_runtime.task_kinds.eqa.agents.attention import EqaAttention
    from robot_runtime.task_kinds.eqa.agents.memory_agent import EqaMemory
    from robot_runtime.task_kinds.eqa.agents.shortest_path import EqaShortestPath
    from tests.benchmarks.sim.eqa_episodes import LanguagePrior

    return {
        MEMORY: EqaMemory(),
        NAVIGATOR: load_policy("eqa-navigator"),
        PATH_MEMORY: EqaShortestPath(),
        LAST_FRAME: EqaShortestPath(last_frame=True),
        LEARNED: EqaAttention(),
        PRIOR: LanguagePrior.of_flats(),
    }


def by_place(outcomes: Outcomes, house: str | None) -> dict[str, Outcomes]:
    """The outcomes in generated flats, and those in the house of that name, where there is one."""
    places = {"generated flats": False} if house is None else {"generated flats": False, house: True}
    return {
        place: {agent: [o for o in some if (o.episode.scene == house) is inside] for agent, some in outcomes.items()}
        for place, inside in places.items()
    }


def table(outcomes: Outcomes) -> str:
    """The paper's table 1: a line per agent and start that there are episodes of, means over them."""
    from tests.benchmarks.sim.eqa_episodes import STARTS, mean

    keys = ("d_T_m", "d_delta_m", "d_min_m", "r_T", "r_enter", "stopped", "answer_rank")
    heads = ("d_T", "d_Δ", "d_min", "r_T", "r_→", "stop", "MR")
    lines = [f"{'agent':27} start   n" + "".join(f"{head:>7}" for head in heads) + "  top-1 [95 %]"]
    for name, found in outcomes.items():
        for start in STARTS:
            some = [outcome for outcome in found if outcome.start == start]
            if not some:
                continue
            means = (mean([outcome.metrics[key] for outcome in some]) for key in keys)
            cells = "".join(f"{'-' if value is None else f'{value:.2f}':>7}" for value in means)
            value, low, high = share([outcome.right for outcome in some])
            lines.append(f"{name:27} {start:5} {len(some):3}{cells}  {value:.2f} [{low:.2f}, {high:.2f}]")
    return "\n".join(lines)


def share(hits: Sequence[bool]) -> tuple[float, float, float]:
    """Share with its 95 % interval."""
    from robot_runtime.scoring.statistics.intervals import wilson

    found = wilson(sum(hits), len(hits))
    return found.mean, found.low, found.high


def rows(outcomes: Outcomes, prefix: str = "") -> list[Row]:
    """The rows of the report about the episodes in one place; their ids begin with ``prefix``."""
    memory = outcomes[MEMORY]
    seen = [outcome.right for outcome in memory if outcome.seen]
    label = f"answers of the memory agent where {len(seen)} saw the target"
    found = [_share_row(f"{prefix}memory_accuracy_seen", label, seen, 0.9)]
    for number in (10, 30, 50):
        some = [outcome.right for outcome in memory if outcome.start == f"T-{number}"]
        found.append(_share_row(f"{prefix}memory_accuracy_t{number}", f"answers of the memory agent, T-{number}", some))
    answered = [outcome for outcome in memory if outcome.answer is not None]
    label = f"right of the {len(answered)} answers that it gave; it abstained in {len(memory) - len(answered)}"
    found.append(_share_row(f"{prefix}memory_accuracy_answered", label, [outcome.right for outcome in answered]))
    stopped = [bool(outcome.metrics["stopped"]) for outcome in memory]
    found.append(_share_row(f"{prefix}stop_rate", "stopped by itself", stopped))
    times_ms = [time_ms for outcome in memory for time_ms in outcome.infer_ms]
    median_ms = statistics.median(times_ms) if times_ms else None
    found.append(Row(f"{prefix}step_ms", "the memory agent's own time per step", median_ms, "ms", note="median"))
    return found


def _share_row(name: str, label: str, hits: Sequence[bool], target: float | None = None) -> Row:
    if not hits:
        return Row(name, label, None, "", target, note="no such episode")
    value, low, high = share(hits)
    return Row(name, label, value, "", target, low=low, high=high)
