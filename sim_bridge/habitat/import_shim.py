"""Import of habitat-lab from PyPI without habitat-sim, which PyPI lacks and a robot does not need.

habitat-lab 0.3.3 imports modules that need habitat-sim or magnum, for tasks that are not used here. Each of them is
replaced by a placeholder with the one name that is imported from it, before habitat-lab is imported; nothing of
habitat-lab, habitat-sim or magnum is changed or imitated. Where habitat-sim is installed, nothing is replaced.

Importing this module is enough for habitat-lab; habitat-baselines needs :func:`make_baselines_importable`.
"""

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any


def _untimed(_: Any = None) -> Callable[[Any], Any]:
    return lambda function: function


_LAB: dict[str, dict[str, Any]] = {
    "habitat.sims.habitat_simulator.object_state_machine": {"ObjectStateMachine": object},
    "habitat.tasks.rearrange": {"__path__": [], "_try_register_rearrange_task": lambda: None},
    "habitat.tasks.rearrange.rearrange_sim": {"add_perf_timing_func": _untimed},
    "habitat.core.batch_rendering.env_batch_renderer": {"EnvBatchRenderer": object},
}
_BASELINES: dict[str, dict[str, Any]] = {
    "habitat.tasks.nav.instance_image_nav_task": {
        "InstanceImageGoalSensor": type("InstanceImageGoalSensor", (), {"cls_uuid": "instance_imagegoal"})
    }
}
_TORCHVISION: dict[str, dict[str, Any]] = {
    "torchvision": {"__path__": []},
    "torchvision.transforms": {"__path__": []},
    "torchvision.transforms.functional": {},
}
_TENSORBOARD: dict[str, dict[str, Any]] = {"habitat_baselines.common.tensorboard_utils": {"TensorboardWriter": None}}


def make_importable() -> None:
    """Make ``import habitat`` work without habitat-sim; has no effect once habitat is imported."""
    if "habitat" not in sys.modules and importlib.util.find_spec("habitat_sim") is None:
        _seed(_LAB)


def make_baselines_importable() -> None:
    """Make habitat-baselines' policies and agents importable without habitat-sim; its trainers are not.

    Its ``__init__`` imports all trainers, and with them habitat-sim, so a bare package with its path replaces it.
    torchvision and tensorboard, used by CLIP encoders and trainers only, are replaced where they cannot be imported.

    Raises:
        ModuleNotFoundError: habitat-baselines is not installed.
    """
    make_importable()
    if "habitat_baselines" in sys.modules or importlib.util.find_spec("habitat_sim") is not None:
        return
    _seed(_BASELINES)
    spec = importlib.util.find_spec("habitat_baselines")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("No module named 'habitat_baselines'")
    _seed({"habitat_baselines": {"__path__": [str(Path(spec.origin).parent)]}})
    for needed, modules in (("torchvision", _TORCHVISION), ("tensorboard", _TENSORBOARD)):
        if not _imports(needed):
            _seed(modules)


def _seed(modules: dict[str, dict[str, Any]]) -> None:
    for name, members in modules.items():
        module = ModuleType(name, "Stands in for a module that needs habitat-sim.")
        module.__dict__.update(members)
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent in modules:
            setattr(sys.modules[parent], child, module)


def _imports(name: str) -> bool:
    """Whether a package can be imported; a failed import leaves no modules behind."""
    try:
        importlib.import_module(name)
    except (ImportError, RuntimeError):
        for partial in [module for module in sys.modules if module.split(".")[0] == name]:
            del sys.modules[partial]
        return False
    return True


make_importable()
