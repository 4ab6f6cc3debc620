"""Program that reads a data set with LeRobot's own loader, in a process without habitat's stand-in for torchvision.

``python lerobot_reader.py DATASET OUT.npz`` writes the frames and prints the tasks.
"""

from __future__ import annotations

import json
import sys

import numpy as np
import torch

OPERATORS = (
    "nms qnms roi_align qroi_align _roi_align_backward ps_roi_align _ps_roi_align_backward roi_pool _roi_pool_backward "
    "ps_roi_pool _ps_roi_pool_backward deform_conv2d _deform_conv2d_backward"
)
"""Operators of torchvision's compiled part, which is missing here; LeRobot imports the package but calls none."""


def main(folder: str, out: str) -> None:
    library = torch.library.Library("torchvision", "DEF")
    for name in OPERATORS.split():
        library.define(f"{name}(Tensor x) -> Tensor")
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    dataset = LeRobotDataset("local/drive", root=folder)
    items = [dataset[index] for index in range(len(dataset))]
    names = [name for name in items[0] if name != "task"]
    np.savez(out, **{name: np.stack([item[name].numpy() for item in items]) for name in names})
    batch = next(iter(torch.utils.data.DataLoader(dataset, batch_size=8)))
    said = {"episodes": dataset.num_episodes, "tasks": [item["task"] for item in items], "batch": len(batch["action"])}
    print(json.dumps(said))


if __name__ == "__main__":
    main(*sys.argv[1:])
