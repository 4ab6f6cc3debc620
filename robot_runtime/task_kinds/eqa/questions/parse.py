"""Reader of questions: the template of a text and what it asks about, without the scene."""

import re
from collections.abc import Collection
from dataclasses import dataclass

from robot_runtime.task_kinds.eqa.questions.names import plural
from robot_runtime.task_kinds.eqa.questions.relations import PREPOSITIONS

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
