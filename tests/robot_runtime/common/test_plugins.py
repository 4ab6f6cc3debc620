"""Registries of what installed packages offer: names, first loading, and what a stranger's mistake stops."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import outside_packages
import pytest

from robot_runtime.common.plugins import Registry
from robot_runtime.errors import ConfigError, PluginError

GROUP = "robot_runtime.test_shapes"


class Shape:
    """What the registry of these tests asks for."""

    corners = 0


def install(folder: Path, package: str, offers: dict[str, str], source: str) -> None:
    """A package that offers objects in the test's group."""
    outside_packages.install(folder, package, {GROUP: offers}, source)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.fixture(autouse=True)
def _forget_modules() -> object:
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith("shapes_"):
            del sys.modules[name]


SQUARE = f"from {__name__} import Shape\nclass Square(Shape):\n    corners = 4\nSQUARE = Square()\n"


def test_an_offer_is_imported_when_it_is_first_asked_for_and_once(site: Path) -> None:
    install(site, "shapes_lazy", {"square": "shapes_lazy:SQUARE"}, SQUARE)
    shapes = Registry(GROUP, "shape", Shape)
    assert "square" in shapes
    assert shapes.names() == ("square",)
    assert "shapes_lazy" not in sys.modules
    assert shapes.load("square").corners == 4
    assert shapes.load("square") is shapes.load("square")


def test_a_registry_of_classes_takes_no_instance_and_the_other_way_round(site: Path) -> None:
    install(site, "shapes_class", {"square": "shapes_class:Square", "made": "shapes_class:SQUARE"}, SQUARE)
    classes, instances = Registry(GROUP, "shape", Shape, classes=True), Registry(GROUP, "shape", Shape)
    assert classes.load("square").corners == 4
    assert instances.load("made").corners == 4
    for registry, name in ((classes, "made"), (instances, "square")):
        with pytest.raises(PluginError) as raised:
            registry.load(name)
        assert "Shape" in raised.value.message


def test_a_failure_is_found_once_and_raised_each_time(site: Path) -> None:
    source = "import pathlib\npathlib.Path(__file__).with_name('try').touch(exist_ok=False)\nraise RuntimeError('once')"
    install(site, "shapes_often", {"square": "shapes_often:SQUARE"}, source)
    shapes: Registry[Shape] = Registry(GROUP, "shape", Shape)
    for _ in range(3):
        with pytest.raises(PluginError) as raised:
            shapes.load("square")
        assert "once" in raised.value.message
        assert shapes.usable() == {}


def test_an_unknown_name_suggests_the_nearest(site: Path) -> None:
    install(site, "shapes_near", {"square": "shapes_near:SQUARE"}, SQUARE)
    shapes = Registry(GROUP, "shape", Shape)
    assert shapes.find("sqare") is None
    with pytest.raises(ConfigError) as raised:
        shapes.load("sqare")
    assert "'square'" in raised.value.remedy


def test_two_owners_are_named_and_other_names_go_on(site: Path) -> None:
    install(site, "shapes_first", {"square": "shapes_first:SQUARE", "other": "shapes_first:SQUARE"}, SQUARE)
    install(site, "shapes_second", {"square": "shapes_second:SQUARE"}, SQUARE)
    shapes = Registry(GROUP, "shape", Shape)
    with pytest.raises(PluginError) as raised:
        shapes.load("square")
    assert "shapes_first" in raised.value.message
    assert "shapes_second" in raised.value.message
    assert shapes.load("other").corners == 4


def test_two_owners_of_one_object_are_two(site: Path) -> None:
    install(site, "shapes_mine", {"square": "shapes_mine:SQUARE"}, SQUARE)
    install(site, "shapes_copy", {"square": "shapes_mine:SQUARE"}, SQUARE)
    with pytest.raises(PluginError) as raised:
        Registry(GROUP, "shape", Shape).load("square")
    assert "shapes_mine" in raised.value.message
    assert "shapes_copy" in raised.value.message


def test_a_package_that_was_installed_twice_is_one_owner(site: Path) -> None:
    install(site, "shapes_again", {"square": "shapes_again:SQUARE"}, SQUARE)
    shutil.copytree(site / "shapes_again-1.0.dist-info", site / "Shapes.Again-0.9.dist-info")
    assert Registry(GROUP, "shape", Shape).load("square").corners == 4


@pytest.mark.parametrize(
    ("source", "value", "observed"),
    [
        ("import a_module_that_nobody_has", "shapes_bad:SQUARE", "a_module_that_nobody_has"),
        ("raise RuntimeError('at import')", "shapes_bad:SQUARE", "at import"),
        ("", "shapes_bad:SQUARE", "SQUARE"),
        ("SQUARE = 4", "shapes_bad:SQUARE", "Shape"),
    ],
)
def test_an_offer_that_cannot_be_used_names_package_and_entry_point(
    site: Path, source: str, value: str, observed: str
) -> None:
    install(site, "shapes_bad", {"square": value}, source)
    install(site, "shapes_good", {"round": "shapes_good:SQUARE"}, SQUARE)
    shapes = Registry(GROUP, "shape", Shape)
    with pytest.raises(PluginError) as raised:
        shapes.load("square")
    for text in ("shapes_bad", f"square = {value}", observed):
        assert text in raised.value.message
    assert shapes.load("round").corners == 4


def test_a_missing_method_is_named(site: Path) -> None:
    install(site, "shapes_method", {"square": "shapes_method:SQUARE"}, SQUARE)
    with pytest.raises(PluginError) as raised:
        Registry[object](GROUP, "shape", methods=("area",)).load("square")
    assert "area" in raised.value.message
