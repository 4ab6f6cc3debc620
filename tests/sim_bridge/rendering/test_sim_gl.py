"""Choice of the OpenGL library, and the message when there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from raising import raises_naming

from robot_runtime.errors import RenderingUnavailable
from sim_bridge.rendering import gl_context

HERE = Path(__file__).resolve().parents[3]

CHOOSE = """
from robot_runtime.errors import RenderingUnavailable
from sim_bridge.rendering import gl_context as gl
try:
    gl.thread_context()
except RenderingUnavailable as error:
    print(error)
    raise SystemExit(error.exit_code)
"""


@pytest.fixture
def backends(monkeypatch: pytest.MonkeyPatch) -> dict[str, str | None]:
    """Backend -> why it fails, None if it works; to be edited by the test."""
    failures: dict[str, str | None] = {"egl": None, "osmesa": None}
    monkeypatch.setattr(gl_context, "egl_failure", lambda: failures["egl"])
    monkeypatch.setattr(gl_context, "osmesa_failure", lambda: failures["osmesa"])
    return failures


def test_egl_is_preferred_and_written_for_mujoco_and_pyopengl(backends: dict[str, str | None]) -> None:
    environ: dict[str, str] = {}
    assert gl_context.choose_backend(environ) == "egl"
    assert environ == {"MUJOCO_GL": "egl", "PYOPENGL_PLATFORM": "egl"}


def test_osmesa_is_taken_where_egl_fails(backends: dict[str, str | None]) -> None:
    backends["egl"] = "no device"
    environ: dict[str, str] = {}
    assert gl_context.choose_backend(environ) == "osmesa"
    assert environ == {"MUJOCO_GL": "osmesa", "PYOPENGL_PLATFORM": "osmesa"}


@pytest.mark.parametrize("variable", ["MUJOCO_GL", "PYOPENGL_PLATFORM"])
def test_the_environment_is_honoured(backends: dict[str, str | None], variable: str) -> None:
    environ = {variable: "osmesa"}
    assert gl_context.choose_backend(environ) == "osmesa"
    assert environ == {"MUJOCO_GL": "osmesa", "PYOPENGL_PLATFORM": "osmesa"}


def test_a_wish_that_cannot_be_met_is_not_replaced_silently(backends: dict[str, str | None]) -> None:
    backends["osmesa"] = "there is no library libOSMesa"
    with raises_naming(RenderingUnavailable, "apt-get install -y libosmesa6") as raised:
        gl_context.choose_backend({"MUJOCO_GL": "osmesa"})
    assert "libegl1" not in str(raised.value)


@pytest.mark.parametrize(
    "environ",
    [{"MUJOCO_GL": "glfw"}, {"MUJOCO_GL": "off"}, {"MUJOCO_GL": "egl", "PYOPENGL_PLATFORM": "osmesa"}],
    ids=["needs-a-screen", "disabled", "contradiction"],
)
def test_unusable_wishes_are_named(backends: dict[str, str | None], environ: dict[str, str]) -> None:
    with raises_naming(RenderingUnavailable, "MUJOCO_GL=") as raised:
        gl_context.choose_backend(environ)
    assert "unset" in raised.value.remedy


def test_without_any_backend_both_packages_are_named(backends: dict[str, str | None]) -> None:
    backends.update(egl="reason one", osmesa="reason two")
    with pytest.raises(RenderingUnavailable) as raised:
        gl_context.choose_backend({})
    assert "reason one" in raised.value.message
    assert "reason two" in raised.value.message
    assert "libegl1 libgl1-mesa-dri" in raised.value.remedy
    assert "libosmesa6" in raised.value.remedy


@pytest.mark.parametrize("missing", ["libraries", "vendor"])
def test_a_machine_without_gl_gets_the_message(tmp_path: Path, missing: str) -> None:
    """For real: a process whose EGL and OSMesa libraries, or whose EGL drivers, cannot be loaded."""
    environ = {k: v for k, v in os.environ.items() if k not in ("MUJOCO_GL", "PYOPENGL_PLATFORM")}
    broken = ["libOSMesa.so.8", "libOSMesa.so.6", "libOSMesa.so"]
    if missing == "libraries":
        broken += ["libEGL.so.1", "libEGL.so"]
    for name in broken:
        (tmp_path / name).write_bytes(b"")
    environ["LD_LIBRARY_PATH"] = str(tmp_path)
    if missing == "vendor":
        environ["__EGL_VENDOR_LIBRARY_DIRS"] = str(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", CHOOSE], env=environ, cwd=HERE, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == RenderingUnavailable.exit_code, done.stderr
    assert "libegl1 libgl1-mesa-dri" in done.stdout
    assert "libosmesa6" in done.stdout
    assert "Traceback" not in done.stderr


DRAW = """
import os, sys
from pathlib import Path
import numpy as np
from robot_runtime.hal import Intrinsics
from robot_runtime.scenes.scene import load_scene
from sim_bridge.physics.scene_model import build_model
from sim_bridge.rendering.renderer import SceneRenderer, camera_rotation
renderer = SceneRenderer(build_model(load_scene(Path(sys.argv[1]))), Intrinsics.from_hfov(64, 48, 79.0))
rgb, depth = renderer.render(np.array([0.0, 0.0, 0.88]), camera_rotation(0.0, 0.0))
renderer.close()
print(os.environ["MUJOCO_GL"], rgb.std() > 5, round(float(depth[24, 32]), 3))
"""


@pytest.mark.slow
def test_a_machine_with_osmesa_alone_draws_with_it(tmp_path: Path, room_folder: Path) -> None:
    assert gl_context.osmesa_failure() is None, "`make test` installs libosmesa6"
    environ = {k: v for k, v in os.environ.items() if k not in ("MUJOCO_GL", "PYOPENGL_PLATFORM")}
    (tmp_path / "libEGL.so.1").write_bytes(b"not a library")
    environ["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, (str(tmp_path), environ.get("LD_LIBRARY_PATH"))))
    done = subprocess.run(
        [sys.executable, "-c", DRAW, str(room_folder)],
        env=environ,
        cwd=HERE,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.split() == ["osmesa", "True", "3.0"], done.stdout + done.stderr
