"""Files of networks for the row ``zoo_one_command``: each is one command, with what its file does not say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

import yaml

from tests.support import zoo_networks as zoo

MAX_STEPS = 12
"""Length of an episode: random networks do not reach a goal."""


@contextmanager
def _file(kind: zoo.Kind, folder: Path) -> Iterator[list[str]]:
    path, about = kind.write(folder / "net.onnx"), folder / "about.yaml"
    about.write_text(yaml.safe_dump({**kind.about, "task": {"max_steps": MAX_STEPS}}))
    said = {"about": about, "task": kind.task, "rgb": kind.rgb}
    arguments = [f"--agent-arg={name}={value}" for name, value in said.items() if value is not None]
    yield ["--policy", str(path), *arguments, *(["--robot", "sim"] if "semantic" in kind.needs else [])]


FILES: dict[str, Callable[[Path], AbstractContextManager[list[str]]]] = {
    f"ONNX, {name}": partial(_file, kind) for name, kind in zoo.KINDS.items()
}
"""Sorts of files of the zoo."""
