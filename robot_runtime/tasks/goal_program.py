"""Evaluation programs: what must be so at the end of an episode, as data (Batra et al. 2020, section 3, PredicateGoal).

A program is a list of targets, which the agent is to make true, and what it must leave alone. As YAML or JSON::

    targets:
    - {subject: mug_1, on: table_1}                             # objects by id
    - {subject: {every: Apple}, inside: {some: Bowl}}           # or by category, and how many of them
    - {subject: {at_least: 2, of: Mug}, next_to: sink_1, within_m: 0.3}
    - {subject: book_1, at: {position: [4, 1, 0.9], yaw_deg: 90}, within_m: 0.1, within_deg: 15}
    - {subject: ball_1, at: {center: [1, 2, 0.5], size: [1, 1, 1], yaw_deg: 30}}
    - {subject: ball_2, at: {region: [[0, 0], [1, 0], [1, 2]]}}
    - {subject: {every: Mug}, at: {room: kitchen}}               # a room's id, or a category of rooms
    - not: {subject: laptop_1, on: bed_1}
    - any: [{subject: a, on: b}, {all: [{subject: a, on: c}, {subject: c, on: d}]}]
    - {count: [{subject: a, on: b}, {subject: c, on: b}], at_least: 1, at_most: 1}
    do_no_harm: {min_iou: 0.5, ignore: [cat_1]}

Between categories, the reference is quantified inside the subject: ``{every: Apple}`` inside ``{some: Bowl}`` holds if
for each apple there is a bowl. What the predicates mean in space, and the default of every constant, says
:mod:`robot_runtime.metrics.functional.predicates`.
"""

import difflib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn, get_args

from robot_runtime.common import config
from robot_runtime.errors import EpisodeError
from robot_runtime.scenes.objects import ObjectPose

Relation = Literal["on", "inside", "next_to"]

CONSTANTS: dict[str, tuple[str, ...]] = {
    "on": ("gap_m",),
    "inside": ("min_fraction",),
    "next_to": ("within_m",),
    "position": ("within_m", "within_deg", "min_iou"),
    "center": ("min_fraction",),
    "region": (),
    "room": (),
}
"""Keys allowed next to each predicate; ``at`` has four forms, distinguished by the key of the place."""

_MAX_DEPTH = 20


@dataclass(frozen=True)
class Selection:
    """Objects of a condition, and how many of them it asks for.

    Attributes:
        id: one object; else ``category``, of which at least and at most so many must do; neither limit means every one.
    """

    id: str | None = None
    category: str | None = None
    at_least: int | None = None
    at_most: int | None = None


@dataclass(frozen=True)
class Related:
    """A relation between objects; ``constants`` are those that the program states."""

    relation: Relation
    subject: Selection
    reference: Selection
    constants: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Placed:
    """Objects at a place: one of ``pose``, ``box`` (center, size, yaw in radians), ``region``, ``room`` is given."""

    subject: Selection
    constants: dict[str, float] = field(default_factory=dict)
    pose: ObjectPose | None = None
    box: tuple[tuple[float, ...], tuple[float, ...], float] | None = None
    region: tuple[tuple[float, float], ...] | None = None
    room: str | None = None


@dataclass(frozen=True)
class Combined:
    """Limits of how many of the parts hold: at least, and at most (None: no limit). ``not`` is at most 0 of 1."""

    parts: "tuple[Expression, ...]"
    at_least: int = 0
    at_most: int | None = None


Expression = Related | Placed | Combined


@dataclass(frozen=True)
class Harm:
    """Condition of rest: an object that is neither a target's subject nor in ``ignore`` keeps an IoU > ``min_iou``."""

    min_iou: float
    ignore: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Program(config.Strict):
    """An evaluation program as it is written; :meth:`expressions` and :meth:`harm` read it.

    Attributes:
        targets: one document per target, as in the module's docstring.
        do_no_harm: None leaves it to the task.
    """

    targets: tuple[dict[str, Any], ...]
    do_no_harm: dict[str, Any] | None = None

    def expressions(self, where: str = "program") -> tuple[Expression, ...]:
        """The targets, checked.

        Args:
            where: what the program belongs to, for errors.

        Raises:
            EpisodeError: naming the target's place, what is wrong with it, and what there is instead.
        """
        if not self.targets:
            _fail(where, "has no targets", "state at least one")
        return tuple(_expression(item, f"{where}: targets.{i}", 0) for i, item in enumerate(self.targets))

    def harm(self, where: str = "program") -> Harm | None:
        """The condition of rest; None if the program does not state it. Raises as :meth:`expressions`."""
        if self.do_no_harm is None:
            return None
        where = f"{where}: do_no_harm"
        _only(self.do_no_harm, ("min_iou", "ignore"), where)
        ignore = self.do_no_harm.get("ignore", [])
        if not isinstance(ignore, Sequence) or isinstance(ignore, str):
            _fail(f"{where}.ignore", f"is not a list of object ids: {ignore!r}", "write a list")
        share = _number(self.do_no_harm.get("min_iou"), f"{where}.min_iou", 0, 1)
        return Harm(share, frozenset(_word(item, f"{where}.ignore") for item in ignore))

    def to_document(self) -> dict[str, Any]:
        """As it is written."""
        harm = {} if self.do_no_harm is None else {"do_no_harm": self.do_no_harm}
        return {"targets": list(self.targets), **harm}


def subjects(expressions: Sequence[Expression]) -> Iterator[Selection]:
    """Everything that the agent is to move, as selections, in order."""
    for expression in expressions:
        if isinstance(expression, Combined):
            yield from subjects(expression.parts)
        else:
            yield expression.subject


def selections(expressions: Sequence[Expression]) -> Iterator[Selection]:
    """Everything that the targets are about: subjects and references, in order."""
    for expression in expressions:
        if isinstance(expression, Combined):
            yield from selections(expression.parts)
        else:
            yield expression.subject
            if isinstance(expression, Related):
                yield expression.reference


def read_program(document: Any, where: str) -> Program:
    """A checked program from a YAML or JSON document. Raises ``EpisodeError``."""
    if not isinstance(document, Mapping):
        _fail(where, f"is not a mapping: {document!r:.60}", "write 'targets' and, if need be, 'do_no_harm'")
    _only(document, ("targets", "do_no_harm"), where)
    targets, harm = _with_words(document.get("targets")), document.get("do_no_harm")
    if not isinstance(targets, list):
        _fail(f"{where}: targets", f"is not a list: {targets!r:.60}", "write a list of targets")
    if harm is not None and not isinstance(harm, Mapping):
        _fail(f"{where}: do_no_harm", f"is not a mapping: {harm!r:.60}", "write e.g. {min_iou: 0.5}")
    program = Program(tuple(targets), None if harm is None else dict(harm))
    program.expressions(where)
    program.harm(where)
    return program


# --- one target -----------------------------------------------------------------------------------------------------


def _expression(item: Any, where: str, depth: int) -> Expression:
    if depth > _MAX_DEPTH:
        _fail(where, f"is nested more than {_MAX_DEPTH} deep", "simplify it")
    if not isinstance(item, Mapping):
        _fail(where, f"is not a mapping: {item!r:.60}", "write e.g. {subject: mug_1, on: table_1}")
    kinds = [key for key in ("all", "any", "not", "count", "on", "inside", "next_to", "at") if key in item]
    if len(kinds) != 1:
        unknown = sorted(str(key) for key in item if key not in ("subject", *kinds))
        close = [match for word in unknown for match in difflib.get_close_matches(word, _PREDICATES, n=1)]
        problem = f"has the predicates {kinds}" if kinds else f"has no known predicate, but {unknown}"
        _fail(where, problem, f"did you mean {close[0]!r}?" if close else f"use one of: {', '.join(_PREDICATES)}")
    kind = kinds[0]
    if kind == "at":
        return _placed(item, where)
    if kind in CONSTANTS:
        _only(item, ("subject", kind, *CONSTANTS[kind]), where)
        reference = _selection(item[kind], f"{where}.{kind}")
        return Related(_RELATIONS[kind], _subject(item, where), reference, _constants(item, where))
    return _combined(kind, item, where, depth)


_RELATIONS: dict[str, Relation] = {name: name for name in get_args(Relation)}
_PREDICATES = ("on", "inside", "next_to", "at", "all", "any", "not", "count")


def _combined(kind: str, item: Mapping[str, Any], where: str, depth: int) -> Combined:
    _only(item, (kind, "at_least", "at_most") if kind == "count" else (kind,), where)
    documents = [item[kind]] if kind == "not" else item[kind]
    if not isinstance(documents, list) or not documents:
        _fail(f"{where}.{kind}", f"is not a list of at least one part: {item[kind]!r:.60}", "write a list")
    parts = tuple(_expression(part, f"{where}.{kind}.{i}", depth + 1) for i, part in enumerate(documents))
    if kind == "not":
        return Combined(parts, at_most=0)
    if kind == "count":
        return Combined(parts, *_limits(item, where))
    return Combined(parts, at_least=len(parts) if kind == "all" else 1)


def _placed(item: Mapping[str, Any], where: str) -> Placed:
    place, inside = item["at"], f"{where}.at"
    kinds = [key for key in _PLACES if isinstance(place, Mapping) and key in place]
    if len(kinds) != 1:
        _fail(inside, f"is not a place: {place!r:.80}", f"use one of: {', '.join(_PLACES)}")
    kind = kinds[0]
    _only(place, _PLACES[kind], inside)
    _only(item, ("subject", "at", *CONSTANTS[kind]), where)
    subject, constants = _subject(item, where), _constants(item, where)
    if kind == "room":
        return Placed(subject, constants, room=_word(place["room"], f"{inside}.room"))
    if kind == "region":
        corners = place["region"]
        if not isinstance(corners, list) or len(corners) < 3:
            _fail(f"{inside}.region", f"is not a list of 3 corners or more: {corners!r:.60}", "write [[x, y], ...]")
        points = [_numbers(corner, 2, f"{inside}.region.{i}") for i, corner in enumerate(corners)]
        return Placed(subject, constants, region=tuple((x, y) for x, y in points))
    yaw_rad = math.radians(_number(place.get("yaw_deg", 0), f"{inside}.yaw_deg"))
    if kind == "center":
        size = _numbers(place.get("size"), 3, f"{inside}.size")
        if min(size) <= 0:
            _fail(f"{inside}.size", f"is not positive: {list(size)}", "give full edge lengths in meters")
        return Placed(subject, constants, box=(_numbers(place["center"], 3, f"{inside}.center"), size, yaw_rad))
    if not constants:
        _fail(where, "says nothing about how near is near enough", f"add one of: {', '.join(CONSTANTS[kind])}")
    return Placed(subject, constants, pose=_pose(place, yaw_rad, inside))


_PLACES = {
    "position": ("position", "yaw_deg", "quaternion"),
    "center": ("center", "size", "yaw_deg"),
    "region": ("region",),
    "room": ("room",),
}


def _pose(place: Mapping[str, Any], yaw_rad: float, where: str) -> ObjectPose:
    x, y, z = _numbers(place["position"], 3, f"{where}.position")
    if "quaternion" not in place:
        return ObjectPose.upright((x, y, z), yaw_rad)
    if "yaw_deg" in place:
        _fail(where, "has both 'yaw_deg' and 'quaternion'", "keep one of them")
    a, b, c, d = _numbers(place["quaternion"], 4, f"{where}.quaternion")
    pose = ObjectPose((x, y, z), (a, b, c, d))
    if pose.fault:
        _fail(where, pose.fault, "give a unit quaternion w, x, y, z")
    return pose


def _subject(item: Mapping[str, Any], where: str) -> Selection:
    if "subject" not in item:
        _fail(where, "has no 'subject'", "name the object that it is about")
    return _selection(item["subject"], f"{where}.subject")


def _selection(value: Any, where: str) -> Selection:
    if isinstance(value, str):
        return Selection(id=_word(value, where))
    if not isinstance(value, Mapping):
        _fail(where, f"names no object: {value!r:.60}", "give an id, {every: category} or {some: category}")
    if set(value) == {"every"}:
        return Selection(category=_word(value["every"], f"{where}.every"))
    if set(value) == {"some"}:
        return Selection(category=_word(value["some"], f"{where}.some"), at_least=1)
    if "of" not in value:
        _fail(
            where,
            f"names no objects: {dict(value)!r:.60}",
            "give {every: category}, {some: ...} or {at_least: n, of: ...}",
        )
    _only(value, ("of", "at_least", "at_most"), where)
    return Selection(None, _word(value["of"], f"{where}.of"), *_limits(value, where))


def _limits(value: Mapping[str, Any], where: str) -> tuple[int, int | None]:
    given = {name: value[name] for name in ("at_least", "at_most") if name in value}
    if not given or not all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in given.values()):
        _fail(where, f"does not say how many: {given}", "give 'at_least', 'at_most' or both, as integers")
    return given.get("at_least", 0), given.get("at_most")


def _constants(item: Mapping[str, Any], where: str) -> dict[str, float]:
    names = {name for group in CONSTANTS.values() for name in group} & item.keys()
    highest = {"min_fraction": 1.0, "min_iou": 1.0, "within_deg": 180.0}
    return {name: _number(item[name], f"{where}.{name}", 0, highest.get(name, math.inf)) for name in sorted(names)}


def _with_words(item: Any) -> Any:
    """YAML 1.1 takes a bare ``on`` for true: as a key, it is the predicate."""
    if isinstance(item, Mapping):
        return {"on" if key is True else key: _with_words(value) for key, value in item.items()}
    return [_with_words(value) for value in item] if isinstance(item, list) else item


# --- values ---------------------------------------------------------------------------------------------------------


def _numbers(value: Any, count: int, where: str) -> tuple[float, ...]:
    if not isinstance(value, list) or len(value) != count:
        _fail(where, f"is not a list of {count} numbers: {value!r:.60}", "correct it")
    return tuple(_number(item, where) for item in value)


def _number(value: Any, where: str, low: float = -math.inf, high: float = math.inf) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        _fail(where, f"is not a finite number: {value!r:.60}", "correct it")
    if not low <= value <= high:
        _fail(where, f"must lie between {low:g} and {high:g}, got {value:g}", "correct it")
    return float(value)


def _word(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        _fail(where, f"is not a name: {value!r:.60}", "correct it")
    return value


def _only(value: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    unknown = [str(key) for key in value if key not in known]
    if unknown:
        close = difflib.get_close_matches(unknown[0], known, n=1)
        remedy = f"did you mean {close[0]!r}?" if close else f"use: {', '.join(known)}"
        _fail(where, f"there is no {unknown[0]!r} here", remedy)


def _fail(where: str, problem: str, remedy: str) -> NoReturn:
    raise EpisodeError(f"{where}: {problem}", remedy)
