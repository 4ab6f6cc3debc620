"""Listens to a simulated robot from a process of its own, with a master and a ``/clock`` of its own.

``python sim_probe.py SECONDS [CAMERA_FRAME]`` prints one JSON document: what was published for so many simulated
seconds after everything had been heard from, and where tf has the camera. A message belongs to the instant of its
stamp, however late it is heard; of one without a stamp, to that of hearing it, for which simulated time waits.
"""

from __future__ import annotations

import collections
import json
import sys
import threading
import time
from typing import Any

import rosgraph
import rospy
import rostopic
import tf2_ros

from drivers.ros_locobot.connection.acknowledge import AcknowledgePublisher

LIMIT_S = 60.0
TRUTH = "/simulation/ground_truth"
EVENTS = ("events", "cliff", "wheeldrop", "motor_power", "rosout", "tf_static")


def main(seconds: float, camera_frame: str) -> dict[str, Any]:
    rospy.init_node("probe", disable_signals=True)
    buffer = tf2_ros.Buffer()
    tf2_ros.TransformListener(buffer)
    lock = threading.Lock()
    heard: dict[str, list[dict[str, Any]]] = collections.defaultdict(list)
    acknowledgements = AcknowledgePublisher()

    def listen(message: Any, topic: str) -> None:
        now_ns = rospy.get_rostime().to_nsec()
        with lock:
            heard[topic].append({"at": now_ns} | describe(message))
        if topic == TRUTH:
            acknowledgements.acknowledge(topic, message)

    topics = {name: kind for name, kind in rospy.get_published_topics() if name not in ("/rosout", "/rosout_agg")}
    for topic in topics:
        options = {"buff_size": 2**24} if "image" in topic else {}
        rospy.Subscriber(topic, rostopic.get_topic_class(topic)[0], listen, topic, tcp_nodelay=True, **options)
    steady = [topic for topic in topics if not any(word in topic for word in EVENTS)]
    deadline_s = time.monotonic() + LIMIT_S

    def all_heard_from(since_ns: int) -> bool:
        with lock:
            return all(heard[topic] and instant(heard[topic][-1]) > since_ns for topic in steady)

    while not all_heard_from(0) and time.monotonic() < deadline_s:
        time.sleep(0.01)
    begin_ns = rospy.get_rostime().to_nsec()
    end_ns = begin_ns + round(1e9 * seconds)
    while not all_heard_from(end_ns) and time.monotonic() < deadline_s:
        time.sleep(0.01)
    with lock:
        kept = {
            topic: [said for said in messages if topic not in steady or begin_ns < instant(said) <= end_ns]
            for topic, messages in heard.items()
        }
    place = None
    if camera_frame:
        found = buffer.lookup_transform("map", camera_frame, rospy.Time(0), rospy.Duration(5))
        t, r = found.transform.translation, found.transform.rotation
        place = {"xyz": [t.x, t.y, t.z], "quaternion": [r.x, r.y, r.z, r.w]}
    publishers, subscribers, _ = rosgraph.Master("/probe").getSystemState()
    sim = next(node for _, nodes in publishers for node in nodes if "simulated_robot" in node)
    return {
        "types": topics,
        "published": sorted(topic for topic, nodes in publishers if sim in nodes),
        "subscribed": sorted(topic for topic, nodes in subscribers if sim in nodes),
        "heard": kept,
        "camera": place,
    }


def instant(said: dict[str, Any]) -> int:
    """Time of publication, in nanoseconds of simulated time."""
    stamps = [stamp for *_, stamp in said.get("transforms", ())]
    return int(said.get("stamp") or max(stamps, default=0) or said["at"])


def describe(message: Any) -> dict[str, Any]:
    """Properties of a message that need no knowledge of its type."""
    header = getattr(message, "header", None)
    said: dict[str, Any] = {}
    if header is not None:
        said |= {"stamp": header.stamp.to_nsec(), "frame": header.frame_id}
    for name in ("child_frame_id", "name", "encoding", "width", "height", "step", "K", "distortion_model"):
        if hasattr(message, name):
            said[name] = getattr(message, name)
    if hasattr(message, "transforms"):
        said["transforms"] = [
            [t.header.frame_id, t.child_frame_id, t.header.stamp.to_nsec()] for t in message.transforms
        ]
    if hasattr(message, "clock"):
        said["stamp"] = message.clock.to_nsec()
    return said


if __name__ == "__main__":
    print(json.dumps(main(float(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "")), flush=True)
