"""English names of a scene's categories, with articles and plurals.

The published code uses nltk's lemmatizer, for which "bus" is the plural of "bu". The regular rules and the words below
are correct for the small vocabulary of homes, which tests verify.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from robot_runtime.task_kinds.eqa.questions.relations import PREPOSITIONS

_WORD_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[\s_\-]+")
_PLURAL_ONLY = frozenset({"clothes", "glasses", "headphones", "kitchen utensils", "plates", "scissors", "stairs"})
_MASS = frozenset({"cutlery", "food", "gym equipment", "outdoor seating", "seating", "shelving", "tableware"})
_IRREGULAR = {"chest of drawers": "chests of drawers", "loaf": "loaves", "knife": "knives", "person": "people"}
_SOUNDS_LIKE_CONSONANT = ("uni", "usb", "utensil", "euro", "one-")
_SOUNDS_LIKE_VOWEL = ("hour", "heir", "xbox", "x-ray", "lcd", "mp3")


def category_name(category: str, collapse: Mapping[str, str]) -> str:
    """The name of a category in lower-case words: ``AlarmClock`` and ``alarm_clock`` are both "alarm clock".

    Args:
        category: category as in the scene.
        collapse: name -> replacement; applied once.
    """
    name = " ".join(part for part in _WORD_BORDER.split(category.strip()) if part).lower()
    return collapse.get(name, name)


def is_countable(name: str) -> bool:
    """Whether "a NAME" and "two NAMEs" are correct."""
    return name not in _PLURAL_ONLY and name not in _MASS


def is_are(name: str) -> str:
    """The verb for "the NAME"."""
    return "are" if name in _PLURAL_ONLY else "is"


def with_article(name: str) -> str:
    """The name with its article: "a mug", "an apple", "clothes"."""
    if not is_countable(name):
        return name
    vowel = name[:1] in tuple("aeiou") and not name.startswith(_SOUNDS_LIKE_CONSONANT)
    return f"{'an' if vowel or name.startswith(_SOUNDS_LIKE_VOWEL) else 'a'} {name}"


def plural(name: str) -> str:
    """The plural: "mugs", "bookshelves", "chests of drawers"."""
    if not is_countable(name):
        return name
    if name in _IRREGULAR:
        return _IRREGULAR[name]
    if name.endswith(("shelf", "loaf")):
        return name[:-1] + "ves"
    if name.endswith("knife"):
        return name[:-2] + "ves"
    if name.endswith(("s", "x", "z", "ch", "sh")):
        return name + "es"
    if re.search(r"[^aeiou]y$", name):
        return name[:-1] + "ies"
    return name + "s"


_A = r"(?:an? )?"
_PATTERNS = {
    "location": r"what room (?:is|are) the (?P<a>.+) located in",
    "color_room": r"what colou?r (?:is|are) the (?P<a>.+?) in the (?P<room>.+)",
    "color": r"what colou?r (?:is|are) the (?P<a>.+)",
    "preposition": rf"what is (?P<how>{'|'.join(PREPOSITIONS)}) the (?P<a>.+?) in the (?P<room>.+)",
    "relation": rf"what is (?P<how>{'|'.join(PREPOSITIONS)}) the (?P<a>.+)",
    "distance": r"(?:is|are) the (?P<a>.+) closer to the (?P<b>.+) than to the (?P<c>.+?) in the (?P<room>.+)",
    "logical": rf"is there {_A}(?P<a>.+) and {_A}(?P<b>.+) in the (?P<room>.+)",
    "existence": rf"(?:is|are) there {_A}(?P<a>.+) in the (?P<room>.+)",
    "room_object_count": r"how many rooms in the house have (?P<a>.+) in them",
    "room_count": r"how many (?P<rooms>.+) are in the house",
    "count": r"how many (?P<a>.+) are in the (?P<room>.+)",
}


@dataclass(frozen=True)
class AskedFor:
    """Subject of a question.

    Attributes:
        template: template of ``programs.TEMPLATES``.
        names: names of the objects, in the order of the text, singular.
        room: name of the room; of ``room_count`` of the rooms that are counted; None without one.
        preposition: preposition of ``relations.PREPOSITIONS``; None without one.
    """

    template: str
    names: tuple[str, ...]
    room: str | None = None
    preposition: str | None = None


def read_question(text: str, objects: Collection[str], rooms: Collection[str] = ()) -> AskedFor | None:
    """The template and the names of a question; None if it is of no template.

    Args:
        text: text of the question; case, the final mark and repeated spaces do not matter.
        objects: known names, to find the singular of a plural.
        rooms: known names of rooms, for the same purpose.
    """
    plain = " ".join(text.lower().replace("?", " ").split())
    for template, pattern in _PATTERNS.items():
        match = re.fullmatch(pattern, plain)
        if match is not None:
            parts = match.groupdict()
            names = tuple(_singular(parts[key], objects) for key in ("a", "b", "c") if parts.get(key))
            room = parts.get("room") or (_singular(parts["rooms"], rooms) if parts.get("rooms") else None)
            return AskedFor(template, names, room, parts.get("how"))
    return None


def _singular(name: str, known: Collection[str]) -> str:
    if name in known:
        return name
    return next((one for one in known if plural(one) == name), name)
