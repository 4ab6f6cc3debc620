"""Settings of a rearrangement task."""

from dataclasses import dataclass
from typing import Literal

from robot_runtime.common import config
from robot_runtime.common.quantities import Reach

GoalKind = Literal["geometric", "predicate", "experience", "image", "language"]


@dataclass(frozen=True)
class Rearrangement(config.Strict):
    """Rules of moving objects, and criteria of their goals (Batra et al. 2020, Rearrangement, sections 3, 4).

    The criteria per object hold together; None leaves one out, and one that an object has no measurement for is left
    out for it. With ``goal: predicate`` they decide nothing: the episode's program does.

    Attributes:
        goal: form in which the agent gets the goal: poses; a program of predicates; a walk through the goal state,
            before objects are moved; an image of the goal state, taken from the start; an instruction.
        crosshair: target of ``grab_release``, fractions of the image from its left and top; 0.5, 0.5 is the middle.
        reach_m: longest distance from the optical center along that ray.
        capacity: number of objects that can be carried at once.
        max_translation_m: between final and goal pose, <=.
        max_angle_deg: between final and goal pose, <=.
        min_iou: overlap of the oriented boxes, >, or >= with ``inclusive_iou``.
        inclusive_iou: whether exactly ``min_iou`` counts.
        max_openness: difference of the openness, <=.
        harm_min_iou: an object without a goal is unharmed while its boxes at the start and in the end overlap by more
            than this; None: there is no such test.
        walkthrough_steps: number of actions that the agent has in the goal state, for ``experience``; ``stop`` ends it
            early. ``max_steps`` counts the rest.
        min_objects: fewest objects to be moved in generated episodes.
        max_objects: most objects to be moved in generated episodes, and most that a sensor shows.
    """

    goal: GoalKind
    crosshair: tuple[float, float]
    reach_m: Reach
    capacity: int = 1
    max_translation_m: Reach | None = None
    max_angle_deg: float | None = None
    min_iou: float | None = None
    inclusive_iou: bool = False
    max_openness: float | None = None
    harm_min_iou: float | None = None
    walkthrough_steps: int = 0
    min_objects: int = 1
    max_objects: int = 5

    def __post_init__(self) -> None:
        if not all(0 <= part <= 1 for part in self.crosshair):
            raise ValueError(f"crosshair must be two fractions of the image, got {self.crosshair}")
        if self.reach_m <= 0 or self.capacity < 1:
            raise ValueError(f"reach_m and capacity must be positive, got {self.reach_m} and {self.capacity}")
        limits = (self.max_translation_m, self.max_angle_deg, self.min_iou, self.max_openness, self.harm_min_iou)
        if any(limit is not None and limit < 0 for limit in limits):
            raise ValueError("a criterion cannot be negative")
        if self.goal != "predicate" and all(limit is None for limit in limits[:4]):
            raise ValueError("no criterion decides whether an object is at its goal")
        if (self.goal == "experience") != (self.walkthrough_steps > 0):
            raise ValueError("walkthrough_steps goes with the goal experience")
        if not 1 <= self.min_objects <= self.max_objects:
            raise ValueError(f"need 1 <= min_objects <= max_objects, got {self.min_objects} and {self.max_objects}")
