"""Writes a checkpoint as AllenAct's trainer does, and its backbone's.

``python allenact_checkpoint.py FOLDER IMAGES resnet18|clip_rn50``

A process of its own, because the modules that AllenAct imports and lacks are stood in for.
"""

import sys
from pathlib import Path

import torch

from robot_runtime.policies.convert.frameworks import allenact

folder, images, backbone = Path(sys.argv[1]), sys.argv[2].split("+"), sys.argv[3]
library = allenact.seed_modules()
torch.manual_seed(5)
policy = allenact.build(
    {
        "images": images,
        "backbone": backbone,
        "features": 2048 if backbone == "clip_rn50" else 512,
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

eye, module = allenact.embedder({"backbone": backbone})
with torch.no_grad():
    for name, buffer in module.named_buffers():
        if name.endswith("running_mean"):
            buffer.uniform_(-0.1, 0.1)
        elif name.endswith("running_var"):
            buffer.uniform_(0.8, 1.2)
if backbone == "clip_rn50":  # as CLIP publishes it: a TorchScript archive of half precision, its text half included
    image = torch.zeros(1, 3, 32, 32)
    archive = torch.jit.trace_module(eye.model.eval(), {"encode_image": image}, check_trace=False)
    torch.jit.save(archive.half(), folder / "backbone.pt")
else:
    torch.save(module.state_dict(), folder / "backbone.pt", _use_new_zipfile_serialization=False)
