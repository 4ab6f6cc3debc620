"""Worker process of an agent, started by :mod:`robot_runtime.policies.agents.process`.

This file is run by path, by the interpreter that the agent needs: Python 3.8 or newer with numpy, and nothing of
robot_runtime. The runtime imports the encoding of frames from here.

A frame consists of the magic number, the length of a JSON document, the number of bytes of arrays, the document, and
the arrays' bytes one after the other. ``document["arrays"]`` holds name, dtype and shape of each. There are no pickles.
"""

import ctypes
import functools
import importlib
import importlib.util
import inspect
import json
import math
import os
import random
import resource
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

MAGIC = b"RRA1"
_HEAD = struct.Struct(">4sII")
_KINDS = "biufU"
_PR_SET_PDEATHSIG = 1
_MAX_DEPTH = 8


class FrameError(Exception):
    """The received bytes are not a frame."""


def encode(document: Mapping[str, Any], arrays: Mapping[str, Any] | None = None) -> list[bytes | memoryview]:
    """The frame as buffers to be sent in order."""
    packed = {name: np.ascontiguousarray(array).reshape(np.shape(array)) for name, array in (arrays or {}).items()}
    described = [{"name": n, "dtype": a.dtype.str, "shape": list(a.shape)} for n, a in packed.items()]
    text = json.dumps({**document, "arrays": described}).encode()
    bodies = [a.tobytes() if a.dtype.kind == "U" or not a.ndim else a.data.cast("B") for a in packed.values() if a.size]
    return [_HEAD.pack(MAGIC, len(text), sum(map(len, bodies))), text, *bodies]


def decode(read: Callable[[int], bytearray], most_bytes: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The next frame: its document and its arrays, which are writable.

    Args:
        read: returns exactly as many bytes as asked for, or raises.
        most_bytes: upper bound of document and arrays together.

    Raises:
        FrameError: the bytes are not a frame, or a larger one.
    """
    magic, text_bytes, array_bytes = _HEAD.unpack(read(_HEAD.size))
    if magic != MAGIC:
        raise FrameError("it does not begin like a frame")
    if text_bytes + array_bytes > most_bytes:
        raise FrameError(f"it has {text_bytes + array_bytes} bytes, {most_bytes} are allowed")
    text, data = read(text_bytes), read(array_bytes)
    try:
        document = json.loads(text.decode())
        described = document["arrays"]
        arrays: dict[str, Any] = {}
        offset = 0
        for item in described:
            dtype, shape = np.dtype(item["dtype"]), tuple(item["shape"])
            if dtype.kind not in _KINDS or any(not isinstance(n, int) or n < 0 for n in shape):
                raise FrameError(f"an array of dtype {dtype} and shape {shape}")
            size = math.prod(shape) * dtype.itemsize
            if offset + size > len(data):
                raise FrameError("its arrays are cut short")
            arrays[item["name"]] = np.frombuffer(data, dtype, math.prod(shape), offset).reshape(shape)
            offset += size
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise FrameError(f"{type(error).__name__}: {error}") from error
    if offset != len(data):
        raise FrameError("it has bytes that belong to no array")
    return document, arrays


# --- agents ---------------------------------------------------------------------------------------------------------


class Habitat:
    """An agent of habitat-lab, with ``reset()`` and ``act(observations)``; ``factory`` is its class or a function."""

    default_name: str | None = None

    def __init__(self, factory: Callable[..., Any], arguments: dict[str, Any]) -> None:
        self.agent = factory(**arguments)
        for method in ("reset", "act"):
            if not callable(getattr(self.agent, method, None)):
                raise TypeError(f"{type(self.agent).__name__} has no {method}()")
        self.about: dict[str, Any] = {"needs": [str(name) for name in getattr(self.agent, "needs", ())]}

    def reset(self) -> None:
        """Start an episode."""
        self.agent.reset()

    def act(self, observation: dict[str, Any]) -> Any:
        """Return the agent's answer to an observation."""
        return self.agent.act(observation)


class Robothor(Habitat):
    """An agent of the RoboTHOR challenges: ``build()`` returns class, arguments and whether depth is needed."""

    default_name: str | None = "build"

    def __init__(self, factory: Callable[..., Any], arguments: dict[str, Any]) -> None:
        built = factory()
        if not (isinstance(built, tuple) and len(built) == 3):
            raise TypeError(f"build() returned {built!r:.200}, not (class, arguments, render_depth)")
        agent_class, own, render_depth = built
        Habitat.__init__(self, agent_class, dict(own, **arguments))
        self.about: dict[str, Any] = {"render_depth": bool(render_depth)}


def described(space: Any) -> Any:
    """A space of Gymnasium as JSON: of a ``Dict`` its spaces by name, of another shape and dtype; None if unknown."""
    inner = getattr(space, "spaces", None)
    if isinstance(inner, Mapping):
        return {str(name): described(one) for name, one in inner.items()}
    shape = getattr(space, "shape", None)
    return None if shape is None else [list(shape), np.dtype(space.dtype).name]


class Gym:
    """An agent with ``predict(observation, ...)`` of Stable-Baselines3, which may return a state, or ``act``."""

    default_name: str | None = None

    def __init__(self, factory: Callable[..., Any], arguments: dict[str, Any]) -> None:
        self.policy = factory(**arguments)
        names = [name for name in ("predict", "act") if callable(getattr(self.policy, name, None))]
        if not names:
            raise TypeError(f"{type(self.policy).__name__} has neither predict() nor act()")
        self.decide = getattr(self.policy, names[0])
        self.takes = set(inspect.signature(self.decide).parameters)
        self.space = described(getattr(self.policy, "observation_space", None))
        needs = list(self.space) if isinstance(self.space, dict) else []
        self.about: dict[str, Any] = {"needs": needs, "space": self.space}

    def reset(self) -> None:
        """Start an episode."""
        if callable(getattr(self.policy, "reset", None)):
            self.policy.reset()
        self.state: Any = None
        self.start = True

    def act(self, observation: dict[str, Any]) -> Any:
        """Return the action; a returned state is passed to the next call."""
        if isinstance(self.space, list):
            (observation,) = observation.values()
        extras = {"state": self.state, "episode_start": np.array([self.start])}
        returned = self.decide(observation, **{name: extras[name] for name in extras if name in self.takes})
        self.start = False
        if isinstance(returned, tuple) and len(returned) == 2:
            returned, self.state = returned
        return returned


class Function:
    """A function ``f(observation)`` with bound arguments."""

    default_name: str | None = None

    def __init__(self, factory: Callable[..., Any], arguments: dict[str, Any]) -> None:
        self.function = functools.partial(factory, **arguments)
        self.about: dict[str, Any] = {"needs": [str(name) for name in getattr(factory, "needs", ())]}

    def reset(self) -> None:
        """Do nothing: a function has no episodes."""

    def act(self, observation: dict[str, Any]) -> Any:
        """Return the function's answer to an observation."""
        return self.function(observation)


INTERFACES: dict[str, Any] = {
    "habitat": Habitat,
    "habitat-2019": Habitat,
    "robothor": Robothor,
    "gym": Gym,
    "function": Function,
}


def load(interface: str, spec: str, arguments: dict[str, Any]) -> Any:
    """Load the agent that ``module:name`` or ``path/to/file.py:name`` names, wrapped in its interface."""
    kind = INTERFACES[interface]
    module_name, _, name = spec.rpartition(":")
    if not module_name:
        module_name, name = spec, ""
    name = name or kind.default_name
    if name is None:
        raise ValueError(f"{spec!r} names no class or function: write module:name")
    sys.path.insert(0, os.getcwd())
    if module_name.endswith(".py"):
        path = os.path.realpath(module_name)
        sys.path.insert(0, os.path.dirname(path))  # as `python path/to/file.py` has it
        specification = importlib.util.spec_from_file_location(os.path.basename(path)[:-3], path)
        assert specification is not None
        assert specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        sys.modules[specification.name] = module  # dataclasses look a class's module up there
        specification.loader.exec_module(module)
    else:
        module = importlib.import_module(module_name)
    factory = getattr(module, name, None)
    if not callable(factory):
        raise AttributeError(f"{module_name} has no class or function {name!r}")
    return kind(factory, arguments)


def seed(number: int) -> None:
    """Seed the global random generators, since agents have no argument for a seed."""
    random.seed(number)
    np.random.seed(number % 2**32)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(number)


def plain(value: Any, depth: int = 0) -> Any:
    """An agent's answer as JSON; the ``repr`` of what JSON cannot represent."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return str(value)
    if hasattr(value, "detach"):  # a torch tensor
        value = value.detach().cpu().numpy()
    if isinstance(value, (np.generic, np.ndarray)) and value.size <= 1000 and value.dtype.kind in "biufU":
        return plain(value.tolist(), depth)
    if depth < _MAX_DEPTH and isinstance(value, dict):
        return {str(key): plain(item, depth + 1) for key, item in value.items()}
    if depth < _MAX_DEPTH and isinstance(value, (list, tuple)) and len(value) <= 1000:
        return [plain(item, depth + 1) for item in value]
    return {"unreadable": f"{value!r:.500}"}


# --- loop -----------------------------------------------------------------------------------------------------------


def receive_exactly(connection: socket.socket, count: int, before_each: Callable[[], None] = lambda: None) -> bytearray:
    """Receive ``count`` bytes; ``before_each`` is called before every wait. Raises ``EOFError`` at the end."""
    data = bytearray(count)
    view = memoryview(data)
    while view:
        before_each()
        got = connection.recv_into(view)
        if not got:
            raise EOFError("the connection was closed")
        view = view[got:]
    return data


def answer(request: dict[str, Any], arrays: dict[str, Any], agent: Any) -> tuple[dict[str, Any], Any]:
    """Return the reply to a request, and the agent, which a ``load`` request creates."""
    kind = request["type"]
    if kind == "load":
        agent = load(request["interface"], request["spec"], request["arguments"])
        return {"type": "ready", "about": agent.about}, agent
    if kind == "reset":
        seed(request["seed"])
        agent.reset()
        return {"type": "done"}, agent
    observation = dict(request["values"])
    observation.update(arrays)
    return {"type": "action", "action": plain(agent.act({name: observation[name] for name in request["order"]}))}, agent


def main(descriptor: int, parent: int, memory_bytes: int) -> None:
    """Answer requests on a socket until it is closed or the parent process ends, with a limit of private memory."""
    connection = socket.socket(fileno=descriptor)
    os.set_inheritable(descriptor, False)
    if sys.platform == "linux":
        # An agent that hangs would outlive a runtime that was killed.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            return
        # Not the address space, of which a GPU's libraries reserve far more than any computer has.
        resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    read = functools.partial(receive_exactly, connection)
    agent: Any = None
    while True:
        try:
            request, arrays = decode(read, 2**31)
        except EOFError:
            return
        try:
            reply, agent = answer(request, arrays, agent)
            buffers = encode(reply)
        except BaseException as error:  # noqa: BLE001 (SystemExit too: every failure of the agent is reported)
            what = f"{type(error).__name__}: {error}"
            buffers = encode({"type": "error", "what": what[:2000], "traceback": traceback.format_exc()[-20000:]})
        for buffer in buffers:
            connection.sendall(buffer)


if __name__ == "__main__":
    del sys.path[0]  # this file's folder: `import gym` must not find agents/gym.py
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
