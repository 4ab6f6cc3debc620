"""Properties that two runs must have in common to be the same run."""

from __future__ import annotations

from pathlib import Path

from mcap.reader import make_reader


def records(folder: Path) -> list[tuple[str, bytes]]:
    """(topic, bytes) of every record of a run's logs, images included, but the host's own times."""
    found = []
    for path in sorted(folder.glob("*.mcap")):
        with path.open("rb") as file:
            for _, channel, message in make_reader(file).iter_messages(log_time_order=False):
                if channel.topic != "/step/host":
                    found.append((channel.topic, message.data))
    return found
