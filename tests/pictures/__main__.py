"""Command line: ``python -m tests.pictures [NAME ...] [--out FOLDER] [--short]``."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from tests.pictures.recipes import RECIPES
from tests.pictures.studio import IMAGES, Studio


def main() -> None:
    """Make the pictures, and say how long each took."""
    names = sorted(name for recipe in RECIPES for name in recipe.names)
    parser = argparse.ArgumentParser(prog="python -m tests.pictures", description="Make the documentation's pictures.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}; all by default")
    parser.add_argument("--out", type=Path, default=IMAGES, help="folder of the pictures [default: docs/images]")
    parser.add_argument("--short", action="store_true", help="fewer episodes where a picture is of many, as in CI")
    given = parser.parse_args()
    if unknown := set(given.names) - set(names):
        parser.error(f"no recipe makes {', '.join(sorted(unknown))}")
    given.out.mkdir(parents=True, exist_ok=True)
    for recipe in RECIPES:
        if not given.names or set(given.names) & set(recipe.names):
            began = time.monotonic()
            with tempfile.TemporaryDirectory() as folder:
                studio = Studio(Path(folder), given.out.resolve(), given.short)
                try:
                    recipe.make(studio)
                finally:
                    studio.close()
            print(f"{', '.join(recipe.names)}: {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
