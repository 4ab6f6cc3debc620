"""Published costs of a wrongly mounted camera.

``rpartsey/pointgoal-navigation``, ``Sim2real_Debug.md`` at 186c2b2: one PointNav checkpoint, trained with its camera at
0.88 m and -20 degrees, evaluated on Gibson's val_mini with true localization:

=========  ========  =====  ========
height     tilt      SPL    success
=========  ========  =====  ========
0.88 m     -20°      0.75   0.98
0.61 m     -20°      0.67   0.88
0.88 m     0°        0.10   0.24
0.61 m     0°        0.17   0.37
=========  ========  =====  ========

and 0.01 at 0.88 m and -20° for one trained at 1.25 m. Proportions between these points are guesses, and marked as such.
"""

from __future__ import annotations

import math

TILT_DEG, TILT_POINTS = 20.0, 74
HEIGHT_M, HEIGHT_POINTS = 0.27, 10
HIGH_M, HIGH_POINTS = 0.37, 97
"""A camera that is lower than in training by this much, with another checkpoint."""

MOST_POINTS = 97


def of_tilt(difference_deg: float) -> str:
    """Expected effect of a tilt error."""
    points = min(MOST_POINTS, TILT_POINTS * abs(difference_deg) / TILT_DEG)
    return f"20° cost a policy {TILT_POINTS} points of success (98 to 24 %); in proportion {points:.0f}"


def of_height(difference_m: float) -> str:
    """Expected effect of a height error."""
    off_m = abs(difference_m)
    least, most = HEIGHT_POINTS * off_m / HEIGHT_M, HIGH_POINTS * off_m / HIGH_M
    return (
        f"0.27 m cost one policy {HEIGHT_POINTS} points of success, 0.37 m another {HIGH_POINTS}; in proportion "
        f"{min(MOST_POINTS, least):.0f} to {min(MOST_POINTS, most):.0f}"
    )


def of_hfov(trained_deg: float, found_deg: float) -> str:
    """Effect of another field of view; no measurement of it is published."""
    scale = math.tan(math.radians(trained_deg) / 2) / math.tan(math.radians(found_deg) / 2)
    change = f"{100 * abs(scale - 1):.0f} % {'larger' if scale > 1 else 'smaller'}"
    return f"everything appears {change}, so distances by color are wrong by as much; no published measurement"
