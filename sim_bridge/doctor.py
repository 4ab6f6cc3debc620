"""Checks of a computer for simulated robots: ``robot-runtime doctor sim``."""

from collections.abc import Sequence

from robot_runtime.common.host_checks import Finding, Status
from robot_runtime.errors import ConfigError, RenderingUnavailable
from sim_bridge.reconstruction.tsdf import open3d
from sim_bridge.rendering import gl_context


def check() -> Sequence[Finding]:
    """Whether OpenGL draws without a screen, and whether logs can be fused to meshes."""
    return [_opengl(), _meshes()]


def _opengl() -> Finding:
    what = "OpenGL without a screen"
    try:
        return Finding(what, Status.OK, f"through {gl_context.choose_backend()}")
    except RenderingUnavailable as missing:
        return Finding(what, Status.FAIL, missing.message, missing.remedy)


def _meshes() -> Finding:
    what = "Open3D, for scenes from logs"
    try:
        return Finding(what, Status.OK, f"version {open3d().__version__}")
    except ConfigError as missing:  # one command of many needs it
        return Finding(what, Status.WARN, missing.message, missing.remedy)
