"""Checks of a computer that simulates."""

from __future__ import annotations

import importlib

import pytest

from robot_runtime.common.host_checks import Status
from sim_bridge import doctor
from sim_bridge.rendering import gl_context


def test_an_extra_that_is_not_installed_keeps_nothing_else_from_working(monkeypatch: pytest.MonkeyPatch) -> None:
    load = importlib.import_module

    def without(name: str, package: str | None = None) -> object:
        if name == "open3d":
            raise ModuleNotFoundError("No module named 'open3d'", name="open3d")
        return load(name, package)

    monkeypatch.setattr(gl_context, "choose_backend", lambda: "egl")
    monkeypatch.setattr(importlib, "import_module", without)
    opengl, meshes = doctor.check()
    assert (opengl.status, meshes.status) == (Status.OK, Status.WARN)
    assert "robot-runtime[mesh]" in meshes.remedy
