"""Generated episodes with questions."""

from __future__ import annotations

from small_flat import flat

from robot_runtime.task_kinds.eqa.generate import generate
from robot_runtime.task_kinds.eqa.task import Inquiry
from robot_runtime.tasks.task import load_task


def test_questions_have_answers() -> None:
    (asked,) = generate(flat(), load_task("eqa_embodied"), 1, 0)
    assert Inquiry.of(asked).question is not None
    assert Inquiry.of(asked).question.answer
