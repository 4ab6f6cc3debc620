"""TurtleBot 4's republisher (Jazzy): it copies a list of topics between the Create 3's namespace and the robot's.

``robot.launch.py`` renames ``cmd_vel`` to ``cmd_vel_unstamped`` and ``cmd_vel_stamped`` to ``cmd_vel``. It ends with
its standard input, like the bases.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import threading
from pathlib import Path
from typing import Any

import yaml

from tests.ros2.emulators import dds

STOCK = Path(__file__).with_name("republisher.yaml")
RENAMED = {"cmd_vel": "cmd_vel_unstamped", "cmd_vel_stamped": "cmd_vel"}


def entities(text: str, direction: str) -> dict[str, str]:
    """The types of a list's topics by name, of those that the emulators have."""
    listed = yaml.safe_load(text)["/**"]["create3_repub"]["ros__parameters"][direction]
    pairs = dict(zip(listed[::2], listed[1::2], strict=True))
    return {name: kind for name, kind in pairs.items() if kind in dds.TYPES}


def edited(text: str, *names: str) -> str:
    """The list with topics that were commented out."""
    for name in names:
        text, count = re.subn(rf"^(\s*)# (\"{name}\",)", r"\1  \2", text, flags=re.MULTILINE)
        assert count == 1, name
    return text


def main() -> None:
    """Copy topics."""
    parser = argparse.ArgumentParser(description="TurtleBot 4's republisher")
    parser.add_argument("--domain", type=int, default=0)
    parser.add_argument("--robot-namespace", default="/_do_not_use", help="of the Create 3")
    parser.add_argument("--namespace", default="", help="of the robot")
    parser.add_argument("--add", nargs="*", default=[], help="topics of the stock list that are no longer comments")
    args = parser.parse_args()
    text = edited(STOCK.read_text(encoding="utf-8"), *args.add)
    network = dds.Network(args.domain)
    routes: list[tuple[Any, Any]] = []
    for name, kind in entities(text, "robot_publishers").items():
        latched = {"is_latched": name == "tf_static"}
        reader = network.reader(f"{args.robot_namespace}/{name}", kind, **latched)
        routes.append((reader, network.writer(f"{args.namespace}/{name}", kind, **latched)))
    for name, kind in entities(text, "robot_subscriptions").items():
        reader = network.reader(f"{args.namespace}/{RENAMED.get(name, name)}", kind)
        routes.append((reader, network.writer(f"{args.robot_namespace}/{name}", kind)))
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    print(json.dumps({"ready": True}), flush=True)
    while not ended.is_set():
        network.wait(0.1)
        for reader, writer in routes:
            for message in dds.taken(reader):
                writer.write(message)
    network.close()


if __name__ == "__main__":
    main()
