"""Packages outside this project that offer objects by entry points."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def install(folder: Path, package: str, offers: Mapping[str, Mapping[str, str]], source: str) -> None:
    """Write a distribution with entry points, by group and name, and a module into a folder of the search path."""
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = []
    for group, objects in offers.items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in objects.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    (folder / f"{package}.py").write_text(source)
