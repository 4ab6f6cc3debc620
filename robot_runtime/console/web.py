"""Server of the page and its pictures, in a process of its own: what it does cannot delay the robot."""

import asyncio
import hmac
import html
import json
import os
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import uvicorn
from numpy.typing import NDArray
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from robot_runtime.common.accepting import AcceptLimits, Acceptor
from robot_runtime.common.time_slices import ask_for_slices
from robot_runtime.console import pipe

PAGE = Path(__file__).parent / "page"
FILES = {**{f"/{name}.js": "text/javascript" for name in ("app", "link", "map")}, "/style.css": "text/css"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src *; "
    "manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Content security policy. The page connects to a second port, whose host the server does not know."""

STOP_S = 2.0
NICE = 5
"""Lower priority than the robot's: pictures wait for its loop, not the other way round."""

MAX_BODY = 1000
MAX_VIEWERS = 64
LIMITS = AcceptLimits(waiting=256, greeting=256, known=MAX_VIEWERS + 64, greet_s=5.0)
"""Limits of connections; those that fetch the page and its files are strangers, which costs them nothing."""

SEND_S = 5.0
"""Seconds after which a viewer that takes nothing is disconnected."""

DEPTH_SHOWN_M = 5.0
QUALITY = 75
FINALS = 50
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    # A browser must not press STOP on an idle connection that the limits are about to close.
    "Connection": "close",
}


@dataclass(frozen=True)
class Neighbor:
    """Console of another robot, on the same host and with the same token."""

    name: str
    port: int
    control_port: int


@dataclass(frozen=True)
class WebSettings:
    """Settings of the server."""

    token: str
    control_port: int
    name: str
    others: tuple[Neighbor, ...] = ()
    certificate: str | None = None
    key: str | None = None


@dataclass
class Newest:
    """The newest message of each kind, with the number that it came as; viewers send what is newer than they sent."""

    messages: dict[str, tuple[int, str | bytes]] = field(default_factory=dict)
    finals: dict[str, bytes] = field(default_factory=dict)
    number: int = 0

    def put(self, kind: str, message: str | bytes) -> None:
        """Replace the message of a kind."""
        self.number += 1
        self.messages[kind] = (self.number, message)

    def since(self, number: int) -> list[str | bytes]:
        """Messages that came after a number, oldest first."""
        return [
            message for came, message in sorted(self.messages.values(), key=lambda entry: entry[0]) if came > number
        ]


class Web:
    """The application.

    Args:
        settings: settings of the server.
        requests: connection to the robot's process. There: ``(key, id)`` of a stop, the number of viewers, or a line
            for the terminal; back: a stop's key and answer.

    Attributes:
        admit: notes that the peer at an address has shown the token, and returns whether there is a place for it.
    """

    admit: Callable[[Any], bool]

    def __init__(self, settings: WebSettings, requests: Connection) -> None:
        self._settings, self._requests = settings, requests
        self._sending = threading.Lock()
        self._newest, self._changed = Newest(), asyncio.Condition()
        self._pending: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._keys, self._viewers = count(), 0
        self.application = Starlette(
            routes=[
                Route("/", self._page),
                *(Route(path, partial(_file, path)) for path in FILES),
                Route("/stop", self._stop, methods=["POST"]),
                Route("/final/{log}", self._final),
                Route("/join", self._join),
                WebSocketRoute("/live", self._live),
            ],
            # The page of another robot stops this one, too; what it may do depends on the token alone.
            middleware=[
                Middleware(
                    CORSMiddleware, allow_origins=["*"], allow_methods=["GET", "POST"], allow_headers=["Authorization"]
                )
            ],
        )

    async def put(self, kind: str, message: str | bytes) -> None:
        """Show a message to every viewer."""
        async with self._changed:
            self._newest.put(kind, message)
            self._changed.notify_all()

    async def put_final(self, log: str, image: bytes) -> None:
        """Keep the last picture of an episode for those who judge it."""
        self._newest.finals[log] = image
        while len(self._newest.finals) > FINALS:
            del self._newest.finals[next(iter(self._newest.finals))]

    async def answer(self, key: int, answer: dict[str, Any]) -> None:
        """Answer a stop."""
        waiting = self._pending.pop(key, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    # --- routes -----------------------------------------------------------------------------------------------------

    async def _page(self, request: Request) -> Response:
        text = (PAGE / "index.html").read_text(encoding="utf-8")
        others = html.escape(json.dumps([asdict(neighbor) for neighbor in self._settings.others]))
        text = (
            text.replace("{name}", html.escape(self._settings.name))
            .replace("{control_port}", str(self._settings.control_port))
            .replace("{others}", others)
        )
        return HTMLResponse(text, headers=_HEADERS)

    async def _stop(self, request: Request) -> Response:
        if not self._is_known(request):
            return JSONResponse({"done": False, "text": "wrong token"}, 401, _HEADERS)
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BODY:
                return JSONResponse({"done": False, "text": "too long"}, 413)
        try:
            id = json.loads(body)["id"]
            if not isinstance(id, str) or len(id) > 64:
                raise TypeError("id")
        except (ValueError, KeyError, TypeError, RecursionError):
            return JSONResponse({"done": False, "text": 'send {"id": "..."}'}, 400)
        key = next(self._keys)
        waiting = self._pending[key] = asyncio.get_running_loop().create_future()
        try:
            self.tell((key, id))
            return JSONResponse(await asyncio.wait_for(waiting, STOP_S))
        except (OSError, asyncio.TimeoutError):
            return JSONResponse({"done": False, "text": "the robot's process does not answer"}, 503)
        finally:
            self._pending.pop(key, None)

    async def _final(self, request: Request) -> Response:
        if not self._is_known(request):
            return Response(status_code=401, headers=_HEADERS)
        image = self._newest.finals.get(request.path_params["log"])
        return Response(status_code=404) if image is None else Response(image, media_type="image/jpeg")

    async def _join(self, request: Request) -> Response:
        """A QR code of the page's address with its token, as the asking page reached it."""
        if not self._is_known(request):
            return Response(status_code=401, headers=_HEADERS)
        host = request.headers.get("host", "")[:200]
        scheme = "http" if self._settings.certificate is None else "https"
        code = cv2.QRCodeEncoder.create().encode(f"{scheme}://{host}/#token={self._settings.token}")
        return Response(
            png(cv2.resize(code, None, fx=8, fy=8, interpolation=cv2.INTER_NEAREST)), media_type="image/png"
        )

    async def _live(self, socket: WebSocket) -> None:
        await socket.accept()
        if not await self._shows_token(socket) or self._viewers >= MAX_VIEWERS or not self.admit(socket.client):
            await socket.close(1008)
            return
        self._count(1)
        watching = asyncio.create_task(_until_closed(socket))
        try:
            number = 0
            while not watching.done():
                async with self._changed:
                    while not watching.done() and self._newest.number <= number:
                        await self._changed.wait()
                messages, number = self._newest.since(number), self._newest.number
                for message in messages:
                    send = socket.send_text(message) if isinstance(message, str) else socket.send_bytes(message)
                    await asyncio.wait_for(send, SEND_S)
        except (WebSocketDisconnect, RuntimeError, OSError, asyncio.TimeoutError):
            pass  # gone, or too slow
        finally:
            watching.cancel()
            self._count(-1)

    async def _shows_token(self, socket: WebSocket) -> bool:
        try:
            return self._knows(await asyncio.wait_for(socket.receive_text(), STOP_S))
        except (WebSocketDisconnect, KeyError, asyncio.TimeoutError):
            return False

    def _is_known(self, request: Request) -> bool:
        shown = self._knows(request.headers.get("Authorization", "").removeprefix("Bearer "))
        if shown:
            self.admit(request.client)
        return shown

    def _knows(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self._settings.token.encode())

    def _count(self, more: int) -> None:
        self._viewers += more
        self.tell(self._viewers)

    def tell(self, message: object) -> None:
        """Send to the robot's process; for any thread. Raises ``OSError``."""
        with self._sending:
            self._requests.send(message)


async def _until_closed(socket: WebSocket) -> None:
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass


async def _file(path: str, request: Request) -> Response:
    return FileResponse(PAGE / path[1:], media_type=FILES[path], headers=_HEADERS)


def serve_pages(settings: WebSettings, listening: socket.socket, feed: Connection, requests: Connection) -> None:
    """Serve until the robot's process closes ``feed`` or ends; the target of the process.

    Args:
        settings: settings of the server.
        listening: socket of the page.
        feed: connection from the robot's process: pairs of a kind and its content, as ``robot_runtime.console.feed``
            sends.
        requests: connection to the robot's process and back, see :class:`Web`.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # the robot's process decides when this one ends
        signal.signal(number, signal.SIG_IGN)
    ask_for_slices(0)
    os.nice(NICE)
    cv2.setNumThreads(1)
    ready = threading.Event()
    held: dict[str, Any] = {}

    async def serve() -> None:
        web = held["web"] = Web(settings, requests)
        loop = held["loop"] = asyncio.get_running_loop()
        configuration = uvicorn.Config(
            web.application,
            log_level="critical",
            access_log=False,
            ws_max_size=MAX_BODY,
            ws_ping_interval=5.0,
            ws_ping_timeout=10.0,
            ws_per_message_deflate=False,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=1,
            server_header=False,
            lifespan="off",
            ssl_certfile=settings.certificate,
            ssl_keyfile=settings.key,
        )
        configuration.load()
        server = held["server"] = uvicorn.Server(configuration)
        settled: dict[str, Any] = {"config": configuration, "server_state": server.server_state, "app_state": {}}
        protocol = partial(configuration.http_protocol_class, **settled)

        def take(connection: socket.socket, _: Any) -> None:
            opening = loop.connect_accepted_socket(protocol, connection, ssl=configuration.ssl)
            asyncio.run_coroutine_threadsafe(opening, loop)

        acceptor = held["acceptor"] = Acceptor(listening, take, LIMITS, web.tell, "console page")
        web.admit = acceptor.admit
        ready.set()
        await server.serve(sockets=[])

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="page server", daemon=True)
    thread.start()
    ready.wait()
    threading.Thread(target=_take_answers, args=(held["web"], held["loop"], requests), daemon=True).start()
    try:
        while True:
            kind, content = pipe.receive(feed)
            for call in _calls(held["web"], kind, content):
                asyncio.run_coroutine_threadsafe(call, held["loop"])
    except (EOFError, OSError):  # the robot's process has closed it, or is gone
        held["acceptor"].stop()
        held["server"].should_exit = True
    thread.join(STOP_S)


def _take_answers(web: Web, loop: asyncio.AbstractEventLoop, requests: Connection) -> None:
    """Pass on the robot's answers to stops, undelayed by pictures."""
    with suppress(EOFError, OSError):  # the robot's process has closed it, or is gone
        while True:
            asyncio.run_coroutine_threadsafe(web.answer(*requests.recv()), loop)


def _calls(web: Web, kind: str, content: Any) -> list[Any]:
    """Calls for the page's loop that a message of the feed asks for; pictures are encoded here, outside that loop."""
    if kind == "final":
        log, rgb = content
        return [web.put_final(log, jpeg(rgb))]
    if kind == "frame":
        rgb, depth_m = content
        calls = [web.put("color", b"c" + jpeg(rgb))]
        return calls if depth_m is None else [*calls, web.put("depth", b"d" + jpeg(depth_picture(depth_m)))]
    if kind == "map":
        return [web.put("map", b"m" + png(content))]
    if kind == "reference":
        return [web.put("reference", b"r" + (content or b""))]
    return [web.put(kind, json.dumps({"kind": kind, **content}))]


def jpeg(rgb: NDArray[np.uint8]) -> bytes:
    """A picture, uint8 (H, W, 3), as JPEG."""
    _, data = cv2.imencode(".jpg", np.ascontiguousarray(rgb[..., ::-1]), [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
    return data.tobytes()


def png(gray: NDArray[Any]) -> bytes:
    """A picture, uint8 (H, W), as PNG."""
    _, data = cv2.imencode(".png", gray)
    return data.tobytes()


def depth_picture(depth_m: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Depth, float32 (H, W) in meters, as colors, uint8 (H, W, 3): near is light, holes are black."""
    near = np.clip(255 * (1 - depth_m / DEPTH_SHOWN_M), 0, 255).astype(np.uint8)
    colors = cv2.applyColorMap(near, cv2.COLORMAP_VIRIDIS)[..., ::-1]
    return np.where((depth_m > 0)[..., None], colors, 0).astype(np.uint8)
