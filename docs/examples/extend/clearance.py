"""A sensor for tasks of every kind: the nearest measured distance in the middle of the image."""

import numpy as np

from robot_runtime.tasks.sensor import Moment, Sensor


def _nearest(moment: Moment) -> np.ndarray:
    camera, depth_m = moment.task.camera, moment.frame.depth_m
    rows, columns = depth_m.shape
    middle = depth_m[rows // 3 : 2 * rows // 3, columns // 3 : 2 * columns // 3]
    measured = middle[middle > 0]  # 0 is a pixel without a measurement
    nearest_m = measured.min() if measured.size else camera.depth_max_m
    return np.array([np.clip(nearest_m, camera.depth_min_m, camera.depth_max_m)], np.float32)


CLEARANCE = Sensor(
    doc="smallest distance along the optical axis in the middle of the image, m",
    dtype=np.float32,
    shape=lambda task: (1,),
    bounds=lambda task: (task.camera.depth_min_m, task.camera.depth_max_m),
    value=_nearest,
)
