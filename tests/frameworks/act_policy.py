"""Program that writes a policy of LeRobot's ACT with random weights, as its training does: ``act_policy.py FOLDER``."""

from __future__ import annotations

import sys

import torch
from lerobot.configs.types import FeatureType, PolicyFeature
from lerobot.policies.act.configuration_act import ACTConfig
from lerobot.policies.act.modeling_act import ACTPolicy
from lerobot.policies.factory import make_pre_post_processors


def main(folder: str) -> None:
    config = ACTConfig(
        input_features={
            "observation.images.front": PolicyFeature(FeatureType.VISUAL, (3, 64, 64)),
            "observation.state": PolicyFeature(FeatureType.STATE, (2,)),
        },
        output_features={"action": PolicyFeature(FeatureType.ACTION, (2,))},
        chunk_size=8,
        n_action_steps=4,
        dim_model=32,
        n_heads=2,
        dim_feedforward=32,
        n_encoder_layers=1,
        use_vae=False,
        pretrained_backbone_weights=None,  # type: ignore[arg-type]
        device="cpu",
        push_to_hub=False,
    )
    torch.manual_seed(0)
    ACTPolicy(config).save_pretrained(folder)
    numbers = {"mean": torch.tensor([0.1, 0.2]), "std": torch.tensor([0.3, 0.4])}
    color = {"mean": torch.full((3, 1, 1), 0.4), "std": torch.full((3, 1, 1), 0.2)}
    stats = {"observation.state": numbers, "action": numbers, "observation.images.front": color}
    for processor in make_pre_post_processors(config, dataset_stats=stats):
        processor.save_pretrained(folder)


main(sys.argv[1])
