"""From a scene's category to English: what a thing is called, its article, its plural.

The published code asks nltk's lemmatizer, which calls a bus the plural of a bu. The vocabulary of homes is small: the
regular rules and the words below are right for it, and tests hold them to it.
"""

from __future__ import annotations

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
        collapse: name -> what to call it instead; applied once.
    """
    name = " ".join(part for part in _WORD_BORDER.split(category.strip()) if part).lower()
    return collapse.get(name, name)


def is_countable(name: str) -> bool:
    """Whether one can say "a NAME" and "two NAMEs"."""
    return name not in _PLURAL_ONLY and name not in _MASS


def is_are(name: str) -> str:
    """The verb that goes with "the NAME"."""
    return "are" if name in _PLURAL_ONLY else "is"


def with_article(name: str) -> str:
    """ "a mug", "an apple", "clothes"."""
    if not is_countable(name):
        return name
    vowel = name[:1] in tuple("aeiou") and not name.startswith(_SOUNDS_LIKE_CONSONANT)
    return f"{'an' if vowel or name.startswith(_SOUNDS_LIKE_VOWEL) else 'a'} {name}"


def plural(name: str) -> str:
    """ "mugs", "bookshelves", "chests of drawers"."""
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
