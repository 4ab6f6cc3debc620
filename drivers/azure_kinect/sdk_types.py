"""Structures and constants of the Azure Kinect SDK's C API 1.4 (``k4atypes.h``, ``record/types.h``)."""

import ctypes
from ctypes import POINTER, Structure, c_bool, c_float, c_int, c_int32, c_uint32, c_uint64
from enum import IntEnum

SUCCEEDED, FAILED = 0, 1
TIMED_OUT, END_OF_FILE, TOO_SMALL = 2, 2, 2
"""The third result of ``k4a_wait_result_t``, ``k4a_stream_result_t`` and ``k4a_buffer_result_t``."""

Handle = ctypes.c_void_p
LogHandler = ctypes.CFUNCTYPE(None, ctypes.c_void_p, c_int, ctypes.c_char_p, c_int, ctypes.c_char_p)
"""``k4a_logging_message_cb_t``: context, level, file, line, message."""
ReleaseHandler = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
"""``k4a_memory_destroy_cb_t``: buffer, context."""


class ImageFormat(IntEnum):
    """``k4a_image_format_t``."""

    COLOR_MJPG = 0
    COLOR_BGRA32 = 3
    DEPTH16 = 4
    IR16 = 5


class ColorResolution(IntEnum):
    """``k4a_color_resolution_t``."""

    OFF = 0
    P720 = 1
    P1080 = 2
    P1440 = 3
    P1536 = 4
    P2160 = 5
    P3072 = 6


class DepthMode(IntEnum):
    """``k4a_depth_mode_t``."""

    OFF = 0
    NFOV_2X2BINNED = 1
    NFOV_UNBINNED = 2
    WFOV_2X2BINNED = 3
    WFOV_UNBINNED = 4
    PASSIVE_IR = 5


class Fps(IntEnum):
    """``k4a_fps_t``."""

    FPS_5 = 0
    FPS_15 = 1
    FPS_30 = 2


class ColorControl(IntEnum):
    """``k4a_color_control_command_t``, the supported ones."""

    EXPOSURE_TIME_ABSOLUTE = 0
    WHITEBALANCE = 6


class ControlMode(IntEnum):
    """``k4a_color_control_mode_t``."""

    AUTO = 0
    MANUAL = 1


class Sensor(IntEnum):
    """``k4a_calibration_type_t``."""

    DEPTH = 0
    COLOR = 1
    GYRO = 2
    ACCEL = 3


class DeviceConfiguration(Structure):
    """``k4a_device_configuration_t``."""

    _fields_ = (
        ("color_format", c_int),
        ("color_resolution", c_int),
        ("depth_mode", c_int),
        ("camera_fps", c_int),
        ("synchronized_images_only", c_bool),
        ("depth_delay_off_color_usec", c_int32),
        ("wired_sync_mode", c_int),
        ("subordinate_delay_off_master_usec", c_uint32),
        ("disable_streaming_indicator", c_bool),
    )


class RecordConfiguration(Structure):
    """``k4a_record_configuration_t``."""

    _fields_ = (
        ("color_format", c_int),
        ("color_resolution", c_int),
        ("depth_mode", c_int),
        ("camera_fps", c_int),
        ("color_track_enabled", c_bool),
        ("depth_track_enabled", c_bool),
        ("ir_track_enabled", c_bool),
        ("imu_track_enabled", c_bool),
        ("depth_delay_off_color_usec", c_int32),
        ("wired_sync_mode", c_int),
        ("subordinate_delay_off_master_usec", c_uint32),
        ("start_timestamp_offset_usec", c_uint32),
    )


class Extrinsics(Structure):
    """``k4a_calibration_extrinsics_t``: rotation by rows, translation in millimeters."""

    _fields_ = (("rotation", c_float * 9), ("translation", c_float * 3))


class Intrinsics(Structure):
    """``k4a_calibration_intrinsics_t``: cx, cy, fx, fy, k1..k6, codx, cody, p2, p1, metric_radius."""

    _fields_ = (("type", c_int), ("parameter_count", c_uint32), ("parameters", c_float * 15))


class CameraCalibration(Structure):
    """``k4a_calibration_camera_t``."""

    _fields_ = (
        ("extrinsics", Extrinsics),
        ("intrinsics", Intrinsics),
        ("resolution_width", c_int),
        ("resolution_height", c_int),
        ("metric_radius", c_float),
    )


class Calibration(Structure):
    """``k4a_calibration_t``. ``extrinsics[a][b]`` takes points of sensor a to sensor b."""

    _fields_ = (
        ("depth_camera_calibration", CameraCalibration),
        ("color_camera_calibration", CameraCalibration),
        ("extrinsics", (Extrinsics * 4) * 4),
        ("depth_mode", c_int),
        ("color_resolution", c_int),
    )


class ImuSample(Structure):
    """``k4a_imu_sample_t``: meters per second squared, radians per second, microseconds."""

    _fields_ = (
        ("temperature", c_float),
        ("acc_sample", c_float * 3),
        ("acc_timestamp_usec", c_uint64),
        ("gyro_sample", c_float * 3),
        ("gyro_timestamp_usec", c_uint64),
    )


HandleOut = POINTER(Handle)
SizeInOut = POINTER(ctypes.c_size_t)
Bytes = POINTER(ctypes.c_uint8)

FUNCTIONS: dict[str, tuple[object, tuple[object, ...]]] = {
    "k4a_set_debug_message_handler": (c_int, (LogHandler, ctypes.c_void_p, c_int)),
    "k4a_device_get_installed_count": (c_uint32, ()),
    "k4a_device_open": (c_int, (c_uint32, HandleOut)),
    "k4a_device_close": (None, (Handle,)),
    "k4a_device_get_serialnum": (c_int, (Handle, ctypes.c_char_p, SizeInOut)),
    "k4a_device_get_raw_calibration": (c_int, (Handle, Bytes, SizeInOut)),
    "k4a_device_start_cameras": (c_int, (Handle, POINTER(DeviceConfiguration))),
    "k4a_device_stop_cameras": (None, (Handle,)),
    "k4a_device_start_imu": (c_int, (Handle,)),
    "k4a_device_stop_imu": (None, (Handle,)),
    "k4a_device_get_capture": (c_int, (Handle, HandleOut, c_int32)),
    "k4a_device_get_imu_sample": (c_int, (Handle, POINTER(ImuSample), c_int32)),
    "k4a_device_set_color_control": (c_int, (Handle, c_int, c_int, c_int32)),
    "k4a_calibration_get_from_raw": (c_int, (ctypes.c_char_p, ctypes.c_size_t, c_int, c_int, POINTER(Calibration))),
    "k4a_capture_create": (c_int, (HandleOut,)),
    "k4a_capture_release": (None, (Handle,)),
    "k4a_capture_get_color_image": (Handle, (Handle,)),
    "k4a_capture_get_depth_image": (Handle, (Handle,)),
    "k4a_capture_get_ir_image": (Handle, (Handle,)),
    "k4a_capture_set_color_image": (None, (Handle, Handle)),
    "k4a_capture_set_depth_image": (None, (Handle, Handle)),
    "k4a_capture_set_ir_image": (None, (Handle, Handle)),
    "k4a_capture_get_temperature_c": (c_float, (Handle,)),
    "k4a_capture_set_temperature_c": (None, (Handle, c_float)),
    "k4a_image_create": (c_int, (c_int, c_int, c_int, c_int, HandleOut)),
    "k4a_image_create_from_buffer": (
        c_int,
        (c_int, c_int, c_int, c_int, ctypes.c_void_p, ctypes.c_size_t, ReleaseHandler, ctypes.c_void_p, HandleOut),
    ),
    "k4a_image_release": (None, (Handle,)),
    "k4a_image_get_buffer": (ctypes.c_void_p, (Handle,)),
    "k4a_image_get_size": (ctypes.c_size_t, (Handle,)),
    "k4a_image_get_format": (c_int, (Handle,)),
    "k4a_image_get_width_pixels": (c_int, (Handle,)),
    "k4a_image_get_height_pixels": (c_int, (Handle,)),
    "k4a_image_get_device_timestamp_usec": (c_uint64, (Handle,)),
    "k4a_image_set_device_timestamp_usec": (None, (Handle, c_uint64)),
    "k4a_image_get_system_timestamp_nsec": (c_uint64, (Handle,)),
    "k4a_image_get_exposure_usec": (c_uint64, (Handle,)),
    "k4a_image_set_exposure_usec": (None, (Handle, c_uint64)),
    "k4a_transformation_create": (Handle, (POINTER(Calibration),)),
    "k4a_transformation_destroy": (None, (Handle,)),
    "k4a_transformation_depth_image_to_color_camera": (c_int, (Handle, Handle, Handle)),
}
"""Result and argument types of the used functions of libk4a."""

RECORD_FUNCTIONS: dict[str, tuple[object, tuple[object, ...]]] = {
    "k4a_record_create": (c_int, (ctypes.c_char_p, Handle, DeviceConfiguration, HandleOut)),
    "k4a_record_add_tag": (c_int, (Handle, ctypes.c_char_p, ctypes.c_char_p)),
    "k4a_record_add_imu_track": (c_int, (Handle,)),
    "k4a_record_add_attachment": (c_int, (Handle, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t)),
    "k4a_record_write_header": (c_int, (Handle,)),
    "k4a_record_write_capture": (c_int, (Handle, Handle)),
    "k4a_record_write_imu_sample": (c_int, (Handle, ImuSample)),
    "k4a_record_close": (None, (Handle,)),
    "k4a_playback_open": (c_int, (ctypes.c_char_p, HandleOut)),
    "k4a_playback_close": (None, (Handle,)),
    "k4a_playback_get_raw_calibration": (c_int, (Handle, Bytes, SizeInOut)),
    "k4a_playback_get_record_configuration": (c_int, (Handle, POINTER(RecordConfiguration))),
    "k4a_playback_get_next_capture": (c_int, (Handle, HandleOut)),
    "k4a_playback_get_next_imu_sample": (c_int, (Handle, POINTER(ImuSample))),
}
"""The same of libk4arecord."""
