"""Generated episodes with questions."""

from __future__ import annotations

import pytest
from small_flat import flat

from robot_runtime.cli.main import run_command
from robot_runtime.task_kinds.eqa.generate import generate
from robot_runtime.task_kinds.eqa.kind import Inquiry
from robot_runtime.tasks.task import load_task


def test_questions_have_answers() -> None:
    (asked,) = generate(flat(), load_task("eqa_embodied"), 1, 0)
    assert Inquiry.of(asked).question is not None
    assert Inquiry.of(asked).question.answer


def test_the_old_spelling_of_the_command_is_an_error_that_names_the_new_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["episodes", "questions", "a", "--out", "b", "--episodes", "c"]) == 2
    assert "--episodes-out" in capsys.readouterr().err
