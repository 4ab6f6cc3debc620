"""Facts about a scene and the files in its folder that are possible and rarely meant: rooms that overlap, far tags."""

from collections.abc import Iterator
from itertools import combinations

from robot_runtime.scenes.scene import Point2, Room, Scene
from robot_runtime.scenes.tag_map import FILE_NAME, load_tag_map

SAMPLE_M = 0.25
"""Distance of the points at which the area of rooms is sampled."""

VIEW_M = 3.0
"""Distance of an object's nearest view point above which the view points are those of another scene."""

WORTH_A_NOTE = 0.1
"""Smallest fraction of a room that is reported."""


def scene_notes(scene: Scene) -> Iterator[str]:
    """Yield the facts as sentences. Raises ``ConfigError`` for a malformed tag map in the scene's folder."""
    for item in scene.objects:
        x_m, y_m, z_m = item.center
        if not item.is_on_floor(scene.file.ceiling_m):
            yield (
                f"object {item.id!r} is at z = {z_m:.2f} m, on another floor: the map's is at 0, its ceiling at "
                f"{scene.file.ceiling_m:g} m"
            )
        elif not scene.map.contains(x_m, y_m):
            yield f"object {item.id!r} is off the map, at ({x_m:.2f}, {y_m:.2f}) m"
        apart_m = min((item.distance_m(view.x_m, view.y_m) for view in scene.view_points.get(item.id, ())), default=0.0)
        if apart_m > VIEW_M:
            yield f"view_points.json: the nearest view point of object {item.id!r} is {apart_m:.1f} m from it"
    if (tags := scene.folder / FILE_NAME).is_file():
        for tag in load_tag_map(tags).tags:
            x_m, y_m, z_m = tag.xyz_m
            if not (scene.map.contains(x_m, y_m) and 0 <= z_m < scene.file.ceiling_m):
                yield f"{FILE_NAME}: tag {tag.id} is outside the map's rooms, at ({x_m:.2f}, {y_m:.2f}, {z_m:.2f}) m"
    points = {room.id: _samples(room) for room in scene.rooms}
    for room in scene.rooms:
        outside = sum(not scene.map.contains(*point) for point in points[room.id])
        if outside > WORTH_A_NOTE * len(points[room.id]):
            yield f"room {room.id!r} lies to {100 * outside / len(points[room.id]):.0f} % off the map"
    for one, other in combinations(scene.rooms, 2):
        shared = sum(other.contains(*point) for point in points[one.id])
        if shared > WORTH_A_NOTE * min(len(points[one.id]), len(points[other.id])):
            yield f"rooms {one.id!r} and {other.id!r} overlap by about {shared * SAMPLE_M**2:.1f} m²"


def _samples(room: Room) -> list[Point2]:
    """Points of a grid that lie in a room."""
    (low_x, low_y), _, (high_x, high_y), _ = room.box.polygon
    columns, rows = int((high_x - low_x) / SAMPLE_M) + 1, int((high_y - low_y) / SAMPLE_M) + 1
    grid = (
        (low_x + (column + 0.5) * SAMPLE_M, low_y + (row + 0.5) * SAMPLE_M)
        for column in range(columns)
        for row in range(rows)
    )
    return [point for point in grid if room.contains(*point)]
