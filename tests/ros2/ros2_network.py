"""A ROS 2 network of a test's own: on this computer only, between two DDS vendors."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FAST_DDS = """<?xml version="1.0" encoding="UTF-8" ?>
<profiles xmlns="http://www.eprosima.com">
  <participant profile_name="tests" is_default_profile="true"><rtps>
    <propertiesPolicy><properties><property>
      <name>fastdds.type_propagation</name><value>disabled</value>
    </property></properties></propertiesPolicy>
  </rtps></participant>
</profiles>
"""
CYCLONE = (
    "<CycloneDDS><Domain><General><Interfaces><NetworkInterface name='lo'/></Interfaces>"
    "<AllowMulticast>false</AllowMulticast></General><Discovery><ParticipantIndex>auto</ParticipantIndex>"
    "<MaxAutoParticipantIndex>40</MaxAutoParticipantIndex><Peers><Peer address='localhost'/></Peers>"
    "<LeaseDuration>3 s</LeaseDuration></Discovery>"
    "</Domain></CycloneDDS>"
)
"""Fast DDS 3.2 does not notice that a writer or participant of Cyclone DDS 11 has left, only that its lease is over."""
DOMAINS = range(1, 102)
"""Above, the ports of DDS meet those that the system gives away."""


def environment(folder: Path) -> dict[str, str]:
    """Variables for the programs of a test, and for this process.

    Args:
        folder: for Fast DDS' profile and logs.
    """
    profile = folder / "fastdds.xml"
    profile.write_text(FAST_DDS, encoding="utf-8")
    return {
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
        "ROS_LOG_DIR": str(folder / "log"),
        "FASTDDS_DEFAULT_PROFILES_FILE": str(profile),
        "CYCLONEDDS_URI": CYCLONE,
    }


@contextmanager
def domain(first: int) -> Iterator[int]:
    """A domain that no other test of this computer uses meanwhile.

    Args:
        first: where the search begins; domains of tests that have just ended may still have their ghosts.
    """
    for number in range(len(DOMAINS)):
        found = DOMAINS[(first + number) % len(DOMAINS)]
        path = Path(tempfile.gettempdir()) / f"ros2_test_domain_{os.getuid()}_{found}.lock"
        with path.open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield found
            return
    raise RuntimeError("all domains are in use")
