"""Embodied question answering in Matterport3D: ``MP3DEQA-v1``, as in habitat-lab.

Questions carry tokens and an answer token, indices into the document's ``question_vocab`` and ``answer_vocab``. Goals
are objects with view points, which are plain agent states. The actions in ``shortest_paths`` have the ids of 2019:
forward 0, left 1, right 2, stop 3. ``Episode.info`` is described in :mod:`robot_runtime.datasets.habitat_common`.

Source: habitat-lab, ``datasets/eqa/mp3d_eqa_dataset.py``, ``tasks/eqa/eqa.py``.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from typing_extensions import NotRequired

from robot_runtime.datasets import habitat_common
from robot_runtime.datasets.formats import EpisodeFormat
from robot_runtime.datasets.io import OpenDict, Reader, Vector3, checked, episode_at, write_json
from robot_runtime.errors import EpisodeError
from robot_runtime.task_kinds.eqa.kind import Inquiry, Question
from robot_runtime.tasks.episode import Episode, Goal


class GoalRecord(OpenDict):
    """The object of the question."""

    position: Vector3
    object_id: NotRequired[str | int | None]
    view_points: NotRequired[list[habitat_common.AgentState] | None]


class QuestionRecord(OpenDict):
    """A question. habitat-lab declares ``answer_token`` a list and compares it with a number: both are read."""

    question_text: str
    answer_text: str
    question_tokens: NotRequired[list[int] | list[str] | None]
    answer_token: NotRequired[int | list[int] | list[str] | None]
    question_type: NotRequired[str | None]


class EpisodeRecord(habitat_common.EpisodeRecord):
    """One episode in the file."""

    goals: list[GoalRecord]
    question: QuestionRecord


_SCHEMA = TypeAdapter(EpisodeRecord)
_MODELED = frozenset({"scene_id", "start_position"})


def matches(document: Any) -> bool:
    """Whether a JSON document has this format. Raises ``EpisodeError`` for questions without episodes."""
    listed = document.get("questions", document) if isinstance(document, dict) else document
    for first in (listed, *(listed.values() if isinstance(listed, dict) else ())):
        if (
            isinstance(first, list)
            and first
            and isinstance(first[0], dict)
            and {"question", "answer"} <= first[0].keys()
        ):
            raise EpisodeError(
                "has questions without starts, as EmbodiedQA v1 does, whose houses (SUNCG) are no longer distributed",
                "make questions and episodes for a scene: `robot-runtime episodes questions SCENE --out questions.json "
                "--episodes-out eqa.json.gz`",
            )
    return habitat_common.first_has(document, "question")


def reader(document: Any, path: Path) -> Reader:
    """The reader of a document's episodes, given the document or its outline."""
    rest = habitat_common.unmodeled(document, ("episodes",))

    def read(index: int, item: Any) -> Episode:
        where = episode_at(index, item)
        return _episode(checked(item, _SCHEMA, path, where), rest, path, index, where)

    return read


def save(path: Path, episodes: Sequence[Episode]) -> None:
    """Write one file for habitat-lab. Episodes of another origin get vocabularies of their own.

    Raises:
        EpisodeError: an episode has no question, or the file cannot be written.
    """
    for episode in episodes:
        if Inquiry.of(episode).question is None:
            raise EpisodeError(f"{path}: episode {episode.id!r}: has no question", "write it with habitat_pointnav")
    rest = episodes[0].info.get("dataset") if episodes else None
    rest = _vocabularies(episodes) if rest is None else rest
    write_json(path, {"episodes": [_record(episode, rest) for episode in episodes], **rest})


def _episode(record: EpisodeRecord, rest: Mapping[str, Any], path: Path, index: int, where: str) -> Episode:
    goals = tuple(
        _goal(goal, f"{path}: {where}field 'goals.{number}.view_points'") for number, goal in enumerate(record["goals"])
    )
    return Episode(
        **habitat_common.from_record(record, path, index),
        goals=goals,
        info=habitat_common.info_of(record, _MODELED, rest),
        details=Inquiry(_question(record["question"])),
    )


def _goal(record: GoalRecord, where: str) -> Goal:
    object_id = record.get("object_id")
    x_m, y_m, z_m = habitat_common.to_ros(record["position"])
    states = record.get("view_points") or ()
    poses = habitat_common.agent_poses(states, z_m, lambda number: f"{where}.{number}.rotation")
    return Goal(x_m, y_m, z_m, None if object_id is None else str(object_id), poses)


def _question(record: QuestionRecord) -> Question:
    tokens = record.get("question_tokens") or ()
    answer = record.get("answer_token")
    if isinstance(answer, list) and len(answer) == 1:
        answer = answer[0]  # type: ignore[assignment]
    return Question(
        text=record["question_text"],
        answer=record["answer_text"],
        type=record.get("question_type") or "",
        tokens=tuple(token for token in tokens if isinstance(token, int)),
        answer_token=answer if isinstance(answer, int) else None,
    )


def _record(episode: Episode, rest: Mapping[str, Any]) -> dict[str, Any]:
    extras = episode.info.get("goals", ())
    kept = extras if len(extras) == len(episode.goals) else [_goal_extra(episode, goal) for goal in episode.goals]
    record = habitat_common.to_record(episode, habitat_common.goal_records(episode, kept))
    asked = Inquiry.of(episode).question
    if asked is not None and ("question" not in record or _question(record["question"]) != asked):
        record["question"] = _question_record(asked, rest)
    return record


def _goal_extra(episode: Episode, goal: Goal) -> dict[str, Any]:
    states = [habitat_common.agent_state(pose, episode.start_z_m) for pose in goal.view_points]
    return {"radius": None, "object_id": goal.object_id, "view_points": states}


def _question_record(asked: Question, rest: Mapping[str, Any]) -> dict[str, Any]:
    """Tokens by the document's vocabularies, or the question's own where those lack a word."""
    answer = _lookup(rest.get("answer_vocab"), [asked.answer])
    return {
        "question_text": asked.text,
        "answer_text": asked.answer,
        "question_tokens": _lookup(rest.get("question_vocab"), _words(asked.text)) or list(asked.tokens),
        "answer_token": answer[0] if answer else asked.answer_token,
        "question_type": asked.type,
    }


def _vocabularies(episodes: Sequence[Episode]) -> dict[str, Any]:
    questions = [Inquiry.of(episode).question for episode in episodes]
    asked = [question for question in questions if question is not None]
    return {
        "question_vocab": {"word_list": sorted({word for question in asked for word in _words(question.text)})},
        "answer_vocab": {"word_list": sorted({question.answer for question in asked})},
    }


def _lookup(vocabulary: Any, words: Sequence[str]) -> list[int]:
    listed: list[str] = vocabulary.get("word_list", []) if isinstance(vocabulary, dict) else []
    index = {word: number for number, word in enumerate(listed)}
    return [index[word] for word in words] if index.keys() >= set(words) else []


def _words(text: str) -> list[str]:
    return text.lower().replace("?", " ?").split()


FORMAT = EpisodeFormat(
    title="MP3D-EQA",
    kind="eqa",
    matches=matches,
    reader=reader,
    save=lambda path, episodes, _: save(path, episodes),
    writes=lambda episodes, _: bool(episodes) and Inquiry.of(episodes[0]).question is not None,
    rank=30,
)
