"""Samples of questions, as ``run`` draws them: of each template as many as of the others, the same for one seed."""

from __future__ import annotations

from question_flat import flat

from robot_runtime.task_kinds.eqa.questions.dataset import sample_questions
from robot_runtime.task_kinds.eqa.questions.generate import generate_questions


def test_a_sample_has_as_many_questions_of_each_template() -> None:
    asked = generate_questions([flat()])
    some = sample_questions(asked, 12, seed=0).questions
    types = [question.type for question in some]
    assert all(question.targets for question in some)
    assert len(some) == 12
    assert {types.count(name) for name in set(types)} <= {1, 2}
    assert some == sample_questions(asked, 12, seed=0).questions
    assert some != sample_questions(asked, 12, seed=1).questions
