"""Images of observations, computed again from the logged frame; a log has their digests only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from robot_runtime.common.geometry import SE2
from robot_runtime.errors import RecordingError
from robot_runtime.hal import RgbdFrame
from robot_runtime.policy import Observation
from robot_runtime.recording import json_records
from robot_runtime.records import EpisodeHeader, StepRecord
from robot_runtime.tasks.categories import object_category_ids
from robot_runtime.tasks.registry import sensor_of
from robot_runtime.tasks.sensor import Moment


def digests_of(observation: Mapping[str, Any]) -> dict[str, Any]:
    """The digests of an observation's images in a step's JSON."""
    return {name: array for name, array in observation.items() if "crc32" in array}


def with_images(
    header: EpisodeHeader, record: StepRecord, frame: RgbdFrame, digests: Mapping[str, Any], where: str
) -> StepRecord:
    """A step with its frame, and with the observation's images computed from the frame.

    Args:
        header: header of the episode.
        record: step without images.
        frame: images of the camera.
        digests: digests of the observation's images, by sensor.
        where: file and step, for messages.

    Raises:
        RecordingError: an image is not the one that the policy was given.
    """
    task = header.task
    moment = Moment(task, frame, SE2(), SE2(), None, object_category_ids(task, header.scene))
    observation: Observation = {}
    for name in task.sensors:
        if name in record.observation:
            observation[name] = record.observation[name]
        elif name in digests:
            observation[name] = sensor_of(task, name).value(moment)
            if json_records.array_to_json(observation[name]) != digests[name]:
                raise RecordingError(
                    f"{where}: observation {name!r} from the logged frame is not the one that the policy was given",
                    "read the log with the version that its provenance names, or use frame(), the camera's images",
                )
    return replace(record, frame=frame, observation=observation)
