"""What simulated robots need of a computer, for ``robot-runtime doctor sim``."""

from __future__ import annotations

from collections.abc import Sequence

from robot_runtime.doctor import Finding, Verdict
from robot_runtime.errors import RenderingUnavailable
from sim_bridge import gl


def check() -> Sequence[Finding]:
    """Whether OpenGL draws without a screen."""
    try:
        backend = gl.choose_backend()
    except RenderingUnavailable as missing:
        return [Finding("OpenGL without a screen", Verdict.MISSING, missing.message, missing.remedy)]
    return [Finding("OpenGL without a screen", Verdict.OK, f"through {backend}")]
