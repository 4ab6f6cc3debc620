"""An off-screen OpenGL context for MuJoCo: EGL, else OSMesa, chosen automatically.

Each library is tried through ctypes first, because PyOpenGL, which MuJoCo's own context classes use, binds itself to
one platform when it is first imported and cannot change it afterwards. ``MUJOCO_GL`` (``egl`` or ``osmesa``),
or else ``PYOPENGL_PLATFORM``, overrides the choice.
"""

import atexit
import ctypes
import ctypes.util
import importlib
import os
import threading
from collections.abc import MutableMapping
from typing import Protocol

from robot_runtime.errors import RenderingUnavailable

PACKAGES = {"egl": "libegl1 libgl1-mesa-dri", "osmesa": "libosmesa6"}
"""Backends in order of preference, and the Debian and Ubuntu packages that bring each."""

_EGL_PLATFORM_DEVICE_EXT = 0x313F
_EGL_OPENGL_API = 0x30A2
_EGL_OPENGL_PBUFFER_CONFIG = (0x3033, 0x0001, 0x3040, 0x0008, 0x3025, 24, 0x3038)
"""EGL_SURFACE_TYPE pbuffer, EGL_RENDERABLE_TYPE OpenGL, EGL_DEPTH_SIZE 24, EGL_NONE."""
_MAX_DEVICES = 16
_UNUSED_PX = 16
"""Size of the context's own buffer, which nothing is drawn into."""

_of_thread = threading.local()


class GLContext(Protocol):
    """Common interface of MuJoCo's context classes."""

    def make_current(self) -> None: ...

    def free(self) -> None: ...


def thread_context() -> GLContext:
    """The calling thread's context of the chosen backend, current; made when first asked for, freed with the thread.

    All renderers of a thread draw in it, into buffers of their own. A driver compiles its shaders once per context,
    which takes Mesa's software renderer longer than all else that a renderer needs.

    Raises:
        RenderingUnavailable: as :func:`choose_backend`, or if the driver fails after all.
    """
    context: GLContext | None = getattr(_of_thread, "context", None)
    if context is None:
        backend = choose_backend()
        try:
            context = importlib.import_module(f"mujoco.{backend}").GLContext(_UNUSED_PX, _UNUSED_PX)
            context.make_current()
        except (ImportError, AttributeError, OSError, RuntimeError) as error:
            raise _unavailable({backend: str(error)}) from error
        _of_thread.context = context
    else:
        context.make_current()
    return context


@atexit.register
def _free_main_threads_context() -> None:
    # Later, while the interpreter shuts down, PyOpenGL is in pieces.
    context: GLContext | None = getattr(_of_thread, "context", None)
    if context is not None:
        context.free()


def choose_backend(environ: MutableMapping[str, str] = os.environ) -> str:
    """``"egl"`` or ``"osmesa"``: the one asked for, else the first that works; written back to ``environ``.

    MuJoCo and PyOpenGL read ``MUJOCO_GL`` and ``PYOPENGL_PLATFORM``, so both are made to agree.

    Raises:
        RenderingUnavailable: the variables disagree or name another backend, or none works; names the apt packages.
    """
    requested = {
        name: environ[name].strip().lower() for name in ("MUJOCO_GL", "PYOPENGL_PLATFORM") if environ.get(name)
    }
    for name, request in requested.items():
        if request not in PACKAGES:
            raise RenderingUnavailable(
                f"environment variable {name}={request}: only {' and '.join(PACKAGES)} draw without a screen",
                f"unset {name} to have the backend chosen automatically",
            )
    if len(set(requested.values())) > 1:
        shown = " and ".join(f"{name}={request}" for name, request in requested.items())
        raise RenderingUnavailable(f"environment variables {shown} contradict each other", "unset one of them")
    candidates = list(requested.values())[:1] or list(PACKAGES)
    failures: dict[str, str] = {}
    for backend in candidates:
        failure = {"egl": egl_failure, "osmesa": osmesa_failure}[backend]()
        if failure is None:
            environ["MUJOCO_GL"] = environ["PYOPENGL_PLATFORM"] = backend
            return backend
        failures[backend] = failure
    raise _unavailable(failures)


def egl_failure() -> str | None:
    """The reason why no OpenGL context can be made through EGL on any device; None if one can."""
    try:
        egl = ctypes.CDLL("libEGL.so.1")
    except OSError as error:
        return str(error)
    egl.eglGetProcAddress.restype = ctypes.c_void_p
    addresses = [egl.eglGetProcAddress(name) for name in (b"eglQueryDevicesEXT", b"eglGetPlatformDisplayEXT")]
    if not all(addresses):
        return "libEGL lacks the extension EGL_EXT_platform_device"
    query_devices = ctypes.CFUNCTYPE(ctypes.c_uint, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(addresses[0])
    get_display = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p)(addresses[1])
    devices, count = (ctypes.c_void_p * _MAX_DEVICES)(), ctypes.c_int(0)
    if not query_devices(_MAX_DEVICES, devices, ctypes.byref(count)) or count.value == 0:
        return "EGL finds no device, not even Mesa's software renderer"
    displays = (get_display(_EGL_PLATFORM_DEVICE_EXT, device, None) for device in devices[: count.value])
    if any(display and _display_draws(egl, ctypes.c_void_p(display)) for display in displays):
        return None
    return f"none of EGL's {count.value} devices makes an OpenGL context"


def _display_draws(egl: ctypes.CDLL, display: ctypes.c_void_p) -> bool:
    # The display stays initialized: terminating it would break contexts that others in this process have on it.
    if not egl.eglInitialize(display, None, None):
        return False
    wanted = (ctypes.c_int * len(_EGL_OPENGL_PBUFFER_CONFIG))(*_EGL_OPENGL_PBUFFER_CONFIG)
    config, count = ctypes.c_void_p(), ctypes.c_int(0)
    if not egl.eglChooseConfig(display, wanted, ctypes.byref(config), 1, ctypes.byref(count)) or count.value == 0:
        return False
    egl.eglBindAPI(_EGL_OPENGL_API)
    egl.eglCreateContext.restype = ctypes.c_void_p
    context = egl.eglCreateContext(display, config, None, None)
    if not context:
        return False
    egl.eglDestroyContext(display, ctypes.c_void_p(context))
    return True


def osmesa_failure() -> str | None:
    """The reason why no OSMesa context can be made; None if one can."""
    name = ctypes.util.find_library("OSMesa")
    if name is None:
        return "there is no library libOSMesa"
    try:
        create = ctypes.CDLL(name).OSMesaCreateContextExt
        destroy = ctypes.CDLL(name).OSMesaDestroyContext
    except (OSError, AttributeError) as error:
        return str(error)
    create.restype = ctypes.c_void_p
    osmesa_rgba, depth_bits, stencil_bits = 0x1908, 24, 8
    context = create(osmesa_rgba, depth_bits, stencil_bits, 0, None)
    if not context:
        return "libOSMesa cannot make a context"
    destroy(ctypes.c_void_p(context))
    return None


def _unavailable(failures: dict[str, str]) -> RenderingUnavailable:
    reasons = "; ".join(f"{backend}: {reason}" for backend, reason in failures.items())
    installs = ", or ".join(f"apt-get install -y {PACKAGES[backend]}" for backend in failures)
    return RenderingUnavailable(f"no OpenGL context can be made ({reasons})", installs)
