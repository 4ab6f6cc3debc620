"""Generator of questions about many scenes, without those that can be answered without looking.

Das et al. 2018, section 3.2: "We exclude questions for which the normalized entropy of the answer distribution is below
0.5 [...] We also exclude questions occurring in fewer than four environments". The result depends on scenes, rules and
seed alone, not on any order. Every returned question satisfies both limits among the returned questions: sampling comes
first, the statistics last.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence

from robot_runtime.errors import ConfigError, SceneError
from robot_runtime.metrics.functional.eqa import normalized_entropy
from robot_runtime.scenes.scene import Scene
from robot_runtime.task_kinds.eqa.questions.dataset import QuestionSet, SceneQuestion, Tally
from robot_runtime.task_kinds.eqa.questions.house import Corpus, House
from robot_runtime.task_kinds.eqa.questions.programs import TEMPLATES, State, is_room_name
from robot_runtime.task_kinds.eqa.questions.queries import ask
from robot_runtime.task_kinds.eqa.questions.rules import FEW_SCENES, QuestionRules


def generate_questions(scenes: Sequence[Scene], rules: QuestionRules = FEW_SCENES, seed: int = 0) -> QuestionSet:
    """All questions that the rules allow about the scenes, sorted by scene, template and text.

    A scene without rooms gives questions of the templates that need none, objects without color none about color;
    :attr:`QuestionSet.notes` reports this. The list may be empty.

    Raises:
        ConfigError: an unknown template, or fewer scenes than ``min_environments``, so that no question could pass.
        SceneError: no scene, two of the same name, or one without view points although the rules need them.
    """
    _check(scenes, rules)
    houses = sorted((House.of(scene, rules) for scene in scenes), key=lambda house: house.scene)
    corpus = Corpus.of(houses)
    templates = sorted(rules.templates, key=list(TEMPLATES).index)
    possible = [
        question
        for house in houses
        for template in templates
        for question in ask(template, State(house, corpus, rules, seed))
    ]
    kept, tallies = _filter(possible, rules, templates)
    return QuestionSet(
        schema=1,
        rules=rules,
        seed=seed,
        scenes={scene.name: scene.digest for scene in sorted(scenes, key=lambda scene: scene.name)},
        questions=tuple(kept),
        tallies=tallies,
        notes=tuple(note for house in houses for note in _notes(house, rules)),
    )


def _filter(
    questions: Sequence[SceneQuestion], rules: QuestionRules, templates: Sequence[str]
) -> tuple[list[SceneQuestion], dict[str, Tally]]:
    asked: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for question in questions:
        asked[question.type, question.text][question.answer] += 1
    rare = {key for key, answers in asked.items() if answers.total() < rules.min_environments}
    # The tolerance covers rounding.
    least = rules.min_entropy - 1e-9
    predictable = {key for key, answers in asked.items() if normalized_entropy([*answers.values()]) < least} - rare
    kept, tallies = [], {}
    for template in templates:
        keys = [(question.type, question.text) for question in questions if question.type == template]
        too_rare, too_predictable = sum(key in rare for key in keys), sum(key in predictable for key in keys)
        tallies[template] = Tally(len(keys), too_rare, too_predictable, len(keys) - too_rare - too_predictable)
    kept = [question for question in questions if (question.type, question.text) not in rare | predictable]
    return kept, tallies


def _check(scenes: Sequence[Scene], rules: QuestionRules) -> None:
    unknown = [template for template in rules.templates if template not in TEMPLATES]
    if unknown:
        raise ConfigError(f"there is no question template {unknown[0]!r}", f"use some of: {', '.join(TEMPLATES)}")
    if not scenes:
        raise SceneError("there is no scene for questions", "pass at least one scene")
    names = Counter(scene.name for scene in scenes)
    twice = [scene for scene in scenes if names[scene.name] > 1]
    if twice:
        raise SceneError(
            f"two scenes are called {twice[0].name!r}: {', '.join(str(scene.folder) for scene in twice)}",
            "give each scene.yaml a 'name' of its own, or pass each scene once",
        )
    if len(scenes) < rules.min_environments:
        raise ConfigError(
            f"the rules keep only questions that occur in {rules.min_environments} scenes, and there are {len(scenes)}",
            "add scenes, lower min_environments, or use the rules 'few_scenes'",
        )
    unseen = [scene for scene in scenes if scene.objects and not any(scene.view_points.values())]
    if rules.seen_only and unseen:
        raise SceneError(
            f"{unseen[0].folder / 'view_points.json'}: has no view points, which the rule seen_only needs",
            "compute them with `robot-runtime scene view-points`, or turn seen_only off",
        )


def _notes(house: House, rules: QuestionRules) -> list[str]:
    """Missing data of a scene that whole templates need."""
    notes = []
    named = [room for room in house.rooms if is_room_name(rules, room.name)]
    if not house.rooms:
        notes.append("has no rooms: nothing is asked that names or counts one")
    elif not named:
        names = ", ".join(sorted({room.name for room in house.rooms}))
        notes.append(f"has no room whose name tells which is meant ({names}): nothing is asked that names one")
    elif all(count > 1 for count in Counter(room.name for room in named).values()):
        notes.append("has several rooms of each name: nothing is asked that names one")
    if not house.objects:
        notes.append("has no objects")
    elif all(item.color is None for item in house.objects):
        notes.append("has no object with a color: nothing is asked about colors")
    return [f"{house.scene}: {note}" for note in notes]
