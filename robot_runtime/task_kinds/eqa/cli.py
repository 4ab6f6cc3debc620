"""``robot-runtime episodes questions``: questions about scenes, for embodied question answering."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from robot_runtime.cli_options.option_groups import grouped_options
from robot_runtime.common.console import console, progress_bar, say
from robot_runtime.errors import EpisodeError

if TYPE_CHECKING:
    from robot_runtime.scenes.scene import Scene
    from robot_runtime.task_kinds.eqa.questions.dataset import QuestionSet
    from robot_runtime.task_kinds.eqa.questions.rules import QuestionRules


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["episodes"].command("questions")(questions)


@dataclass(frozen=True)
class RuleOptions:
    """Rules that say which questions may be asked."""

    rules: Annotated[str, typer.Option(help="Which questions may be asked: few_scenes, paper or code.")] = "few_scenes"
    templates: Annotated[
        list[str] | None, typer.Option(help="Ask only these; repeat the option. Default: all of the rules'.")
    ] = None
    min_environments: Annotated[
        int | None, typer.Option(min=1, help="Scenes that a question must occur in; default: the rules'.")
    ] = None
    min_entropy: Annotated[
        float | None, typer.Option(min=0, max=1, help="Of a question's answers over scenes; default: the rules'.")
    ] = None

    def chosen(self) -> QuestionRules:
        """The rules, with the options in place of theirs. Raises ``ConfigError``."""
        from robot_runtime.task_kinds.eqa.questions.rules import find_rules

        changes: dict[str, Any] = {"min_environments": self.min_environments, "min_entropy": self.min_entropy}
        changes["templates"] = tuple(self.templates) if self.templates else None
        return replace(find_rules(self.rules), **{name: value for name, value in changes.items() if value is not None})


@grouped_options
def questions(
    *,
    scenes: Annotated[list[str], typer.Argument(help="Scene folders, or names of bundled scenes.")],
    out: Annotated[Path, typer.Option(help="Question dataset to write, ending in .json or .json.gz.")],
    episodes_out: Annotated[
        Path | None, typer.Option(help="Also write episodes that start 10, 30 and 50 actions before the target.")
    ] = None,
    rules: RuleOptions,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same questions.")] = 0,
) -> None:
    """Ask and answer questions about scenes (EmbodiedQA's nine templates), and write them with their answers.

    Examples:
        robot-runtime episodes questions apartment --out questions.json
        robot-runtime episodes questions flats/* --rules paper --out questions.json.gz --episodes-out eqa.json.gz
    """
    from robot_runtime.scenes.scene import find_scene, load_scene
    from robot_runtime.task_kinds.eqa.questions.dataset import write_questions
    from robot_runtime.task_kinds.eqa.questions.generate import generate_questions

    chosen = rules.chosen()
    loaded = [load_scene(find_scene(scene)) for scene in scenes]
    asked = generate_questions(loaded, chosen, seed)
    _show(asked)
    if not asked.questions:
        raise EpisodeError(
            "no question is left, so nothing was written",
            "add scenes, name rooms and colors in scene.yaml, or lower --min-environments and --min-entropy",
        )
    write_questions(out, asked)
    say(f"{len(asked.questions)} questions, {len(asked.answers)} answers: {out}")
    if episodes_out is not None:
        _write_episodes(episodes_out, asked, loaded, seed)


def _write_episodes(path: Path, asked: QuestionSet, scenes: Sequence[Scene], seed: int) -> None:
    from robot_runtime.task_kinds.eqa import format_mp3d as mp3d_eqa
    from robot_runtime.task_kinds.eqa.questions.episodes import question_episodes

    with progress_bar() as progress:
        bar = progress.add_task("episodes", total=len(asked.questions), note="")
        made = question_episodes(asked, scenes, seed, on_question=lambda: progress.advance(bar))
    mp3d_eqa.save(path, made.episodes)
    say(f"{len(made.episodes)} episodes, {len(made.skipped)} skipped: {path}")
    for reason, count in sorted(made.reasons().items()):
        say(f"  {count} x {reason}")


def _show(asked: QuestionSet) -> None:

    table = Table("template", "possible", "too rare", "too predictable", "kept", "an example", box=None)
    for name, tally in asked.tallies.items():
        example = next((f"{q.text} {q.answer}" for q in asked.questions if q.type == name), "-")
        counts = (tally.possible, tally.too_rare, tally.too_predictable, tally.kept)
        table.add_row(name, *map(str, counts), example)
    console.print(table)
    for note in asked.notes:
        say(note)
