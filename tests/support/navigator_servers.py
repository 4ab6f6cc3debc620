"""Emulators of NavDP's and InternNav's servers: routes, forms, encodings and answers as in their sources.

NavDP at cb33ff8 (``baselines/*/*_server.py``), InternNav at 7a5c624 (``scripts/realworld/http_internvla_server.py``).
What a network would see is kept; what it would answer is given.
"""

from __future__ import annotations

import email
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

STEPS = {
    "navdp": ("nogoal_step", "pointgoal_step", "imagegoal_step", "pixelgoal_step", "navdp_step_ip_mixgoal"),
    **dict.fromkeys(("ddppo", "iplanner", "viplanner"), ("pointgoal_step",)),
    **dict.fromkeys(("gnm", "vint", "nomad"), ("nogoal_step", "imagegoal_step")),
}

STRAIGHT = [[0.1 * k, 0.0, 0.0] for k in range(1, 25)]
STILL = [[0.0, 0.0, 0.0]] * 24
TURN_LEFT_NAVDP = [[0.0, 1.0, 0.3]] * 24
TURN_RIGHT_DDPPO = np.linspace([0, 0, 0], [0, -1, -1], 20).tolist()


@dataclass
class Seen:
    """What one request gave the network.

    Attributes:
        route: the path.
        rgb: the array that the network gets, whose channels the server calls BGR.
        depth_m: meters.
        goal: of a point goal.
        image_goal: like ``rgb``.
        form: the JSON of InternNav's form.
    """

    route: str
    rgb: NDArray[np.uint8]
    depth_m: NDArray[np.float32]
    goal: tuple[float, float] | None = None
    image_goal: NDArray[np.uint8] | None = None
    form: Mapping[str, Any] | None = None


@dataclass
class Emulator:
    """A server's state.

    Attributes:
        algorithm: which of NavDP's, or ``internnav``.
        answer: from the number of the step, beginning with 0, to the trajectory; of InternNav to the whole answer.
        raw: from the same number to bytes to send instead, or an exception to raise in the handler; None for neither.
        resets: the routes and documents of all resets.
        seen: all steps.
        wait: called before each answer.
        pause: called in the middle of each answer, with the number of steps.
    """

    algorithm: str = "navdp"
    answer: Callable[[int], Any] = lambda _: STRAIGHT
    raw: Callable[[int], bytes | None] = lambda _: None
    wait: Callable[[str], object] = lambda _: None
    pause: Callable[[int], object] = lambda _: None
    resets: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)

    def respond(self, route: str, body: bytes, content_type: str) -> bytes:
        """The answer's body. Raises ``LookupError`` for a route that is not there."""
        self.wait(route)
        if route.startswith("navigator_reset") and self.algorithm in STEPS:
            self.resets.append((route, json.loads(body)))
            return json.dumps({"algo": self.algorithm}).encode()
        if route not in (STEPS.get(self.algorithm) or ("eval_dual",)):
            raise LookupError(route)
        if self.algorithm in STEPS:
            assert self.resets, "AttributeError: 'NoneType' object has no attribute 'batch_size'"
        parts = _form(body, content_type)
        seen = Seen(route, _rgb(parts["image"]), _depth_m(parts["depth"]))
        if self.algorithm in STEPS:
            seen.rgb = seen.rgb[:, :, ::-1]
            if "goal_data" in parts:
                goal = json.loads(parts["goal_data"])
                seen.goal = (goal["goal_x"][0], goal["goal_y"][0])
            if "goal" in parts:
                seen.image_goal = _rgb(parts["goal"])[:, :, ::-1]
        else:
            seen.form = json.loads(parts["json"])
        index = len(self.seen)
        self.seen.append(seen)
        if (raw := self.raw(index)) is not None:
            return raw
        if self.algorithm not in STEPS:
            return json.dumps(self.answer(index)).encode()
        points = self.answer(index)
        return json.dumps({"trajectory": [points], "all_trajectory": [[points]], "all_values": [[0.0]]}).encode()


@contextmanager
def emulated(emulator: Emulator) -> Iterator[str]:
    """Serve an emulator on the loopback; yields ``host:port``."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            try:
                answer, status = emulator.respond(self.path[1:], body, self.headers["Content-Type"]), 200
            except LookupError:
                answer, status = b"Not Found", 404
            except AssertionError as error:
                answer, status = f"Internal Server Error: {error}".encode(), 500
            self.send_response(status)
            self.end_headers()
            self.wfile.write(answer[: len(answer) // 2])
            emulator.pause(len(emulator.seen))
            self.wfile.write(answer[len(answer) // 2 :])

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:  # a client that has left
            pass

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def _form(body: bytes, content_type: str) -> dict[str, bytes]:
    message: Any = email.message_from_bytes(f"Content-Type: {content_type}\r\n\r\n".encode() + body)
    return {
        part.get_param("name", header="content-disposition"): part.get_payload(decode=True)
        for part in message.get_payload()
    }


def _rgb(data: bytes) -> NDArray[np.uint8]:
    """As ``PIL.Image.open(...).convert("RGB")``."""
    image: Any = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    rgb: NDArray[np.uint8] = image[:, :, ::-1]
    return rgb


def _depth_m(data: bytes) -> NDArray[np.float32]:
    image = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    assert image is not None
    assert image.dtype == np.uint16
    return image.astype(np.float32) / 10000.0
