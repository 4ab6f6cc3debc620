"""Renderers of one thread draw in one OpenGL context, each what it would draw alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.typing import NDArray

from robot_runtime.hal import Intrinsics
from robot_runtime.scenes.scene import find_scene, load_scene
from sim_bridge.physics.scene_model import SceneModel, build_model
from sim_bridge.rendering import gl_context
from sim_bridge.rendering.renderer import SceneRenderer, camera_rotation

WIDE = Intrinsics(width=64, height=48, fx=30, fy=30, cx=31.5, cy=23.5)
NARROW = Intrinsics(width=40, height=40, fx=60, fy=60, cx=19.5, cy=19.5)

Images = tuple[NDArray[np.uint8], NDArray[np.float32]]


@pytest.fixture(scope="module")
def arena() -> SceneModel:
    return build_model(load_scene(find_scene("arena")))


@pytest.fixture(scope="module")
def apartment() -> SceneModel:
    return build_model(load_scene(find_scene("apartment")))


def _look(renderer: SceneRenderer) -> Images:
    return renderer.render(np.array([1.5, 1.5, 0.8]), camera_rotation(0.4, -0.2))


def _alone(model: SceneModel, intrinsics: Intrinsics) -> Images:
    """What a renderer draws in a thread, and so in a context, of its own."""

    def draw() -> Images:
        renderer = SceneRenderer(model, intrinsics)
        try:
            return _look(renderer)
        finally:
            renderer.close()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(draw).result()


def _same(images: Images, others: Images) -> bool:
    return np.array_equal(images[0], others[0]) and np.array_equal(images[1], others[1])


@pytest.mark.slow
def test_each_of_two_draws_its_scene_at_its_size(arena: SceneModel, apartment: SceneModel) -> None:
    wide, narrow = SceneRenderer(arena, WIDE), SceneRenderer(apartment, NARROW)
    drawn = [(_look(wide), _look(narrow)) for _ in range(2)]
    narrow.close()
    last = _look(wide)
    wide.close()
    assert not np.array_equal(drawn[0][0][1][:40, :40], drawn[0][1][1])
    for first, second in drawn:
        assert _same(first, _alone(arena, WIDE))
        assert _same(second, _alone(apartment, NARROW))
    assert _same(last, drawn[0][0]), "closing one disturbs no other"


def test_one_context_a_thread() -> None:
    mine = gl_context.thread_context()
    with ThreadPoolExecutor(1) as pool:
        theirs = pool.submit(gl_context.thread_context).result()
    assert gl_context.thread_context() is mine
    assert theirs is not mine
