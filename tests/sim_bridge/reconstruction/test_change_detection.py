"""Changes since a scene was made: named and measured, and none where nothing has changed."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from changed_room import PLACES, L, rearranged, survey
from raising import raises_naming

from robot_runtime.cli.main import run_command
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import SceneError
from robot_runtime.scenes.scene import Scene, find_scene, load_scene
from sim_bridge.reconstruction.change_detection import ChangeReport, find_changes
from sim_bridge.reconstruction.figures import change_rows, write_changes_page
from sim_bridge.reconstruction.logged_frames import FrameSequence

pytestmark = pytest.mark.slow  # what they share takes far longer than each test

MOVE = SE2(-1.1, -0.9, math.radians(25))


@pytest.fixture(scope="module")
def changed_logs(room: Scene, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Logs of the room with the crate moved and the vase removed."""
    folder = tmp_path_factory.mktemp("changed")
    return survey(folder / "logs", rearranged(room, folder / "room", {"crate": MOVE}, ["vase"]))


@pytest.fixture(scope="module")
def report(room: Scene, changed_logs: list[Path]) -> ChangeReport:
    return find_changes(room, FrameSequence(changed_logs))


def test_a_moved_thing_is_named_and_its_motion_measured(report: ChangeReport) -> None:
    (moved,) = [change for change in report.changes if change.kind == "moved"]
    assert moved.object == "crate"
    assert moved.to == pytest.approx((1.5 + MOVE.x_m, 1.2 + MOVE.y_m), abs=0.05)
    assert moved.moved_m == pytest.approx(math.hypot(MOVE.x_m, MOVE.y_m), abs=0.05)
    # A box of 0.5 x 0.4 m looks about the same after half a turn.
    assert moved.turned_deg is not None
    assert math.remainder(moved.turned_deg - 25, 180) == pytest.approx(0, abs=6)


def test_a_thing_that_is_gone_is_named(report: ChangeReport) -> None:
    (gone,) = [change for change in report.changes if change.kind == "gone"]
    assert (gone.object, gone.category) == ("vase", "vase")
    assert gone.share > 0.5


def test_nothing_else_has_changed(report: ChangeReport) -> None:
    assert len(report.changes) == 2
    assert report.unseen == ()
    assert report.equal_share > 0.95
    assert report.seen_share > 0.9


@pytest.mark.slow
def test_a_new_thing_is_reported_with_its_place(room: Scene, changed_logs: list[Path], tmp_path: Path) -> None:
    """A scene without a vase, and logs of a room with one."""
    scene = rearranged(room, tmp_path / "scene", {"crate": MOVE}, ["vase"])
    logs = survey(tmp_path / "logs", rearranged(room, tmp_path / "room", {"crate": MOVE}))
    (new,) = find_changes(scene, FrameSequence(logs)).changes
    assert new.kind == "appeared"
    assert new.center == pytest.approx((-1.5, -1.2, 0.35), abs=0.1)
    assert new.size == pytest.approx((0.3, 0.3, 0.7), abs=0.15)
    assert new.near.endswith("in room")


@pytest.mark.slow
def test_an_unchanged_room_has_no_changes(room: Scene, room_logs: list[Path]) -> None:
    found = find_changes(room, FrameSequence(room_logs))
    assert found.changes == ()
    assert found.notes == ()


@pytest.mark.slow
def test_a_wrong_camera_mount_is_noted(room: Scene, tmp_path: Path) -> None:
    """It causes changes where there are none."""
    logs = survey(tmp_path, room, PLACES[:1], [L] * 11, {"camera": {"mount_error": {"height_m": 0.035}}})
    found = find_changes(room, FrameSequence(logs))
    (note,) = found.notes
    assert "z = -3.5 cm" in note
    assert "calibrate extrinsics" in note
    page = tmp_path / "changes.html"
    write_changes_page(page, room, found)
    assert "z = -3.5 cm" in page.read_text(encoding="utf-8")


def test_the_page_of_an_unchanged_scene_has_a_style_and_no_empty_table(tmp_path: Path) -> None:
    apartment = load_scene(find_scene("apartment"))
    nothing = ChangeReport("apartment", apartment.digest, ("0.mcap",), 9, 1.0, 0.5, (), ("lamp_4",), ())
    write_changes_page(tmp_path / "changes.html", apartment, nothing)
    page = (tmp_path / "changes.html").read_text(encoding="utf-8")
    assert "Nothing has changed in what was seen" in page
    assert "<table" not in page
    assert "prefers-color-scheme: dark" in page
    assert '<img class="picture"' in page
    assert "lamp_4" in page


@pytest.mark.slow
def test_a_scene_of_another_place_is_refused(room_logs: list[Path]) -> None:
    apartment = load_scene(find_scene("apartment"))
    with raises_naming(SceneError, apartment.folder, room_logs[0].name, "% of the pixels", "scene align"):
        find_changes(apartment, FrameSequence(room_logs[:1]))


@pytest.mark.slow
def test_the_command_writes_table_json_and_page(
    room: Scene, report: ChangeReport, changed_logs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, page, picture = (tmp_path / name for name in ("changes.json", "changes.html", "changes.png"))
    arguments = ["scene", "diff", str(room.folder), *map(str, changed_logs[:2])]
    assert run_command([*arguments, "--json", str(out), "--html", str(page), "--picture", str(picture)]) == 0
    output = capsys.readouterr().out
    assert "crate" in output
    assert "moved?" in output
    document = json.loads(out.read_text(encoding="utf-8"))
    assert document["twin"] == room.name
    assert {change["object"] for change in document["changes"]} == {"crate", "vase"}
    text = page.read_text(encoding="utf-8")
    assert text.count("<tr>") == 1 + len(document["changes"])
    assert "http:" not in text
    assert "https:" not in text
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert [row[0] for row in change_rows(report)] == ["1", "2"]
