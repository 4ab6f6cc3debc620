"""Loaders that are called with mutated files of their kind, in a process of bounded memory.

``python -m hostile_files GROUP COUNT SEED FOLDER``, with ``tests/support`` on the path, ends with 1 and writes
``complaints.txt`` if a file ended in anything but a result or one of the project's errors; the file stays in FOLDER. A
file that takes longer than ``LIMIT_S`` ends the process with the loader's stack on standard error.
"""

from __future__ import annotations

import base64
import faulthandler
import gzip
import io
import json
import pickle
import random
import resource
import shutil
import struct
import sys
import traceback
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from mutations import json_bytes, mutated, mutated_document, yaml_bytes

from robot_runtime.common import config
from robot_runtime.errors import RuntimeFault

LIMIT_S = 20.0
MEMORY_BYTES = 2 << 30
"""Memory that all files of a group may take together, beyond the libraries themselves."""

LAUNCH = Path(__file__).parents[2] / "launch"


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes:
        name: of the file, with the suffix that its loader knows it by.
        content: of a valid file.
        load: reads it.
        document: of a text format, how a mutated document is written; None for a binary format.
    """

    name: str
    content: bytes
    load: Callable[[Path], object]
    document: Callable[[Any], bytes] | None = None

    def mutation(self, random_: random.Random) -> bytes:
        """The content of a mutated file."""
        if self.document is None or random_.random() < 0.5:
            return mutated(self.content, random_)
        changed = mutated_document(yaml.safe_load(self.content), random_)
        return self.document(changed)


def settings_kinds(folder: Path) -> list[Kind]:
    """YAML and JSON that people write, or programs for people."""
    from robot_runtime.localization.alignment import load_alignment
    from robot_runtime.recording.verdict_files import read_objects
    from robot_runtime.robots.action_errors import load_actuation
    from robot_runtime.robots.calibration_file import Stamp, open_calibration, write_calibration
    from robot_runtime.robots.camera_mount import load_mount
    from robot_runtime.robots.loader import DeviceConfig, read_robot_file
    from robot_runtime.robots.published_action_errors import published_models
    from robot_runtime.scenes.tag_map import load_tag_map
    from robot_runtime.scoring.cases import run_cases
    from robot_runtime.tasks.task import load_task
    from robot_runtime.verdicts import Verdicts

    stamp = Stamp.now("extrinsics", "lab-1", "", 180.0, "by hand", {"px": 0.2}, {})
    calibration = write_calibration(folder / "stamp.yaml", stamp, {"pan_joint_m": [0.0, 0.0, 0.88]}).path.read_bytes()
    actuation = yaml_bytes(config.unparse(next(iter(published_models(0.25, 10.0).values()))))
    tags = (
        b"schema: 1\nfamily: tag36h11\ntags:\n- {id: 0, size_m: 0.2, xyz_m: [2.96, 1.5, 1.0], rpy_deg: [0, 0, 180]}\n"
    )
    objects = b"mug_1: {position: [1.0, 2.0, 0.8], quaternion: [1.0, 0.0, 0.0, 0.0]}\n"
    alignment = b"map_from_source: {x_m: 1.0, y_m: 2.0, yaw_rad: 0.5}\nlever_m: [0.1, 0.0]\n"
    verdicts = (
        b"schema: 1\nrun: {episode: e, seed: 1, start_ns: 5, created: '2026-11-22T05:40:00+00:00'}\nstatements:\n"
        b"- {who: a, when: '2026-11-22T05:40:00+00:00', visible: true}\n"
    )
    cases = (Path(__file__).parents[1] / "robot_runtime/scoring/worked_cases.json").read_bytes()
    few = json_bytes({**json.loads(cases), "cases": json.loads(cases)["cases"][::7]})
    return [
        Kind("task.yaml", (LAUNCH / "tasks/objectnav_hm3d2022.yaml").read_bytes(), _by_name(load_task), yaml_bytes),
        Kind("robot.yaml", (LAUNCH / "robots/sim-noisy.yaml").read_bytes(), _by_name(read_robot_file), yaml_bytes),
        Kind("camera.yaml", (LAUNCH / "cameras/realsense.yaml").read_bytes(), _as(DeviceConfig), yaml_bytes),
        Kind("mount.yaml", (LAUNCH / "mounts/habitat.yaml").read_bytes(), load_mount, yaml_bytes),
        Kind("calibration.yaml", calibration, open_calibration, yaml_bytes),
        Kind("actuation.yaml", actuation, load_actuation, yaml_bytes),
        Kind("tags.yaml", tags, load_tag_map, yaml_bytes),
        Kind("objects.yaml", objects, read_objects, yaml_bytes),
        Kind("alignment.yaml", alignment, load_alignment, yaml_bytes),
        Kind("log.evidence.yaml", verdicts, _as(Verdicts), yaml_bytes),
        Kind("cases.json", few, run_cases, json_bytes),
    ]


def episode_kinds(folder: Path) -> list[Kind]:
    """Episodes of every format, and scene folders."""
    from episode_documents import SITE_YAML, eqa_document, ithor_scenes, r2r_document, rearrange_document

    from robot_runtime.datasets.files import iter_episodes, load_episodes
    from robot_runtime.datasets.pickle_sandbox import PlainDataCheck, Refused, unpickle
    from robot_runtime.scenes.occupancy_map import OccupancyMap
    from robot_runtime.scenes.scene import load_scene
    from robot_runtime.task_kinds.rearrangement import format_ithor as ithor_rearrangement
    from sim_bridge.scenes import arena

    scene = Path(arena())

    def stream(path: Path) -> object:
        return list(iter_episodes(path))

    def sandboxed(path: Path) -> None:
        try:
            PlainDataCheck().check(unpickle(path.read_bytes()), 0)
        except Refused:
            return

    def beside_scene(path: Path) -> object:
        shutil.copytree(scene, path.parent / "scene", dirs_exist_ok=True)
        shutil.copy(path, path.parent / "scene" / path.name)
        return load_scene(path.parent / "scene")

    def map_image(path: Path) -> object:
        (path.parent / "m.yaml").write_text(f"image: {path.name}\nresolution: 0.05\norigin: [0, 0, 0]\n")
        return OccupancyMap.load(path.parent / "m.yaml").clearance_m()

    documents = [r2r_document(), eqa_document(), rearrange_document()]
    documents += [ithor_rearrangement.from_pickled(ithor_scenes(), "val")]
    map_bytes = (scene / "map.pgm").read_bytes()
    return [
        Kind("site.yaml", SITE_YAML.encode(), load_episodes, yaml_bytes),
        *(Kind(f"{i}.json", json_bytes(document), stream, json_bytes) for i, document in enumerate(documents)),
        *(
            Kind(f"whole{i}.json", json_bytes(document), load_episodes, json_bytes)
            for i, document in enumerate(documents)
        ),
        Kind("r2r.json.gz", gzip.compress(json_bytes(documents[0])), load_episodes),
        Kind("val.pkl", pickle.dumps(ithor_scenes()), sandboxed),
        Kind("scene.yaml", (scene / "scene.yaml").read_bytes(), beside_scene, yaml_bytes),
        Kind("map.yaml", (scene / "map.yaml").read_bytes(), beside_scene, yaml_bytes),
        Kind("map.pgm", map_bytes, map_image),
        Kind("map.png", _png(map_bytes), map_image),
    ]


def policy_kinds(folder: Path) -> list[Kind]:
    """Policy packages, golden rollouts, networks, and training frameworks' checkpoints."""
    import tiny_package as tiny

    from robot_runtime.policies.convert.checkpoint import read_checkpoint, state_of
    from robot_runtime.policies.package import golden
    from robot_runtime.policies.package.files import read_package
    from robot_runtime.policies.package.formats.network import open_network
    from robot_runtime.policies.package.manifest import Manifest

    package = tiny.write_tiny(folder / "tiny.zip")
    with zipfile.ZipFile(package) as archive:
        manifest = archive.read("policy.yaml")
    whole: Manifest = read_package(package).manifest
    checkpoint = io.BytesIO()
    with zipfile.ZipFile(checkpoint, "w") as archive:
        archive.writestr("archive/data.pkl", _STATE)
        archive.writestr("archive/data/0", bytes(24))

    begin = (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True})
    old = b"".join(map(pickle.dumps, begin)) + _STATE + pickle.dumps(["0"]) + struct.pack("<q", 6) + bytes(24)

    def rollout(path: Path) -> None:
        recorded = golden.read(whole, path.read_bytes())
        golden.replay(whole, recorded, tiny.NumpyNetwork())

    return [
        Kind("tiny.zip", package.read_bytes(), read_package),
        Kind("policy.yaml", manifest, _as(Manifest), yaml_bytes),
        Kind("golden.npz", _stored(tiny.golden().to_bytes()), rollout),
        Kind("model.onnx", tiny.onnx_bytes(), lambda path: open_network(whole, path.read_bytes()).close()),
        Kind("new.pth", checkpoint.getvalue(), lambda path: state_of(path, read_checkpoint(path).data)),
        Kind("old.pth", old, lambda path: state_of(path, read_checkpoint(path).data)),
    ]


def recording_kinds(folder: Path) -> list[Kind]:
    """Recordings of other programs: bags, the Kinect's videos, pictures of tags."""
    import bag_drive

    from drivers.apriltag.survey_images import views_from_folder
    from drivers.azure_kinect.mkv import check_complete
    from drivers.ros.bag.images import BagImages
    from drivers.ros.bag.reader import BagReader
    from drivers.ros.bag.topic_layout import layout
    from drivers.ros.options import CameraOptions
    from drivers.ros_locobot.options import RosOptions
    from robot_runtime.imaging.tag_detector import TagDetector
    from sim_bridge.noise.redwood import read_table

    bag = bag_drive.record(folder / "seed.bag", [bag_drive.REST]).read_bytes()
    options = RosOptions("pyrobot-kobuki", CameraOptions("habitat"))
    rest = [bag_drive.Move(seconds=0.1)]
    mcap = bag_drive.record(folder / "mcap", rest, layout("create3")) / "mcap.mcap"
    sqlite = bag_drive.record(folder / "sqlite", rest, layout("create3"), storage="sqlite3") / "sqlite.db3"

    def read_bag(path: Path) -> None:
        with BagReader(path) as reader:
            BagImages(reader, options, ())
            for message in reader.messages(tuple(reader.kinds)):
                message.decoded()

    def survey(path: Path) -> object:
        (path.parent / "0001.png").write_bytes(_png(b"P5\n64 48\n255\n" + bytes(64 * 48)))
        return list(views_from_folder(path.parent, 0, TagDetector()))

    frames = (
        b"lens: {width: 64, height: 48, fx: 61.0, fy: 61.0, cx: 32, cy: 24}\ncamera: {xyz_m: [0.0, 0.0, 0.88]}\n"
        b"frames:\n- {image: 0001.png, x_m: 1.0, y_m: 2.0, yaw_deg: 90.0}\n"
    )
    mkv = b"\x1a\x45\xdf\xa3\x81x\x18\x53\x80\x67\x98" + b"".join(
        bytes.fromhex(kind) + b"\x81x" for kind in ("1549a966", "1654ae6b", "1f43b675", "1c53bb6b")
    )
    return [
        Kind("drive.bag", bag, read_bag),
        Kind("drive.mcap", mcap.read_bytes(), read_bag),
        Kind("drive.db3", sqlite.read_bytes(), read_bag),
        Kind("kinect.mkv", mkv, check_complete),
        Kind("frames.yaml", frames, survey, yaml_bytes),
        Kind("dist-model.txt", b"%\n" * 5 + b"1 1.01 0.99 1.02 0.98 1 1.01 0.99 1.02 1\n" * 14720, read_table),
    ]


def mesh_kinds(folder: Path) -> list[Kind]:
    """Meshes, textures and Gazebo worlds."""
    import trimesh

    from sim_bridge.scenes.mesh_files import load_mesh, read_image
    from sim_bridge.scenes.sdf import ModelPath, read_world

    box = trimesh.creation.box()
    glb, collada = bytes(box.export(file_type="glb")), bytes(box.export(file_type="dae"))
    gltf = trimesh.Scene(box).export(file_type="gltf")
    embedded = json.loads(gltf["model.gltf"])
    for buffer in embedded["buffers"]:
        content = base64.b64encode(gltf[buffer["uri"]]).decode()
        buffer["uri"] = f"data:application/octet-stream;base64,{content}"
    shape = b"<geometry><box><size>1 2 3</size></box></geometry>"
    world = (
        b"<?xml version='1.0'?><sdf version='1.6'><world name='w'><model name='m'><pose>1 2 0 0 0 1</pose>"
        b"<link name='l'>"
        b"<visual name='v'>%s</visual><collision name='c'>%s</collision></link></model><include><uri>model://m</uri>"
        b"<pose>0 0 0 0 0 0</pose></include></world></sdf>"
        % (shape, shape.replace(b"box", b"plane").replace(b"1 2 3", b"1 2"))
    )

    def mesh(path: Path) -> object:
        return load_mesh(path, [])

    def sdf(path: Path) -> object:
        return read_world(path, ModelPath.near(path, []))

    return [
        Kind("box.glb", glb, mesh),
        Kind("box.gltf", json_bytes(embedded), mesh, json_bytes),
        Kind("box.dae", collada, mesh),
        Kind("box.obj", box.export(file_type="obj").encode(), mesh),
        Kind("box.stl", bytes(box.export(file_type="stl")), mesh),
        Kind("text.stl", box.export(file_type="stl_ascii").encode(), mesh),
        Kind("box.ply", bytes(box.export(file_type="ply")), mesh),
        Kind("texture.png", _png(b"P5\n64 48\n255\n" + bytes(64 * 48)), read_image),
        Kind("site.world", world, sdf),
    ]


GROUPS: dict[str, Callable[[Path], list[Kind]]] = {
    "settings": settings_kinds,
    "episodes": episode_kinds,
    "policies": policy_kinds,
    "recordings": recording_kinds,
    "meshes": mesh_kinds,
}


def run(group: str, count: int, seed: int, folder: Path) -> list[str]:
    """The complaints about ``count`` files of a group, whose kinds take turns."""
    seeds = folder / "seeds"
    seeds.mkdir()
    kinds = GROUPS[group](seeds)
    for kind in kinds:
        path = seeds / kind.name
        path.write_bytes(kind.content)
        kind.load(path)  # the libraries are loaded before memory is limited, and the unchanged file is accepted
    limit = _virtual_bytes() + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    complaints = []
    for number in range(count):
        kind = kinds[number % len(kinds)]
        random_ = random.Random(f"{seed} {group} {number}")
        place = folder / f"{number}"
        place.mkdir()
        path = place / kind.name
        path.write_bytes(kind.mutation(random_))
        faulthandler.dump_traceback_later(LIMIT_S, exit=True)
        try:
            kind.load(path)
        except RuntimeFault as error:
            if not (error.message and error.remedy and len(str(error)) < 5000):
                complaints.append(f"{path}: a message of {len(str(error))} characters: {str(error)[:200]}")
                continue
        except Exception:  # noqa: BLE001 - any other exception is what is looked for
            complaints.append(f"{path}: {traceback.format_exc(limit=-4)}")
            continue
        shutil.rmtree(place)
    faulthandler.cancel_dump_traceback_later()
    return complaints


def _by_name(load: Callable[[str], object]) -> Callable[[Path], object]:
    return lambda path: load(str(path))


def _as(cls: type) -> Callable[[Path], object]:
    return lambda path: config.load(path, cls)


def _stored(npz: bytes) -> bytes:
    """The same arrays without compression, so that mutations reach their headers; checksums are not corrected."""
    stored = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(npz)) as source, zipfile.ZipFile(stored, "w") as target:
        for name in source.namelist():
            target.writestr(name, source.read(name))
    return stored.getvalue()


def _png(pgm: bytes) -> bytes:
    import cv2
    import numpy as np

    return bytes(cv2.imencode(".png", cv2.imdecode(np.frombuffer(pgm, np.uint8), cv2.IMREAD_GRAYSCALE))[1])


def _virtual_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


_STATE = (
    b"\x80\x02}X\x01\x00\x00\x00wctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\n"
    b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x06tQK\x00K\x02K\x03\x86K\x03K\x01\x86\x89}tRs."
)
"""A ``state_dict`` with one tensor of 2 x 3."""

if __name__ == "__main__":
    found = run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
    if found:
        (Path(sys.argv[4]) / "complaints.txt").write_text("\n".join(found))
        sys.exit(1)
