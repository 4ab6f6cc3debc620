"""Nominal factory calibration in the devices' JSON format.

It is the calibration of the emulated unit, and a placeholder for a device's own until it is connected. The numbers are
those of the data sheet ("hardware specifications": fields of view, the color camera 3.2 cm next to the depth camera,
which points 6 degrees further down), not of a real unit.
"""

import json
import math
from typing import Any

SERIAL = "000000000000"

DEPTH_DISTORTION = (0.30, 0.0, 0.0, 0.6333, 0.0388, 0.0)
"""k1..k6: near the axis an equidistant lens; 60 degrees off it is the edge of the wide modes."""

COLOR_DISTORTION = (0.09, -0.06, 0.02, 0.0, 0.0, 0.0)
TANGENTIAL = (-0.00013, 0.00006)
"""p2, p1 of both cameras."""

DEPTH_TILT_DEG = 6.0
COLOR_FROM_DEPTH_M = (-0.032, -0.002, 0.004)

_DEPTH_SIDE, _DEPTH_RADIUS = 1024, 1.74
_COLOR_WIDTH, _COLOR_HEIGHT, _COLOR_RADIUS = 4096, 3072, 1.7

_UP = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
_IMU_ROTATION = [0.0, math.sin(math.radians(6)), -math.cos(math.radians(6)), -1.0, 0.0, 0.0, 0.0]
_IMU_ROTATION += [math.cos(math.radians(6)), math.sin(math.radians(6))]
"""Rotation from the depth camera to the inertial sensors, whose z is up and x forward."""


def factory_document(serial: str = SERIAL) -> bytes:
    """Return the JSON document of a unit with this serial number."""
    tilt = math.radians(DEPTH_TILT_DEG)
    turned = [1.0, 0.0, 0.0, 0.0, math.cos(tilt), math.sin(tilt), 0.0, -math.sin(tilt), math.cos(tilt)]
    information = {
        "Cameras": [
            _camera(
                ("D0", "Depth"),
                (_DEPTH_SIDE, _DEPTH_SIDE),
                (0.5, 0.5, 504.6 / _DEPTH_SIDE, 504.6 / _DEPTH_SIDE, *DEPTH_DISTORTION),
                _DEPTH_RADIUS,
                (_UP, (0.0, 0.0, 0.0)),
            ),
            _camera(
                ("PV0", "PhotoVideo"),
                (_COLOR_WIDTH, _COLOR_HEIGHT),
                (0.5, 0.5, 1950.0 / _COLOR_WIDTH, 1950.0 / _COLOR_HEIGHT, *COLOR_DISTORTION),
                _COLOR_RADIUS,
                (turned, COLOR_FROM_DEPTH_M),
            ),
        ],
        "InertialSensors": [_inertial("Gyro", 16, 0.00095), _inertial("Accelerometer", 56, 0.0107)],
        "Metadata": {
            "SerialId": serial,
            "FactoryCalDate": "1/1/2024 12:00:00 AM GMT",
            "Version": {"Major": 1, "Minor": 2},
            "DeviceName": "AzureKinect-PV",
            "Notes": "simulated",
        },
    }
    return json.dumps({"CalibrationInformation": information}, separators=(",", ":")).encode()


def _camera(
    names: tuple[str, str],
    size: tuple[int, int],
    intrinsics: tuple[float, ...],
    radius: float,
    placed: tuple[list[float], tuple[float, ...]],
) -> dict[str, Any]:
    """Return one camera's document; ``intrinsics`` are cx, cy, fx, fy as fractions of the sensor, then k1..k6."""
    location, purpose = names
    return {
        "Intrinsics": {
            "ModelParameterCount": 14,
            "ModelParameters": [*intrinsics, 0.0, 0.0, *TANGENTIAL],
            "ModelType": "CALIBRATION_LensDistortionModelBrownConrady",
        },
        "Location": f"CALIBRATION_CameraLocation{location}",
        "Purpose": f"CALIBRATION_CameraPurpose{purpose}",
        "MetricRadius": radius,
        "Rt": {"Rotation": placed[0], "Translation": list(placed[1])},
        "SensorHeight": size[1],
        "SensorWidth": size[0],
        "Shutter": "CALIBRATION_ShutterTypeUndefined",
        "ThermalAdjustmentParams": {"Params": [0.0] * 12},
    }


def _inertial(kind: str, mask: int, noise: float) -> dict[str, Any]:
    mixing = [0.0] * 36
    for axis in range(3):
        mixing[16 * axis] = 1.0  # constant terms of the diagonal of a 3x3 matrix of cubic polynomials of temperature
    return {
        "BiasTemperatureModel": [0.0] * 12,
        "BiasUncertainty": [0.0001] * 3,
        "Id": "CALIBRATION_InertialSensorId_LSM6DSM",
        "MixingMatrixTemperatureModel": mixing,
        "ModelTypeMask": mask,
        "Noise": [noise] * 3 + [0.0] * 3,
        "Rt": {"Rotation": _IMU_ROTATION, "Translation": [0.0, 0.0, 0.0]},
        "SecondOrderScaling": [0.0] * 9,
        "SensorType": f"CALIBRATION_InertialSensorType_{kind}",
        "TemperatureBounds": [5.0, 60.0],
        "TemperatureC": 0.0,
    }
