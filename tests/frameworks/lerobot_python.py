"""Python in which LeRobot can be imported beside torch's CPU build: ``lerobot_python.py -I SCRIPT [ARGUMENT...]``."""

from __future__ import annotations

import runpy
import sys

import torch
from lerobot_reader import OPERATORS

library = torch.library.Library("torchvision", "DEF")
for name in OPERATORS.split():
    library.define(f"{name}(Tensor x) -> Tensor")
sys.argv[:] = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
