"""Spellings of options that earlier versions had, for error messages that name the present ones.

The rules of the present ones: ``--out`` is what a command writes, ``--json FILE`` and ``--picture FILE`` are further
results, ``--count`` is how many, and an option that is a length, an angle or a time ends with its unit: ``-m``,
``-deg``, ``-s``.
"""

from collections.abc import Collection

OLD_SPELLINGS: dict[str, tuple[str, ...]] = {
    "--agent-timeout": ("--agent-timeout-s",),
    "--backbone-licence": ("--backbone-license",),
    "--by": ("--judge",),
    "--calibrate": ("--out",),
    "--client-timeout": ("--client-timeout-s",),
    "--count": ("--workers",),
    "--episodes": ("--count", "--episodes-out"),
    "--forward": ("--forward-m",),
    "--lever": ("--lever-m",),
    "--licence": ("--license",),
    "--limit-s": ("--timeout-s",),
    "--localization-patience": ("--localization-patience-s",),
    "--marker-mm": ("--marker-m",),
    "--min-rest": ("--min-rest-s",),
    "--plot": ("--picture",),
    "--rosbag": ("--out",),
    "--size": ("--tag-m",),
    "--square-mm": ("--square-m",),
    "--tag-mm": ("--tag-m",),
    "--time-limit-s": ("--timeout-s",),
    "--timeout": ("--timeout-s",),
    "--to": ("--out",),
    "--turn": ("--turn-deg",),
    "--wheel-radius-mm": ("--wheel-radius-m",),
    "--wheel-separation-mm": ("--wheel-separation-m",),
    "--within-cm": ("--within-m",),
}
"""Old option -> present ones, of which a command has at most one."""


def present_spelling(old: str, options: Collection[str]) -> str | None:
    """The option among a command's that an old spelling stands for; None if there is none."""
    return next((new for new in OLD_SPELLINGS.get(old, ()) if new in options), None)


def remedy(old: str, new: str) -> str:
    """The spelling that replaces an old one."""
    return f"write {new}, in meters" if old.endswith(("-mm", "-cm")) else f"write {new}"
