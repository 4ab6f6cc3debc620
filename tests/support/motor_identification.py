"""Identification of a base's motors as ``robot-runtime calibrate motors`` does it, without a file."""

from robot_runtime.errors import CalibrationFailed
from robot_runtime.hal.motors import MotorModel
from robot_runtime.motion.identification import MotorFit
from robot_runtime.motion.identification_drive import (
    HELD_OUT_LIMITS,
    TEST_MOVES,
    IdentificationDrive,
    fit_drive,
    held_out_errors,
)


def identify_motors(drive: IdentificationDrive, start: MotorModel) -> MotorFit:
    """Drive, fit a model, and verify it on other moves.

    Args:
        drive: drive of the base.
        start: model at which the search begins.

    Raises:
        CalibrationFailed: as :func:`fit_drive`, or the model errs in the moves that verify it.
        StaleData: the base is silent.
        DeviceFault: odometry is not finite.
    """
    fit = fit_drive([*drive.ramps(), *drive.moves()], start)
    errors_mm = held_out_errors(fit.model, drive.moves(TEST_MOVES))
    for name, limit_mm in HELD_OUT_LIMITS.items():
        if not errors_mm[name] <= limit_mm:
            raise CalibrationFailed(
                f"motors: the model errs by {name} {errors_mm[name]:.3g} in other moves, more than {limit_mm:g}",
                "repeat it on level floor with the computer and the network idle",
            )
    return fit
