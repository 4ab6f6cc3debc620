"""A Kobuki's velocities as the speed and radius of its command, and back. Pure."""

from drivers.kobuki.protocol import SEPARATION_M, BaseControl

_INT16 = 2**15 - 1


def base_control(linear_m_s: float, angular_rad_s: float) -> BaseControl:
    """Return the command for a velocity, saturated, and rounded toward zero as the vendor's driver does.

    The radius ends at 32767 mm, so that the least turning on the way is the speed over 32.9 m.
    """
    half_mm = 1000 * SEPARATION_M / 2
    if abs(angular_rad_s) < 1e-4:
        return BaseControl(_int16(1000 * linear_m_s), 0)
    radius_mm = 1000 * linear_m_s / angular_rad_s
    if abs(linear_m_s) < 1e-4 or abs(radius_mm) <= 1:
        return BaseControl(_int16(half_mm * angular_rad_s), 1)
    # A radius of -1 is not documented, and 0 and 1 mean something else.
    rounded_mm = _int16(radius_mm)
    if abs(rounded_mm) < 2:
        return BaseControl(_int16(half_mm * angular_rad_s), 1)
    outer_mm = radius_mm + half_mm if radius_mm > 0 else radius_mm - half_mm
    return BaseControl(_int16(outer_mm * angular_rad_s), rounded_mm)


def wheel_speeds(command: BaseControl) -> tuple[float, float]:
    """Return the speeds of the left and the right wheel, m/s, that a command asks for."""
    speed_m_s, radius_mm, half_mm = command.speed_mm_s / 1000, command.radius_mm, 1000 * SEPARATION_M / 2
    if radius_mm == 0:
        return speed_m_s, speed_m_s
    if abs(radius_mm) < 2:
        return -speed_m_s, speed_m_s
    if radius_mm > 0:
        return speed_m_s * (radius_mm - half_mm) / (radius_mm + half_mm), speed_m_s
    return speed_m_s, speed_m_s * (radius_mm + half_mm) / (radius_mm - half_mm)


def _int16(value: float) -> int:
    return int(max(-_INT16, min(_INT16, value)))
