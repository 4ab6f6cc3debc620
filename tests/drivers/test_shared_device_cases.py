"""Bytes of devices and keys after public bug reports, through the project's parsers: none is silent."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
CASES = PROJECT.parent / "shared" / "cases"

BAGS = {"b05_head_nan", "b08_tf_two_parents", "b11_kinect_stamp_skew", "b13_cd32", "b15_png16"} | {
    *("b16_depth_unit_100um", "b17_fisheye", "m02_mocap_frozen", "m04_mocap_zeroquat", "m05_mocap_mm")
}
"""Tested in ros/bag/test_rosbag_faults.py."""

MOVED = (
    ("robot_runtime.teleop.gamepad", "robot_runtime.policies.human.gamepad"),
    ("robot_runtime.teleop.inbox", "robot_runtime.policies.human.inbox"),
    (
        "from robot_runtime.teleop.keys import terminal_keys, KEYS",
        "from robot_runtime.common.terminal_keys import KeyStream\nfrom robot_runtime.policies.human.keys import KEYS",
    ),
    (
        "for c in chunks for n in terminal_keys(c) if",
        "for s in [KeyStream()] for c in chunks for n in s.feed(c, 0.0) if",
    ),
    ("f.verdict.name", "f.status.name"),
    ("PROJECT", str(PROJECT)),
)
"""The scripts name modules where they were when they were written."""

SAID = {
    "s_kobuki/k.py": {
        "firmware 1.3.0": r"readings 29 .*firmware 1\.3\.0",
        "firmware 2.0.0": r"fault: .*firmware is 2\.0\.0",
        "firmware u16 = 112": r"fault: .*firmware is 1\.1\.2",
        "firmware u16 = 10200": r"firmware 1\.2\.0",
        "basic of 16 bytes": r"readings 0 skipped [1-9]",
        "basic of 14 bytes": r"readings 0 skipped [1-9]",
        "inertia of 6 bytes": r"readings 0 skipped [1-9]",
        "battery 0 dV": r"frac 0\.0",
        "two basics in one frame": "readings 29",
    },
    "s_marvelmind/mm.py": {
        "ok ": r"pose 1\.00,2\.00",
        "quality 0 %": "StaleData.*0 %",
        "all zero, times run": r"StaleData.*\(0, 0, 0\)",
        "all zero, time 0": "StaleData.*again and again",
        "outside geofence": "StaleData.*geofence",
        "imu fusion only": "StaleData.*0x0005.*none with a position",
        "raw imu only": "StaleData.*0x0003.*none with a position",
        "address changes to 12": "DeviceFault.*11 and 12",
        "address 11 set, 12 sends": "StaleData.*hedgehog 12, not from 11",
        "clock back 10 min": "clock_went_back",
        "bad crc": "StaleData.*without a packet",
        "beacon positions only": "StaleData.*0x0012",
        "age 30 s": "StaleData.*s old",
        "NMEA mode": "StaleData.*NMEA",
    },
    "s_dynamixel/d.py": {
        "ok ": r"pan 0\.500 tilt (0\.199|0\.200|0\.201) moving False",
        "overload latched": "DeviceFault: servo 10.*overload",
        "voltage alert 9.5 V": r"FAIL.*9\.5 V",
        "voltage 5.0 V": r"FAIL.*5\.0 V",
        "supply sags": "DeviceFault: servo 10.*no torque",
        "silent 1 s": "StaleData.*does not answer",
        "ids swapped": "DeviceFault.*none of them was a servo's reply",
        "both have id 10": "DeviceFault: .*servo 11 does not answer",
        "homing offset 1024": "DeviceFault: servo 10: register 20",
        "extended position mode": "DeviceFault: servo 10: register 11",
        "model 1020": "DeviceFault: servo 10 is a model 1020",
        "model 29": "DeviceFault: servo 10 is a model 29",
        "stuck tilt": "moving True",
    },
    "k_keys/k.py": {
        "left arrow whole": r"\[\('left', '.*turn_left'\)\]",
        "left arrow split by ssh": r"\[\('left', '.*turn_left'\)\]",
        "left arrow split 2": r"\[\('left', '.*turn_left'\)\]",
        "up arrow split": r"\[\('up', '.*move_forward'\)\]",
        "right arrow split": r"\[\('right', '.*turn_right'\)\]",
        "F1 on linux console": r"\[\]",
        "bracketed paste": r"\[\]",
        'paste "find door"': r"\[\]",
        "focus in": r"\[\]",
        "utf-8": r"\[\]",
        "mouse click X10": r"\[\]",
        "wheel sgr": r"\[\]",
    },
    "k_gamepad/g.py": {
        "press hat forward, receiver stays": "held None",
        "device gone in mid-press": "held None stops .*gone",
        "drift 10 %": "held None",
        "stop button while hat held": "stops .*stop button",
        "range 0..1023 unknown": "held None",
    },
}


@pytest.fixture(scope="module")
def cases() -> Path:
    if not CASES.is_dir():
        pytest.skip(f"the cases are not at {CASES}")
    return CASES


def test_every_case_of_bags_motion_capture_keys_and_devices_is_tested(cases: Path) -> None:
    tested = BAGS | {script.partition("/")[0] for script in SAID}
    assert {path.name for path in cases.iterdir() if path.is_dir() and path.name[0] in "bmks"} <= tested


@pytest.mark.slow
@pytest.mark.parametrize("script", SAID)
def test_what_devices_send_after_public_reports_is_never_silent(script: str, cases: Path, tmp_path: Path) -> None:
    text = (cases / script).read_text(encoding="utf-8")
    for before, after in MOVED:
        text = text.replace(before, after)
    program = tmp_path / "case.py"
    program.write_text(text, encoding="utf-8")
    paths = {"PYTHONPATH": f"{PROJECT}:{PROJECT / 'tests/support'}", "PATH": "/usr/bin:/bin"}
    ran = subprocess.run([sys.executable, program], env=paths, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    for case, said in SAID[script].items():
        lines = [line for line in ran.stdout.splitlines() if line.startswith(case)]
        assert len(lines) == 1, (case, ran.stdout)
        assert re.search(said, lines[0]), lines[0]
