"""A recording of Rerun has a log's images, poses, numbers and sentences, and grows with the log."""

from __future__ import annotations

from pathlib import Path

import pytest
import synthetic
from recorded_drive import recorded_drive
from synthetic import FORWARD, LEFT, STOP

from robot_runtime.cli.main import run_command
from robot_runtime.export.rerun_stream import RerunEpisode, open_stream
from robot_runtime.recording.log_writer import LogWriter
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EndReason, EpisodeEnd

pytest.importorskip("rerun", reason="there is no Rerun with grid maps for this Python")


def rows(path: Path) -> dict[str, int]:
    """Rows of each entity in a recording."""
    from rerun.chunk import RrdReader

    counts: dict[str, int] = {}
    for chunk in RrdReader(path).stream():
        counts[chunk.entity_path] = counts.get(chunk.entity_path, 0) + chunk.num_rows
    return counts


def test_a_log_becomes_a_recording(tmp_path: Path) -> None:
    log = recorded_drive(tmp_path / "logs")
    out = tmp_path / "drive.rrd"
    assert run_command(["view", str(log), "--out", str(out)]) == 0
    found = rows(out)
    assert found["/map/robot/camera/depth"] == 5
    assert found["/map/robot/camera/color"] == 5
    assert found["/plots/policy/confidence"] == 5
    assert found["/events"] == 6, "five steps and the end"
    assert {"/map/floor", "/map/objects", "/map/goals", "/map/track"} <= found.keys()


def test_a_log_that_is_being_written_adds_each_step_once(tmp_path: Path) -> None:
    header = synthetic.header()
    path, out = tmp_path / "live.mcap", tmp_path / "live.rrd"
    records = synthetic.drive(header, [FORWARD, LEFT, STOP])
    writer = LogWriter(path, header)
    writer.write_header()
    episode: RerunEpisode | None = None
    with open_stream("live", out) as stream:
        for record in records:
            writer.write_step(record)
            with LogReader(path) as log:
                episode = episode or RerunEpisode(stream, log.header)
                assert not episode.add_new(log), "it has no end"
        writer.write_end(EpisodeEnd(EndReason.STOP, 3, records[-1].times.observed_ns))
        writer.close()
        assert episode is not None
        with LogReader(path) as log:
            assert episode.add_new(log)
    assert rows(out)["/map/robot/camera/depth"] == 4
