"""Metrics by the names and inputs that files of worked cases use.

Inputs in common: ``R`` reference and ``Q`` path; ``d_th`` threshold; ``strict`` for < in place of <=; ``d`` the
distance: ``"euclidean"`` (the default, in all coordinates), ``"planar"`` (y up: x and z), ``"planar_xy"`` (z up: x and
y), or an object for the discrete environments of VLN, whose paths are node names: shortest ways along ``{"edges":
[[a, b, length], ...]}`` or, with lengths from positions, ``{"nodes": {a: [x, y, z], ...}, "edges": [[a, b], ...]}``;
or any distances, ``{"nodes": [a, b, ...], "matrix": [[0, ...], ...]}``. Each function below reads the rest.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from robot_runtime.metrics.functional import dtw, eqa, fidelity, path, rearrangement, tours
from robot_runtime.metrics.functional.boxes import Box, iou
from robot_runtime.metrics.functional.distances import EUCLIDEAN, Distance, Euclidean, Graph
from robot_runtime.metrics.functional.route import sed
from robot_runtime.metrics.functional.spl import sct, soft_spl, spl
from robot_runtime.metrics.functional.success import collisions, distance_to_goal, success, visible_success
from robot_runtime.scoring.statistics import hypothesis_tests
from robot_runtime.scoring.statistics.intervals import bootstrap_mean, wilson


class CaseInputs:
    """Inputs of a case, which track what was read, so that a misspelled one is not ignored.

    Raises:
        KeyError: from ``[]``, for an input that is missing.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self._read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self._read.add(name)
        return self._values[name]

    def get(self, name: str, default: Any) -> Any:
        """Return an optional input."""
        self._read.add(name)
        return self._values.get(name, default)

    def options(self, **names: str) -> dict[str, Any]:
        """Return the given ones of some inputs as keyword arguments: ``options(argument="input")``."""
        self._read.update(names.values())
        return {argument: self._values[name] for argument, name in names.items() if name in self._values}

    @property
    def distance(self) -> Distance:
        """Input ``d``."""
        stated = self.get("d", "euclidean")
        if isinstance(stated, dict):
            return _graph(stated)
        return {"euclidean": EUCLIDEAN, "planar": Euclidean((0, 2)), "planar_xy": Euclidean((0, 1))}[stated]

    @property
    def reference_and_path(self) -> tuple[Any, Any, Distance]:
        """Inputs ``R``, ``Q`` and ``d``."""
        return self["R"], self["Q"], self.distance

    @property
    def thresholded(self) -> tuple[Any, Any, float, Distance]:
        """Inputs ``R``, ``Q``, ``d_th`` and ``d``."""
        return self["R"], self["Q"], self["d_th"], self.distance

    def check_all_used(self) -> None:
        """Raise TypeError if an input was not read."""
        if unread := sorted(self._values.keys() - self._read):
            raise TypeError(f"the metric has no input {unread[0]!r}")


def _graph(stated: Mapping[str, Any]) -> Graph:
    if unknown := sorted(stated.keys() - {"nodes", "edges", "matrix"}):
        raise TypeError(f"a graph has no {unknown[0]!r}")
    if ("edges" in stated) == ("matrix" in stated):
        raise TypeError("a graph has either edges or a matrix")
    if "matrix" in stated:
        return Graph(stated["nodes"], stated["matrix"])
    nodes = stated.get("nodes", {})
    edges = (edge if len(edge) == 3 else (*edge, _apart(nodes, *edge)) for edge in stated["edges"])
    return Graph.of_edges(edges, nodes)


def _apart(nodes: Mapping[str, Any], a: str, b: str) -> float:
    return float(EUCLIDEAN.steps(EUCLIDEAN.nodes([nodes[a], nodes[b]]))[0])


def _success_rate(x: CaseInputs) -> float:
    """As defined in papers: ``stopped`` unless stated otherwise, and with <= unless ``strict``."""
    apart, inclusive = path.navigation_error(*x.reference_and_path), not x.get("strict", False)
    return float(success(x.get("stopped", True), apart, x["d_th"], inclusive))


def _goal_success(x: CaseInputs) -> float:
    apart = distance_to_goal(x["pos"], x["goals"], x.distance)
    return float(success(x["stopped"], apart, x["radius"], inclusive=not x.get("strict", True)))


def _robothor_success(x: CaseInputs) -> float:
    x.get("distance", None)  # the visibility distance is part of ``visible``
    return float(visible_success(x["stopped"], x["visible"]))


def _oracle_success(x: CaseInputs) -> float:
    """As if the agent had stopped at its nearest node; with <= unless ``strict``."""
    apart, inclusive = path.oracle_navigation_error(*x.reference_and_path), not x.get("strict", False)
    return float(success(True, apart, x["d_th"], inclusive))


def _collisions(x: CaseInputs) -> dict[str, Any]:
    found = collisions(x["flags"])
    return {"count": found.count, "is_collision": found.last, "rate": found.rate}


def _eqa(x: CaseInputs) -> dict[str, float]:
    found = eqa.eqa_navigation(x["dists"], x["in_room"], x["last_action_is_stop"])
    return {name: float(value) for name, value in asdict(found).items()}


def _ranks(x: CaseInputs) -> list[float]:
    options = x.options(ties="ties")
    return [eqa.answer_rank(scores, truth, **options) for scores, truth in x["rows"]]


def _box(stated: Mapping[str, Any]) -> Box:
    """The box of ``{"center", "size", "yaw"}``, yaw in radians about z."""
    return Box.upright(stated["center"], stated["size"], stated.get("yaw", 0.0))


def _room_object(x: CaseInputs) -> bool:
    overlap = x["iou"]
    final, goal = x.get("open_final", None), x.get("open_goal", None)
    opening = None if final is None else abs(final - goal)
    if x.get("broken", False):
        return False
    return all(rearrangement.ROOM_REARRANGEMENT.criteria(iou=overlap, openness=opening).values())


def _completion(x: CaseInputs) -> float:
    """``harmed``, or ``no_harm``: a test per object that the task does not mention, of which one that fails harms.

    ``no_harm`` is a list of the tests' results, or ``{"start": {name: box}, "final": {name: box}, "min_iou"}`` with
    boxes as for ``iou_boxes``.
    """
    stated = x.get("no_harm", None)
    if stated is None:
        return rearrangement.completion(x["tests"], **x.options(harmed="harmed"))
    if isinstance(stated, Mapping):
        start, final = ({name: _box(box) for name, box in stated[when].items()} for when in ("start", "final"))
        stated = list(rearrangement.do_no_harm(start, final, stated.get("min_iou", 0.5)).values())
    return rearrangement.completion(x["tests"], harmed=not all(stated))


def _house_cleanup(x: CaseInputs) -> dict[str, float]:
    tests = rearrangement.within_goals(x["final"], x["goal"], distance=x.distance)
    done = rearrangement.episode_success(tests)
    return {
        "completion": rearrangement.completion(tests),
        "success": float(done),
        "spl": spl(done, x["l"], x["p"], **x.options(zero="zero")),
    }


def _room_rearrangement(x: CaseInputs) -> dict[str, float | None]:
    found = rearrangement.room_rearrangement(x["start_wrong"], x["end_wrong"])
    return {
        "prop_fixed": found.prop_fixed,
        "prop_fixed_strict": found.prop_fixed_strict,
        "prop_misplaced": found.prop_misplaced,
        "success": float(found.success),
    }


def _tour(x: CaseInputs) -> float:
    deliveries = [tours.Delivery(picks, drops) for picks, drops in x["deliveries"]]
    return tours.shortest_tour(x["start"], deliveries, x.distance).length


def _bootstrap(x: CaseInputs) -> list[float]:
    options = x.options(resamples="n", seed="seed", confidence="confidence", clusters="clusters")
    interval = bootstrap_mean(x["values"], **options)
    return [interval.mean, interval.low, interval.high]


def _wilson(x: CaseInputs) -> list[float]:
    interval = wilson(x["k"], x["n"], **x.options(confidence="confidence"))
    return [interval.low, interval.high]


METRICS: dict[str, Callable[[CaseInputs], Any]] = {
    "path_length": lambda x: path.path_length(x["Q"], x.distance),
    "navigation_error": lambda x: path.navigation_error(*x.reference_and_path),
    "oracle_navigation_error": lambda x: path.oracle_navigation_error(*x.reference_and_path),
    "success_rate": _success_rate,
    "oracle_success_rate": _oracle_success,
    "average_deviation": lambda x: fidelity.average_deviation(*x.reference_and_path),
    "max_deviation": lambda x: fidelity.max_deviation(*x.reference_and_path),
    "spl": lambda x: spl(x["success"], x["shortest"], x["travelled"], **x.options(zero="zero")),
    "soft_spl": lambda x: soft_spl(x["d_start"], x["d_end"], x["travelled"], **x.options(zero="zero")),
    "sct": lambda x: sct(x["success"], x["fastest"], x["completion"], **x.options(zero="zero")),
    "sed": lambda x: sed(x["success"], x["R"], x["Q"], **x.options(unit="unit")),
    "path_coverage": lambda x: fidelity.path_coverage(x["R"], x["Q"], x["d_th"], x.distance),
    "cls": lambda x: fidelity.cls(*x.thresholded, **x.options(degenerate="degenerate")),
    "dtw": lambda x: dtw.dtw(*x.reference_and_path),
    "ndtw": lambda x: dtw.ndtw(*x.thresholded),
    "sdtw": lambda x: dtw.sdtw(_success_rate(x), dtw.ndtw(*x.thresholded)),
    "sdtw_as_printed": lambda x: dtw.sdtw_as_printed(*x.thresholded),
    "distance_to_goal": lambda x: distance_to_goal(x["pos"], x["goals"], x.distance),
    "goal_success": _goal_success,
    "robothor_success": _robothor_success,
    "collisions": _collisions,
    "episode_length": lambda x: path.episode_length(x["actions"], **x.options(count_stop="count_stop")),
    "eqa_navigation": _eqa,
    "answer_rank": lambda x: eqa.answer_rank(x["scores"], x["truth"], **x.options(ties="ties")),
    "mean_rank": lambda x: eqa.mean_rank(_ranks(x)),
    "answer_accuracy": lambda x: eqa.answer_accuracy(_ranks(x)),
    "normalized_entropy": lambda x: eqa.normalized_entropy(x["counts"]),
    "iou_aabb": lambda x: iou(Box.between(x["lo1"], x["hi1"]), Box.between(x["lo2"], x["hi2"])),
    "iou_boxes": lambda x: iou(_box(x["a"]), _box(x["b"])),
    "angle_between": lambda x: rearrangement.angle_between(x["a"], x["b"]),
    "completion": _completion,
    "t4_object_ok": _room_object,
    "t5_episode": _house_cleanup,
    "ithor_rearrange": _room_rearrangement,
    "shortest_tour": _tour,
    "srcc": lambda x: hypothesis_tests.srcc(x["sim"], x["real"]),
    "rank_reversals": lambda x: len(hypothesis_tests.rank_reversals(x["sim"], x["real"])),
    "spl_variance": lambda x: list(hypothesis_tests.spl_variance(x["p"], x["c"], x["n"])),
    "paired_p_value": lambda x: hypothesis_tests.paired_permutation_test(x["a"], x["b"]).p_value,
    "wilson": _wilson,
    "bootstrap_ci": _bootstrap,
}
"""Name to function of :class:`CaseInputs`."""
