"""Question dataset: questions, rules and scenes, read and written without loss.

One JSON document, gzipped if the name ends in ``.gz``: the fields of :class:`QuestionSet`, and the vocabularies for
readers in other languages (they follow from the questions, and are checked on reading).
"""

import hashlib
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

import numpy as np

from robot_runtime.common import config
from robot_runtime.datasets.io import read_json, write_json
from robot_runtime.errors import ConfigError, EpisodeError
from robot_runtime.task_kinds.eqa.questions.rules import QuestionRules


@dataclass(frozen=True)
class SceneQuestion(config.Strict):
    """A question about one scene.

    Attributes:
        scene: its name.
        type: the template.
        text: text of the question.
        answer: answer in words.
        targets: ids of the objects of which any one, once seen, gives the answer: the robot's goals. Empty where no
            single object does: absence, several to count, rooms, distances.
        objects: ids of all objects in question and answer, in the order of the text.
        rooms: ids of the rooms in them, in the same order.
    """

    scene: str
    type: str
    text: str
    answer: str
    targets: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()
    rooms: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """``scene/0123456789ab``, a hash of scene and text."""
        return f"{self.scene}/{hashlib.sha256(f'{self.scene}/{self.text}'.encode()).hexdigest()[:12]}"

    @property
    def words(self) -> tuple[str, ...]:
        """The text in lower-case words; the question mark is one too."""
        return tuple(self.text.lower().replace("?", " ?").split())


_VOCABULARIES = ("answers", "words")


@dataclass(frozen=True)
class Tally(config.Strict):
    """Counts of a template's questions: ``possible = too_rare + too_predictable + kept``."""

    possible: int
    too_rare: int
    too_predictable: int
    kept: int


@dataclass(frozen=True)
class QuestionSet(config.Strict):
    """Questions and their origin.

    Attributes:
        schema: version of this format, 1.
        rules: rules of the generation.
        seed: seed of the generation.
        scenes: name -> digest of each scene.
        questions: all questions.
        tallies: per template.
        notes: missing data of the scenes, in sentences.
    """

    schema: Literal[1]
    rules: QuestionRules
    seed: int
    scenes: dict[str, str]
    questions: tuple[SceneQuestion, ...]
    tallies: dict[str, Tally]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        seen: set[tuple[str, str]] = set()
        for question in self.questions:
            if question.scene not in self.scenes:
                raise ValueError(f"question {question.text!r}: scene {question.scene!r} is not in 'scenes'")
            if (question.scene, question.text) in seen:
                raise ValueError(f"question {question.text!r} is asked twice about scene {question.scene!r}")
            seen.add((question.scene, question.text))

    @cached_property
    def answers(self) -> tuple[str, ...]:
        """The answer vocabulary, sorted; an answer's token is its index."""
        return tuple(sorted({question.answer for question in self.questions}))

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words of all questions, sorted; a word's token is its index."""
        return tuple(sorted({word for question in self.questions for word in question.words}))

    def tokens(self, question: SceneQuestion) -> tuple[int, ...]:
        """A question's words as indices into :attr:`words`."""
        index = {word: token for token, word in enumerate(self.words)}
        return tuple(index[word] for word in question.words)


def sample_questions(questions: QuestionSet, count: int, seed: int) -> QuestionSet:
    """The dataset with ``count`` of its questions that have targets, of each template as many as of the others."""
    order = np.random.default_rng(seed).permutation(len(questions.questions)).tolist()
    queues: dict[str, list[SceneQuestion]] = {}
    for question in (questions.questions[index] for index in order):
        if question.targets:
            queues.setdefault(question.type, []).append(question)
    rounds = zip_longest(*(queues[name] for name in sorted(queues)))
    drawn = [question for one in rounds for question in one if question is not None]
    return replace(questions, questions=tuple(drawn[:count]))


def write_questions(path: Path, questions: QuestionSet) -> None:
    """Write the dataset. Raises ``EpisodeError`` if the file cannot be written."""
    write_json(path, {**asdict(questions), "answers": list(questions.answers), "words": list(questions.words)})


def read_questions(path: Path) -> QuestionSet:
    """Read a dataset as :func:`write_questions` wrote it.

    Raises:
        EpisodeError: missing, truncated, not JSON, or not such a dataset; names file, field and remedy.
    """
    document = read_json(path)
    if not isinstance(document, dict) or "questions" not in document:
        raise EpisodeError(
            f"{path}: is not a question dataset: it has no 'questions'",
            "make one with `robot-runtime episodes questions`",
        )
    vocabularies: dict[str, Any] = {name: document.pop(name, None) for name in _VOCABULARIES}
    try:
        questions = config.parse(document, QuestionSet, str(path))
    except ConfigError as error:
        raise EpisodeError(error.message, error.remedy) from error
    for name, stated in vocabularies.items():
        if stated is not None and stated != list(getattr(questions, name)):
            raise EpisodeError(
                f"{path}: field {name!r} does not list the {name} of the questions",
                f"delete {name!r} there: it follows from the questions",
            )
    return questions
