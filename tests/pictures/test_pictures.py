"""The documentation shows no picture made by hand: each has a recipe, and CI makes all of them in short form."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from docs_pages import PAGES, ROOT
from PIL import Image

from tests.pictures.recipes import RECIPES
from tests.pictures.screens import LARGEST_BYTES
from tests.pictures.studio import IMAGES, Recipe, Studio

DRAWINGS = {"episode.svg", "layers.svg"}
"""Drawn as text; the second is compared with the import layers by tests/test_layout.py."""

SMALLER = {
    "eqa.png",
    "reconstruction.png",
    "sim-to-real.png",
    "gap-tune.png",
    "fit-actions.png",
    "fit-contacts.png",
    "fit-likelihood.png",
}
"""Of fewer episodes, questions or settings in short form, and therefore of another size."""


def test_every_picture_has_a_recipe_and_is_shown() -> None:
    texts = [page.read_text(encoding="utf-8") for page in [*PAGES, ROOT / "README.md"]]
    shown = {name for text in texts for name in re.findall(r"\]\((?:\.\./|docs/)?images/([\w.-]+)\)", text)}
    made = [name for recipe in RECIPES for name in recipe.names]
    assert len(made) == len(set(made))
    assert {path.name for path in IMAGES.iterdir()} == shown
    assert {*made, *DRAWINGS} == shown


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.names[0])
def test_a_recipe_makes_its_pictures(recipe: Recipe, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "out").mkdir()
    studio = Studio(tmp_path / "work", tmp_path / "out", short=True)
    try:
        recipe.make(studio)
    finally:
        studio.close()
    assert {path.name for path in studio.out.iterdir()} == set(recipe.names)
    for name in recipe.names:
        with Image.open(studio.out / name) as made, Image.open(IMAGES / name) as kept:
            assert made.size == kept.size or name in SMALLER
            assert np.asarray(made.convert("L")).std() > 5, "it shows something"
            assert getattr(kept, "n_frames", 1) > 10 or name.endswith(".png")
        assert (IMAGES / name).stat().st_size <= LARGEST_BYTES
