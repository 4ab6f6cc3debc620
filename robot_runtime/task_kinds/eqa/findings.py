"""Findings about questions."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from typing_extensions import override

from robot_runtime.datasets.findings import Findings, Problem, mapping, sequence
from robot_runtime.datasets.habitat_common import from_habitat
from robot_runtime.task_kinds.eqa.kind import Inquiry
from robot_runtime.tasks.episode import Episode


class QuestionFindings(Findings):
    """Findings about episodes with questions."""

    checks: ClassVar[Mapping[str, str]] = {
        "no answer vocabulary": "its file lists no answers: a rank is among the answers that have scores",
        "answer not in vocabulary": "its answer is not among the file's answers",
        "answer token of another word": "its answer's token is another word of the file's answers",
    }
    rank = 20

    @override
    def of_episode(self, episode: Episode) -> Iterator[Problem]:
        question = Inquiry.of(episode).question
        if question is not None:
            words = sequence(mapping(mapping(episode.info.get("dataset")).get("answer_vocab")).get("word_list"))
            if not words and from_habitat(episode):
                yield "no answer vocabulary", "answer_vocab has no word_list"
            if words and question.answer not in words:
                yield "answer not in vocabulary", question.answer
            elif words and question.answer_token not in (None, words.index(question.answer)):
                yield "answer token of another word", f"{question.answer_token} for {question.answer!r}"
