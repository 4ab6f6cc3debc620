"""Listens to a simulated robot from a process of its own, with a master and a ``/clock`` of its own.

``python sim_probe.py SECONDS [CAMERA_FRAME]`` prints one JSON document: what was published for so many simulated
seconds after everything had been heard from, and where tf has the camera.
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

LIMIT_S = 60.0
EVENTS = ("events", "cliff", "wheeldrop", "rosout", "tf_static")


def main(seconds: float, camera_frame: str) -> dict[str, Any]:
    rospy.init_node("probe", disable_signals=True)
    buffer = tf2_ros.Buffer()
    tf2_ros.TransformListener(buffer)
    lock = threading.Lock()
    heard: dict[str, list[dict[str, Any]]] = collections.defaultdict(list)
    window: list[float] = []

    def listen(message: Any, topic: str) -> None:
        now_s = rospy.get_time()
        with lock:
            if window and now_s > window[0] + seconds:
                return
            heard[topic].append(describe(message) | {"at": now_s})

    topics = {name: kind for name, kind in rospy.get_published_topics() if name not in ("/rosout", "/rosout_agg")}
    for topic in topics:
        options = {"queue_size": 1, "buff_size": 2**24} if "image" in topic else {}
        rospy.Subscriber(topic, rostopic.get_topic_class(topic)[0], listen, topic, tcp_nodelay=True, **options)
    steady = [topic for topic in topics if not any(word in topic for word in EVENTS)]
    deadline_s = time.monotonic() + LIMIT_S
    while not all(heard[topic] for topic in steady) and time.monotonic() < deadline_s:
        time.sleep(0.01)
    with lock:
        window.append(rospy.get_time())
        for topic in steady:
            heard[topic].clear()
    while rospy.get_time() < window[0] + seconds + 0.2 and time.monotonic() < deadline_s:
        time.sleep(0.01)
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
        "heard": heard,
        "camera": place,
    }


def describe(message: Any) -> dict[str, Any]:
    """What can be seen of a message without knowing its kind."""
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
