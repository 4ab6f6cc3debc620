"""Import of a bag that :mod:`~drivers.ros_locobot.bag.export` wrote: the records equal those of the exported log."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
from foxglove_schemas_protobuf.RawImage_pb2 import RawImage

from drivers.ros_locobot.bag import topic_layout as at
from drivers.ros_locobot.bag.errors import DamagedBag, MissingTopic
from drivers.ros_locobot.bag.reader import BagMessage, BagReader, Progress
from drivers.ros_locobot.camera.messages import color_image
from robot_runtime.errors import ConfigError, RuntimeFault, SceneError
from robot_runtime.hal import RgbdFrame
from robot_runtime.recording import json_records, observations
from robot_runtime.recording.channels import LOG_FORMAT
from robot_runtime.recording.header import header_from_json
from robot_runtime.recording.images import decode_depth, decode_semantic
from robot_runtime.records import EpisodeEnd, EpisodeHeader, StepRecord, Subscriber

_COLOR_END = "/color/image_raw"
_DEPTH_END = "/aligned_depth_to_color/image_raw"


def is_exported(bag: BagReader) -> bool:
    """Whether a bag contains an exported log."""
    return at.EPISODE in bag.kinds


def restore(bag: BagReader, into: Subscriber, on_step: Progress = lambda: None) -> EpisodeEnd | None:
    """Pass the log's records to a subscriber, one step at a time; the end is missing if the log was truncated.

    Args:
        bag: The bag.
        into: Gets header, base states, steps and the end.
        on_step: Called after every step.

    Raises:
        DamagedBag: Names the topic.
        MissingTopic: Names the topic.
        RecordingError: Raised by ``into``, or an image is not the one that the policy got.
    """
    header = _header(bag)
    images = _LoggedImages(bag)
    into.on_episode_start(header)
    for message in bag.messages((*images.topics, at.BASE, at.STEP, at.END)):
        if message.topic in images.topics:
            images.add(message)
            continue
        try:
            data = json.loads(message.decoded().data)
            if message.topic == at.BASE:
                into.on_base_state(json_records.base_from_json(data))
            elif message.topic == at.STEP:
                into.on_step(_step(bag, header, data, images))
                on_step()
            else:
                end = json_records.end_from_json(data)
                into.on_episode_end(end)
                return end
        except (KeyError, ValueError, TypeError) as error:
            raise _invalid(bag, message.topic, error) from error
    return None


def _header(bag: BagReader) -> EpisodeHeader:
    content: dict[str, Any] = {}
    files: dict[str, bytes] = {}
    for topic in (at.EPISODE, at.PROVENANCE, at.FILE):
        bag.require(topic, ("std_msgs/String",), "written by `robot-runtime export`", "export the log again")
    topic = at.EPISODE
    try:
        for message in bag.messages((at.EPISODE, at.PROVENANCE, at.FILE)):
            topic = message.topic
            data = json.loads(message.decoded().data)
            if topic == at.FILE:
                files[data["name"]] = base64.b64decode(data["base64"], validate=True)
            content[topic] = data
    except (KeyError, ValueError, TypeError) as error:
        raise _invalid(bag, topic, error) from error
    data = content[at.EPISODE]
    try:
        if data["format"] != LOG_FORMAT:
            raise ValueError(f"log format {data['format']}, this version reads {LOG_FORMAT}")
        return header_from_json(bag.path, data, files, content[at.PROVENANCE])
    except (KeyError, ValueError, TypeError, ConfigError, SceneError) as error:
        raise _invalid(bag, at.EPISODE, error) from error


def _step(bag: BagReader, header: EpisodeHeader, data: dict[str, Any], images: _LoggedImages) -> StepRecord:
    step = data["step"]
    frame = images.frame(step["index"], step["frame"]["stamp_ns"], step["frame"]["semantic"])
    seen = step["observation"]
    objects = json_records.objects_from_json(data["objects"])
    record = json_records.step_from_json(step, observations.numbers_of(seen), frame, data["phase_s"], objects)
    where = f"{bag.path}: step {record.index}"
    return observations.with_images(header, record, frame, observations.digests_of(seen), where)


class _LoggedImages:
    """The newest images, on the topics of any variant."""

    def __init__(self, bag: BagReader) -> None:
        self._path = bag.path
        topics = [topic for topic, kind in bag.kinds.items() if kind == "sensor_msgs/Image"]
        self._color = _only(bag, [topic for topic in topics if topic.endswith(_COLOR_END)], f"…{_COLOR_END}")
        self._depth = _only(bag, [topic for topic in topics if topic.endswith(_DEPTH_END)], f"…{_DEPTH_END}")
        self.topics = tuple(topic for topic in topics if topic in (self._color, self._depth, at.SEMANTIC))
        self._newest: dict[str, BagMessage] = {}

    def add(self, message: BagMessage) -> None:
        """Store an image."""
        self._newest[message.topic] = message

    def frame(self, index: int, stamp_ns: int, semantic: bool) -> RgbdFrame:
        """Return the frame of a step. Raises ``MissingTopic`` if one of its images is missing."""
        found: dict[str, Any] = {}
        for topic in (self._color, self._depth, *((at.SEMANTIC,) if semantic else ())):
            message = self._newest.get(topic)
            if message is None or message.stamp_ns != stamp_ns:
                raise MissingTopic(
                    f"{self._path}: step {index}: topic {topic} has no image of its stamp, {stamp_ns} ns",
                    "export the log again, with all topics (`rosbag filter` may have dropped some)",
                )
            found[topic] = message.decoded()
        try:
            return RgbdFrame(
                stamp_ns,
                color_image(found[self._color], self._color),
                decode_depth(_raw(found[self._depth])),
                decode_semantic(_raw(found[at.SEMANTIC])) if semantic else None,
            )
        except (ValueError, RuntimeFault) as error:
            raise DamagedBag(f"{self._path}: step {index}: {error}", "export the log again") from error


def _only(bag: BagReader, topics: list[str], what: str) -> str:
    if len(topics) == 1:
        return topics[0]
    raise MissingTopic(
        f"{bag.path}: {len(topics)} topics of images are called {what}, an exported bag has one", "export the log again"
    )


def _raw(image: Any) -> bytes:
    """Encode an image as in logs."""
    data = np.asarray(image.data, np.uint8).tobytes()
    encoded = RawImage(width=image.width, height=image.height, encoding=image.encoding, step=image.step, data=data)
    return bytes(encoded.SerializeToString())


def _invalid(bag: BagReader, topic: str, error: Exception) -> DamagedBag:
    return DamagedBag(f"{bag.path}: topic {topic} is invalid: {error!r}", "export the log again with this version")
