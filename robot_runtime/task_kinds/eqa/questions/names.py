"""English names of a scene's categories, with articles and plurals.

The published code uses nltk's lemmatizer, for which "bus" is the plural of "bu". The regular rules and the words below
are correct for the small vocabulary of homes, which tests verify.
"""

import re
from collections.abc import Mapping

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
