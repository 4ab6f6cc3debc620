"""The launch files: one command brings up the whole stack and takes it away; the camera is where its mount says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
import yaml
from raising import raises_naming
from ros_processes import LIMIT_S, Program, eventually
from ros_stack import LAUNCH, Stack, workspace_environ

from drivers.ros_locobot.static_transforms import TransformsFile, camera_transform
from drivers.ros_locobot.urdf import describe
from robot_runtime.common import config
from robot_runtime.common.geometry import SE2
from robot_runtime.common.transforms import OPTICAL_RPY_RAD, quaternion_rpy, rotation_rpy
from robot_runtime.errors import ConfigError
from robot_runtime.robots.camera_mount import load_mount

pytestmark = pytest.mark.slow

PROBE = Path(__file__).with_name("sim_probe.py")
VARIANTS = ("pyrobot-kobuki", "pyrobot-create", "interbotix")

REALSENSE_ARGUMENTS = (
    *("camera", "tf_prefix", "align_depth", "enable_sync"),
    *(f"{stream}_{what}" for stream in ("color", "depth") for what in ("width", "height", "fps")),
)

OPTIONS = "options:=--die-with-stdin --start 1.2,1.36,28.64788975654116"

STUBS = {
    "kobuki_node": {"param/base.yaml": "cmd_vel_timeout: 0.6\n"},
    "ca_driver": {"config/default.yaml": "loop_hz: 10.0\n"},
    "locobot_control": {"launch/dynamixel_controllers.launch": "<launch/>"},
    "interbotix_xslocobot_control": {"config/locobot_base.yaml": "", "config/modes_base.yaml": ""},
    "realsense2_camera": {
        "launch/rs_camera.launch": "<launch>"
        + "".join(f'<arg name="{a}"/><param name="camera/{a}" value="$(arg {a})"/>' for a in REALSENSE_ARGUMENTS)
        + "</launch>"
    },
}
"""Files of the drivers' own packages that our launch files name."""


@pytest.fixture
def environ(ros_environ: dict[str, str]) -> dict[str, str]:
    return workspace_environ(ros_environ)


def roslaunch(environ: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(["roslaunch", *arguments], env=environ, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def stack(environ: dict[str, str], free_port: int) -> Iterator[Any]:
    started: list[Stack] = []

    def start(*arguments: str) -> Stack:
        started.append(Stack(environ, free_port, *arguments))
        return started[-1]

    yield start
    for one in started:
        one.close()


def test_one_command_brings_up_the_stack_and_takes_it_away(stack: Any, spawn: Any, tmp_path: Path) -> None:
    mount_file = tmp_path / "measured.yaml"
    measured = {
        "pan_joint_m": [-0.02, 0.001, 0.545],
        "tilt_joint_m": [0.0, 0.0, 0.05],
        "camera": {"xyz_m": [0.064, 0.0146, -0.0078], "rpy_deg": [-0.6, 2.04, -1.13]},
        "color": {"xyz_m": [0.0, 0.015, 0.0]},
    }
    mount_file.write_text(yaml.safe_dump(measured), encoding="utf-8")
    running = stack("sim:=true", "family:=pyrobot-kobuki", f"mount:={mount_file}", "camera:=64x48@79", OPTIONS)
    running.wait_for_line("ready: pyrobot-kobuki LoCoBot")
    running.wait_for_line("commands pass")
    probe: Program = spawn(str(PROBE), "1.0", "camera_color_optical_frame", master=running.uri)
    assert probe.process.wait(60) == 0, probe.output
    found = json.loads(next(line for line in probe.lines if line.startswith("{")))

    # tf's chain from the map to the lens is the mount's, joints and all.
    camera = found["camera"]
    expected = load_mount(mount_file).sensor(SE2(1.2, 1.36, 0.5), 0.0, 0.0)
    np.testing.assert_allclose(camera["xyz"], expected[:3, 3], atol=1e-4)
    x, y, z, w = camera["quaternion"]
    forward = [2 * (x * z + y * w), 2 * (y * z - x * w), 1 - 2 * (x * x + y * y)]
    np.testing.assert_allclose(forward, (expected[:3, :3] @ rotation_rpy(*OPTICAL_RPY_RAD))[:, 2], atol=1e-6)

    # The guard stands between commands and the base, and has let go of it.
    assert "/robot_runtime_guard/status" in found["types"]
    assert "/mobile_base/commands/velocity" in found["subscribed"]
    members = running.members()
    assert len(members) >= 5, "roslaunch, master, rosout, robot, guard, robot_state_publisher"

    running.process.send_signal(signal.SIGINT)
    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(LIMIT_S) is not None
    assert eventually(lambda: not running.members()), f"left behind: {running.members()}"


@pytest.mark.parametrize("family", VARIANTS)
def test_hardware_is_brought_up_without_ramps_before_the_wheels(
    family: str, environ: dict[str, str], tmp_path: Path
) -> None:
    for package, files in STUBS.items():
        for name, content in files.items():
            path = tmp_path / package / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        (tmp_path / package / "package.xml").write_text(
            f"<package><name>{package}</name><version>1.0.0</version><description>stub</description>"
            "<maintainer email='a@b.de'>a</maintainer><license>x</license></package>",
            encoding="utf-8",
        )
    environ["ROS_PACKAGE_PATH"] += f"{os.pathsep}{tmp_path}"
    file = str(LAUNCH / "locobot.launch")
    nodes = set(roslaunch(environ, "--nodes", file, f"family:={family}").split())
    assert "/robot_runtime_guard" in nodes
    assert not {node for node in nodes if "simulated" in node or "smoother" in node or "mux" in node}
    parameters = yaml.safe_load(roslaunch(environ, "--dump-params", file, f"family:={family}"))
    assert "/use_sim_time" not in parameters
    root = "/locobot" if family == "interbotix" else ""
    assert parameters[f"{root}/camera/align_depth"] is True
    assert parameters[f"{root}/camera/tf_prefix"] == ("locobot/camera" if root else "camera")
    if family == "pyrobot-create":
        assert parameters["/ca_driver/loop_hz"] == 50.0
    else:
        assert parameters[f"{root}/mobile_base/acceleration_limiter"] is False
        assert parameters[f"{root}/mobile_base/cmd_vel_timeout"] == 0.6
    assert parameters["/robot_runtime_guard/family"] == family


def test_beside_the_robots_own_software_come_the_guard_and_the_cameras_place(environ: dict[str, str]) -> None:
    file = str(LAUNCH / "locobot.launch")
    nodes = roslaunch(environ, "--nodes", file, "family:=interbotix", "hardware:=false", "description:=false")
    assert set(nodes.split()) == {"/robot_runtime_guard", "/static_transforms"}


class TestDescription:
    @pytest.mark.parametrize("family", VARIANTS)
    @pytest.mark.parametrize("mount", ["habitat", ""])
    def test_is_a_tree_whose_camera_is_where_the_mount_says(self, family: str, mount: str) -> None:
        document = describe(family, "rob", mount)
        prefix = "rob/" if family == "interbotix" else ""
        robot = ET.fromstring(document)
        links = {link.get("name") for link in robot.iter("link")}
        parents = {child(joint, "child"): child(joint, "parent") for joint in robot.iter("joint")}
        assert set(parents) == links - {f"{prefix}base_footprint"}
        moving = {joint.get("name") for joint in robot.iter("joint") if joint.get("type") != "fixed"}
        assert (
            moving
            == {
                "pyrobot-kobuki": {"wheel_left_joint", "wheel_right_joint", "head_pan_joint", "head_tilt_joint"},
                "pyrobot-create": {"left_wheel_joint", "right_wheel_joint", "head_pan_joint", "head_tilt_joint"},
                "interbotix": {"wheel_left_joint", "wheel_right_joint", "pan", "tilt"},
            }[family]
        )
        # MuJoCo reads URDF too, and works out the kinematics by itself.
        place, wheel_m = camera_in_mujoco(document, f"{prefix}camera_link", pan_rad=0.3, tilt_rad=-0.2)
        chosen = load_mount(config.find_preset("mounts", mount or family))
        expected = chosen.sensor(SE2(), 0.3, -0.2) @ np.linalg.inv(chosen.color.matrix)
        np.testing.assert_allclose(place, expected, atol=1e-6)
        assert wheel_m == pytest.approx(0.0, abs=1e-6), "the wheels stand on the floor"

    @pytest.mark.parametrize(
        ("arguments", "named"),
        [({"family": "turtlebot"}, "turtlebot"), ({"mount": "nowhere"}, "nowhere"), ({"mount": "x.yaml"}, "x.yaml")],
    )
    def test_says_what_is_wrong(self, arguments: dict[str, str], named: str) -> None:
        with raises_naming(ConfigError, named):
            describe(**arguments)


def child(joint: ET.Element, tag: str) -> str:
    element = joint.find(tag)
    assert element is not None
    name = element.get("link")
    assert name is not None
    return name


def camera_in_mujoco(document: str, link: str, pan_rad: float, tilt_rad: float) -> tuple[np.ndarray, float]:
    """Pose of a link, float64 (4, 4), and the height of the wheels' lowest points."""
    keep = '<mujoco><compiler discardvisual="false" fusestatic="false"/></mujoco></robot>'
    model = mujoco.MjModel.from_xml_string(document.replace("</robot>", keep))
    data = mujoco.MjData(model)
    for joint in range(model.njnt):
        name = model.joint(joint).name
        # About +y: positive looks down.
        angle_rad = pan_rad if "pan" in name else -tilt_rad if "tilt" in name else 0.0
        data.qpos[model.jnt_qposadr[joint]] = angle_rad
    mujoco.mj_kinematics(model, data)
    place = np.eye(4)
    body = data.body(link)
    place[:3, :3], place[:3, 3] = body.xmat.reshape(3, 3), body.xpos
    wheels = [i for i in range(model.nbody) if "wheel" in model.body(i).name]
    lowest_m = min(data.xpos[i][2] - model.geom_size[model.body_geomadr[i]][0] for i in wheels)
    return place, float(lowest_m)


class TestStaticTransforms:
    def test_the_camera_on_each_family(self) -> None:
        assert camera_transform("interbotix", "rob", "interbotix").parent == "rob/tilt_link"
        transform = camera_transform("pyrobot-kobuki", "locobot", "pyrobot-kobuki")
        assert (transform.parent, transform.child) == ("head_tilt_link", "camera_link")
        assert transform.xyz_m == (0.06705, 0.0, -0.00425)

    def test_a_list_is_published(self, environ: dict[str, str], spawn: Any, make_master: Any, tmp_path: Path) -> None:
        file = tmp_path / "frames.yaml"
        file.write_text("transforms: [{parent: map, child: world, xyz_m: [1, 2, 0], rpy_deg: [0, 0, 90]}]")
        master = make_master()
        node: Program = spawn(
            "-c", "from drivers.ros_locobot.static_transforms import main; main()", f"_file:={file}", master=master.uri
        )
        seen: Program = spawn("-c", ECHO, master=master.uri)
        line = seen.wait_for_line("map world")
        assert [float(number) for number in line.split()[2:]] == pytest.approx(
            [1, 2, 0, *quaternion_rpy(0, 0, np.pi / 2)]
        )
        assert node.stop() == 0

    @pytest.mark.parametrize(
        ("text", "named"),
        [
            ("transforms: [{parent: map, child: map}]", "'map'"),
            ("transforms: [{parent: a, child: c}, {parent: b, child: c}]", "'c'"),
            ("transforms: [{parent: /map, child: world}]", "parent"),
            ("transforms: [{parent: map, child: world, xyz: [1, 2, 3]}]", "xyz"),
        ],
    )
    def test_a_malformed_list_says_what_is_wrong(self, tmp_path: Path, text: str, named: str) -> None:
        file = tmp_path / "frames.yaml"
        file.write_text(text)
        with raises_naming(ConfigError, named):
            config.load(file, TransformsFile)

    def test_nothing_to_publish_is_an_error(self, spawn: Any, make_master: Any) -> None:
        node: Program = spawn(
            "-c",
            "import sys; from drivers.ros_locobot.static_transforms import main; sys.exit(main())",
            master=make_master().uri,
        )
        assert node.process.wait(LIMIT_S) == 2
        assert "set the parameter ~mount or ~file" in node.output


ECHO = """
import rospy
from tf2_msgs.msg import TFMessage
rospy.init_node("echo")
found = rospy.wait_for_message("/tf_static", TFMessage, 20).transforms[0]
t, r = found.transform.translation, found.transform.rotation
print(found.header.frame_id, found.child_frame_id, t.x, t.y, t.z, r.x, r.y, r.z, r.w)
"""
