"""Collection of demonstrations by the classical agent, the teacher, in the kinematic simulator.

In the first round the teacher drives. In later rounds the policy drives more and more often, and the teacher labels the
states that the policy reaches (DAgger, Ross et al. 2011), so that the policy learns to recover from its own errors.

The network's map views are stored instead of images: they are a fixed function of the observations
(``mapping.MapMemory``), and the network's only input from them.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from robot_runtime.actions.discrete import Action
from robot_runtime.datasets.formats import generate_episodes
from robot_runtime.policies.baselines.classical.agent import Classical
from robot_runtime.policies.package.formats.onnx import open_session
from robot_runtime.policy import Observation
from robot_runtime.scenes.scene import load_scene
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.task import Task, load_task
from sim_bridge.training.kinematic_simulator import Errors, KinematicSimulator, preset_options

TASK = "pointnav_gps_compass"
WIDTH, HEIGHT = 160, 120
"""Image size; the teacher and the map memory read as many pixels of a larger image."""

MAX_STEPS = 250
"""Step limit of an episode; in a longer one the robot is stuck."""

_STUCK_STEPS = 60


@dataclass(frozen=True)
class Job:
    """Some episodes in one scene.

    Attributes:
        scene: folder.
        out: file of the demonstrations.
        policy: ONNX file of the policy with its views as outputs (``export.export_learner``).
        episodes: number of them.
        seed: seed of episodes and errors.
        learner_share: share of the steps at which the policy drives.
        sampled: whether the policy samples its actions from its logits.
        exact_share: share of episodes without errors; the others have 0 to 1.5 times those of ``robot``.
        robot: preset.
    """

    scene: Path
    out: Path
    policy: Path
    episodes: int
    seed: int
    learner_share: float
    sampled: bool = False
    exact_share: float = 0.3
    robot: str = "sim-noisy"


def small_task() -> Task:
    """The task with a camera of fewer pixels and the same field of view."""
    task = load_task(TASK)
    return replace(task, camera=replace(task.camera, width=WIDTH, height=HEIGHT))


class Learner:
    """The present policy, run step by step."""

    def __init__(self, path: Path) -> None:
        self._session = open_session(str(path))
        state = next(one for one in self._session.get_inputs() if one.name == "rnn_state")
        self._zero = np.zeros(state.shape, np.float32)

    def reset(self) -> None:
        """Begin an episode."""
        self._state, self._previous, self._first = self._zero, 0, True

    def observe(self, observation: Observation) -> dict[str, NDArray[np.float32]]:
        """Run the network on an observation, and return logits and views by name."""
        names = ("logits", "rnn_state_out", "fine", "coarse", "motion")
        values = self._session.run(
            names,
            {
                "depth": observation["depth"][None],
                "pointgoal": observation["pointgoal_with_gps_compass"][None],
                "gps": observation["gps"][None],
                "compass": observation["compass"][None],
                "rnn_state": self._state,
                "prev_action": np.array([[self._previous]], np.int64),
                "not_done_mask": np.array([[not self._first]]),
            },
        )
        outputs = dict(zip(names, (value[0] for value in values), strict=True))
        self._state = outputs.pop("rnn_state_out")[None]
        return outputs

    def acted(self, action: int) -> None:
        """Record the executed action by its id."""
        self._previous, self._first = action, False


def collect(job: Job) -> tuple[int, int]:
    """Run a job unless its file exists. Return the numbers of steps and of successful episodes."""
    if not job.out.exists():
        _write(job)
    with np.load(job.out) as data:
        return len(data["label"]), int(data["arrived"].sum())


def _write(job: Job) -> None:
    task, scene = small_task(), load_scene(job.scene)
    random = np.random.default_rng(job.seed)
    options = preset_options(job.robot)
    simulator, learner = KinematicSimulator(scene, task), Learner(job.policy)
    columns: dict[str, list[object]] = {}
    try:
        for episode in generate_episodes(scene, task, job.episodes, job.seed):
            share = 0.0 if random.random() < job.exact_share else random.uniform(0, 1.5)
            _episode(job, simulator, learner, episode, Errors(options, share), random, columns)
    finally:
        simulator.close()
    dtypes = {"fine": np.int8, "coarse": np.int8, "goal": np.float32, "motion": np.float32}
    arrays = {name: np.asarray(values, dtypes.get(name, np.int8)) for name, values in columns.items()}
    part = job.out.with_suffix(".part.npz")
    np.savez(part, **arrays)  # type: ignore[arg-type]  # numpy's stub takes the names for its own flag
    part.replace(job.out)


def _episode(
    job: Job,
    simulator: KinematicSimulator,
    learner: Learner,
    episode: Episode,
    errors: Errors,
    random: np.random.Generator,
    columns: dict[str, list[object]],
) -> None:
    """Append one episode to ``columns``; it ends when the teacher stops or the robot is stuck."""
    task = simulator.task
    teacher = Classical()
    teacher.reset(task, int(random.integers(2**31)))
    learner.reset()
    observation = simulator.reset(episode, errors, random)
    still = 0
    arrived = False
    for step in range(MAX_STEPS):
        label = teacher.act(observation)
        outputs = learner.observe(observation)
        action = label
        if random.random() < job.learner_share:
            action = task.actions[_choice(outputs["logits"], job.sampled, random)]
        row = {
            "fine": outputs["fine"].astype(np.int8),
            "coarse": np.rint(outputs["coarse"] * np.array([1, 16], np.float32)[:, None, None]).astype(np.int8),
            "goal": observation["pointgoal_with_gps_compass"],
            "motion": outputs["motion"],
            "label": task.actions.index(label),
            "first": step == 0,
        }
        if label is Action.STOP:
            arrived = float(observation["pointgoal_with_gps_compass"][0]) < task.success.distance_m
        if action is Action.STOP and label is not Action.STOP:
            action = label  # a wrong stop does not end the episode, so that the steps after it are learned, too
        learner.acted(task.actions.index(action))
        teacher.overruled(action)
        row["action"] = task.actions.index(action)
        row["arrived"] = arrived
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
        still = still + 1 if abs(float(outputs["motion"][0])) < 0.1 else 0
        if label is Action.STOP or still >= _STUCK_STEPS:
            break
        observation = simulator.step(action)


def _choice(logits: NDArray[np.float32], sampled: bool, random: np.random.Generator) -> int:
    if not sampled:
        return int(np.argmax(logits))
    weights = np.exp(logits - logits.max())
    return int(random.choice(len(weights), p=weights / weights.sum()))
