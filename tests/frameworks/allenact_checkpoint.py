"""Writes a checkpoint as AllenAct's trainer does, and its backbone's: ``python allenact_checkpoint.py FOLDER IMAGES``.

A process of its own, because the modules that AllenAct imports and lacks are stood in for.
"""

import sys
from pathlib import Path

import torch

from robot_runtime.policies.convert.frameworks import allenact

folder, images = Path(sys.argv[1]), sys.argv[2].split("+")
library = allenact.seed_modules()
torch.manual_seed(5)
policy = allenact.build(
    {
        "images": images,
        "features": 512,
        "categories": 12,
        "actions": 6,
        "compressor": [128, 32],
        "combiner": [128, 32],
        "arguments": {"hidden_size": 512, "goal_dims": 32},
    }
)
with torch.no_grad():
    policy.actor.linear.weight.mul_(100)
optimizer = torch.optim.Adam(policy.parameters())
saved = {
    "total_steps": 3_000_000,
    "optimizer_state_dict": optimizer.state_dict(),
    "model_state_dict": policy.state_dict(),
    "training_pipeline_state_dict": {"stage_info_list": [{"early_stopping_criterion_met": False}]},
    "trainer_seed": 7,
}
torch.save(saved, folder / "exp__stage_00__steps_000003000000.pt")

from torchvision import models  # noqa: E402 (importable only now)

resnet = models.resnet18(weights=None)
with torch.no_grad():
    for name, buffer in resnet.named_buffers():
        if name.endswith("running_mean"):
            buffer.uniform_(-0.1, 0.1)
        elif name.endswith("running_var"):
            buffer.uniform_(0.8, 1.2)
torch.save(resnet.state_dict(), folder / "resnet18.pth", _use_new_zipfile_serialization=False)
