"""Questions about scenes and their answers, made by functional programs (EmbodiedQA, Das et al. 2018)."""

from robot_runtime.task_kinds.eqa.questions.dataset import (
    QuestionSet,
    SceneQuestion,
    Tally,
    read_questions,
    sample_questions,
    write_questions,
)
from robot_runtime.task_kinds.eqa.questions.generate import generate_questions
from robot_runtime.task_kinds.eqa.questions.programs import TEMPLATES
from robot_runtime.task_kinds.eqa.questions.rules import CODE, FEW_SCENES, PAPER, PRESETS, QuestionRules, find_rules

__all__ = [
    "CODE",
    "FEW_SCENES",
    "PAPER",
    "PRESETS",
    "TEMPLATES",
    "QuestionRules",
    "QuestionSet",
    "SceneQuestion",
    "Tally",
    "find_rules",
    "generate_questions",
    "read_questions",
    "sample_questions",
    "write_questions",
]
