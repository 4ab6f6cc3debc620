"""Generator of PointNav episodes, with the distributions of the published datasets; deterministic by seed.

Savva et al. 2019 (Habitat), section 4: "We initialize the agent at a starting position and orientation that are sampled
uniformly at random from all navigable positions [...] we restrict the GDSP [geodesic distance along the shortest path]
to be between 1m and 30m. [...] we perform aggressive rejection sampling for episodes with the above ratio [GDSP /
Euclidean distance] falling in the range [1, 1.1]." The paper leaves the rate open; habitat-lab
(``datasets/pointnav/pointnav_generator.py``) keeps such an episode with probability 20 (ratio - 0.98)^2, that is 0.008
at 1 and 0.288 at 1.1, and tries 10 starts per goal.
"""

import math

from robot_runtime.datasets.sampling import Sampler
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks.episode import Episode, Goal
from robot_runtime.tasks.task import Task

STRAIGHT_RATIO = 1.1

_STARTS_PER_GOAL = 10
_GOALS_PER_EPISODE = 100


def generate(scene: Scene, task: Task, count: int, seed: int) -> list[Episode]:
    """``count`` PointNav episodes for the task's robot radius.

    Raises:
        EpisodeError: the robot fits nowhere, or the scene is too small or too open for such episodes.
    """
    sampler = Sampler(scene, task, seed)
    return [_episode(sampler, index) for index in range(count)]


def keep_probability(ratio: float) -> float:
    """Probability of keeping a PointNav episode with that geodesic-to-Euclidean ratio (habitat-lab's rule)."""
    return 1.0 if ratio >= STRAIGHT_RATIO else 20 * (ratio - 0.98) ** 2


def _episode(sampler: Sampler, index: int) -> Episode:
    for _ in range(_GOALS_PER_EPISODE):
        goal = sampler.place()
        field = sampler.geodesic.field([goal])
        for _ in range(_STARTS_PER_GOAL):
            start = sampler.place()
            distance_m = field.at(*start)
            if not sampler.is_far_enough(distance_m):
                continue
            if sampler.rng.random() < keep_probability(distance_m / math.dist(start, goal)):
                return sampler.episode(index, start, field, (Goal(*goal),))
    raise sampler.too_small("a PointNav")
