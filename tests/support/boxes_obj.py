"""Boxes as OBJ files."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def write_box(path: Path, size: tuple[float, float, float]) -> None:
    """A box about its own origin as OBJ, outward normals, each face textured once."""
    corner = np.array(size) / 2
    vertices, faces = [], []
    for axis in range(3):
        u, v = np.roll(np.eye(3), -1 - axis, axis=0)[:2] if axis else np.eye(3)[1:]
        for sign in (1, -1):
            normal = sign * np.eye(3)[axis]
            side = u if sign > 0 else -u
            quad = [normal - side - v, normal + side - v, normal + side + v, normal - side + v]
            if np.dot(np.cross(quad[1] - quad[0], quad[2] - quad[0]), normal) < 0:
                quad.reverse()
            first = len(vertices) + 1
            vertices += [corner * q for q in quad]
            faces.append([first + i for i in range(4)])
    lines = [f"v {x:.6f} {y:.6f} {z:.6f}" for x, y, z in vertices]
    lines += ["vt 0 0", "vt 1 0", "vt 1 1", "vt 0 1"]
    lines += ["f " + " ".join(f"{corner_index}/{i + 1}" for i, corner_index in enumerate(face)) for face in faces]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
