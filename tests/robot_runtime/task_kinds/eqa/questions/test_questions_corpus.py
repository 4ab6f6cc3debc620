"""Many scenes at once: entropy, frequency, order, seeds; and the dataset file."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

import pytest
from question_flat import OBJECTS, ROOMS, flat
from raising import raises_naming

from robot_runtime.errors import EpisodeError
from robot_runtime.metrics.functional.eqa import normalized_entropy
from robot_runtime.task_kinds.eqa.questions.dataset import read_questions, write_questions
from robot_runtime.task_kinds.eqa.questions.generate import generate_questions
from robot_runtime.task_kinds.eqa.questions.rules import CODE, FEW_SCENES, PAPER

SOFAS = ("gray", "gray", "red", "red", "blue", "blue")
TABLES = ("brown", "brown", "brown", "brown", "brown", "white")
STATISTICS = replace(FEW_SCENES, min_entropy=0.7, min_environments=4)


def flats() -> list:
    """Six flats: sofas of three colors, tables mostly brown; the television is in three of them only."""
    made = []
    for number, (sofa, table) in enumerate(zip(SOFAS, TABLES, strict=True)):
        colors = {"sofa_1": sofa, "table_1": table}
        objects = [replace(item, color=colors.get(item.id, item.color)) for item in OBJECTS]
        if number >= 3:
            objects = [item for item in objects if item.id != "television_1"]
        made.append(flat(f"flat_{number}", objects=tuple(objects)))
    return made


def test_predictable_and_rare_questions_are_left_out():
    result = generate_questions(flats(), STATISTICS)
    texts = {question.text for question in result.questions}
    assert "What color is the sofa?" in texts
    assert "What color is the table?" not in texts, "5 of 6 are brown: 0.65"
    assert "What color is the television?" not in texts, "in 3 scenes only"
    assert "What room is the table located in?" not in texts
    assert "Is there a television in the living room?" in texts
    assert [q.answer for q in result.questions if q.text == "What color is the sofa?"] == list(SOFAS)
    lower = generate_questions(flats(), replace(STATISTICS, min_entropy=0.65))
    assert "What color is the table?" in {question.text for question in lower.questions}


@pytest.mark.parametrize("rules", [STATISTICS, PAPER, CODE])
def test_every_question_kept_meets_both_limits(rules):
    rules = replace(rules, seen_only=False)
    result = generate_questions(flats(), rules)
    answers = defaultdict(list)
    for question in result.questions:
        answers[question.type, question.text].append(question.answer)
    assert answers
    for given_answers in answers.values():
        assert len(given_answers) >= rules.min_environments
        assert normalized_entropy([*Counter(given_answers).values()]) >= rules.min_entropy - 1e-9
    for template, tally in result.tallies.items():
        assert tally.possible == tally.too_rare + tally.too_predictable + tally.kept
        assert tally.kept == sum(question.type == template for question in result.questions)


def test_the_order_of_scenes_rooms_objects_and_view_points_does_not_matter():
    mixed = []
    for scene in reversed(flats()):
        file = replace(scene.file, rooms=ROOMS[::-1], objects=scene.objects[::-1])
        mixed.append(replace(scene, file=file, view_points=dict(reversed(list(scene.view_points.items())))))
    assert generate_questions(mixed, FEW_SCENES, 3) == generate_questions(flats(), FEW_SCENES, 3)


def test_the_seed_chooses_among_combinations_and_the_same_ones_in_every_scene():
    first, second = (generate_questions(flats(), FEW_SCENES, seed) for seed in (1, 2))
    assert first == generate_questions(flats(), FEW_SCENES, 1)
    logical = [{q.text for q in result.questions if q.type == "logical"} for result in (first, second)]
    assert logical[0] != logical[1]
    sure = [[q for q in result.questions if q.type in ("color", "location", "count")] for result in (first, second)]
    assert sure[0] == sure[1]
    by_scene = [{q.text for q in first.questions if q.type == "logical" and q.scene == f"flat_{n}"} for n in (0, 1)]
    assert by_scene[0] == by_scene[1]


def test_no_more_combinations_than_the_limit_and_none_without_need():
    for limit in (0, 3, 10):
        result = generate_questions(flats(), replace(FEW_SCENES, max_per_room=limit))
        counts = defaultdict(int)
        for question in result.questions:
            if question.type in ("logical", "distance"):
                counts[question.scene, question.type, question.rooms] += 1
        assert all(count <= limit for count in counts.values())


@pytest.mark.parametrize("name", ["questions.json", "questions.json.gz"])
@pytest.mark.parametrize("rules", [FEW_SCENES, replace(PAPER, min_environments=2), CODE])
def test_a_dataset_comes_back_as_it_was_written(tmp_path: Path, name, rules):
    questions = generate_questions(flats(), rules, seed=5)
    write_questions(tmp_path / name, questions)
    assert read_questions(tmp_path / name) == questions
    first = (tmp_path / name).read_bytes()
    write_questions(tmp_path / name, read_questions(tmp_path / name))
    assert (tmp_path / name).read_bytes() == first


def test_vocabularies_index_answers_and_words():
    questions = generate_questions(flats())
    for question in questions.questions:
        assert questions.answers.index(question.answer) >= 0
        spelled = [questions.words[token] for token in questions.tokens(question)]
        assert " ".join(spelled) == question.text.lower().replace("?", " ?")
    assert len({question.key for question in questions.questions}) == len(questions.questions)


def damaged(tmp_path: Path, change) -> Path:
    path = tmp_path / "damaged.json"
    write_questions(path, generate_questions([flat()]))
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["questions"][3].update(answer=7), r"damaged\.json: field 'questions\.3\.answer'.*found 7"),
        (lambda d: d["questions"][2].pop("text"), r"'questions\.2\.text'"),
        (lambda d: d["questions"][0].update(scene="elsewhere"), "scene 'elsewhere' is not in 'scenes'"),
        (lambda d: d["questions"].append(d["questions"][0]), "is asked twice about scene 'question_flat'"),
        (lambda d: d["rules"].update(min_entropy=2), "min_entropy"),
        (lambda d: d.update(schema=2), "'schema'"),
        (lambda d: d["answers"].pop(), "'answers' does not list the answers"),
        (lambda d: d.pop("questions"), "is not a question dataset"),
        (lambda d: d.update(color="red"), "'color': there is no such field"),
    ],
)
def test_a_damaged_dataset_is_an_error_that_names_the_field(tmp_path: Path, change, message):
    with pytest.raises(EpisodeError, match=message):
        read_questions(damaged(tmp_path, change))


def test_a_truncated_or_missing_file_is_an_error(tmp_path: Path):
    path = tmp_path / "questions.json.gz"
    with pytest.raises(EpisodeError, match="no such file"):
        read_questions(path)
    write_questions(path, generate_questions([flat()]))
    path.write_bytes(path.read_bytes()[:-20])
    with raises_naming(EpisodeError, "gzip"):
        read_questions(path)
    path.write_text("[]")
    with raises_naming(EpisodeError, "'questions'"):
        read_questions(path)
