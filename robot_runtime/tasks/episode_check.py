"""Check of an episode before it is run."""

from pathlib import Path

from robot_runtime.errors import EpisodeError, InvalidStart, OtherFloor, UnreachableGoal
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.floors import off_floor, with_goals_on_floor
from robot_runtime.tasks.kind import kind_of
from robot_runtime.tasks.task import Task


def check_episode(task: Task, scene: Scene, episode: Episode, geodesic: GeodesicMap) -> Episode:
    """The episode with resolved goals, if it can be run: the robot fits at the start and a way leads to a goal.

    Raises:
        InvalidStart: the start is off the map, in an obstacle, or too near one.
        OtherFloor: the start, every goal, or an object to move is on another floor than the map's.
        UnreachableGoal: no target is navigable, or no way leads to one.
        EpisodeError: it belongs to another scene, or its goals cannot be resolved.
    """
    if Path(episode.scene).stem != scene.name:
        raise EpisodeError(
            f"episode {episode.id!r} belongs to scene {episode.scene!r}, and scene {scene.name!r} was loaded",
            "give that scene, or generate episodes for this one with `robot-runtime episodes generate`",
        )
    start = episode.start
    place = f"({start.x_m:.3f}, {start.y_m:.3f})"
    remedy = f"correct the episode, or generate others for {scene.folder} with `robot-runtime episodes generate`"
    if not scene.map.contains(start.x_m, start.y_m):
        raise InvalidStart(f"episode {episode.id!r}: start {place} is off the map of scene {scene.name!r}", remedy)
    if not geodesic.is_navigable(start.x_m, start.y_m):
        row, column = scene.map.to_cell(start.x_m, start.y_m)
        clearance_m = float(scene.map.clearance_m()[row, column])
        raise InvalidStart(
            f"episode {episode.id!r}: start {place} is {clearance_m:.3f} m from an obstacle of scene {scene.name!r}, "
            f"but the robot's radius is {geodesic.radius_m:.3f} m",
            remedy,
        )
    kind = kind_of(task)
    resolved = kind.resolve_goals(task, scene, episode)
    if elsewhere := next(off_floor(resolved, scene), None):
        raise OtherFloor(
            f"episode {episode.id!r}: {elsewhere}, on another floor than the map of scene {scene.name!r} shows",
            "use episodes of this floor, or import the scene again with the other floor's height: "
            "`robot-runtime scene import --floor-z-m`",
        )
    resolved = with_goals_on_floor(resolved, scene)
    field = geodesic.field(kind.targets(task, resolved, scene))
    if not len(field.targets):
        raise UnreachableGoal(f"episode {episode.id!r}: no goal lies in navigable space of {scene.name!r}", remedy)
    if field.at(start.x_m, start.y_m) == float("inf"):
        raise UnreachableGoal(f"episode {episode.id!r}: no way leads from start {place} to a goal", remedy)
    return resolved
