"""Kinds and sensors of tasks by name."""

from robot_runtime.common.plugins import Registry
from robot_runtime.tasks import payloads
from robot_runtime.tasks.kind import TaskKind
from robot_runtime.tasks.sensor import Sensor
from robot_runtime.tasks.task import Task

KINDS: Registry[TaskKind] = Registry(payloads.TASK_KINDS, "kind of task", TaskKind)
SENSORS: Registry[Sensor] = Registry(payloads.COMMON_SENSORS, "sensor", Sensor)


def kind_of(task: Task) -> TaskKind:
    """The kind of a task. Raises ``PluginError`` if the package that offers it cannot be used."""
    return KINDS.load(task.kind)


def has_sensor(task: Task, name: str) -> bool:
    """Whether a task may have a sensor of that name."""
    return name in SENSORS or name in kind_of(task).sensors


def sensor_of(task: Task, name: str) -> Sensor:
    """A sensor that a task may have. Raises ``ConfigError`` if there is no such sensor for this kind."""
    return kind_of(task).sensors.get(name) or SENSORS.load(name)
