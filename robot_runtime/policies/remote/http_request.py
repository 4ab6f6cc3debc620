"""Requests to a server over HTTP, with a limit on the whole time and on the size of the answer."""

import http.client
import json
import socket
import threading
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, urlsplit

from robot_runtime.errors import ConfigError, LinkLost, PolicyError

MAX_ANSWER_BYTES = 1 << 20


@dataclass(frozen=True)
class Request:
    """A request, apart from the server's address.

    Attributes:
        path: path on the server, with the first slash.
        body: content.
        headers: header name -> value.
    """

    path: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


def json_request(path: str, document: object, **headers: str) -> Request:
    """A request whose content is JSON, with further headers."""
    return Request(path, json.dumps(document).encode(), {"Content-Type": "application/json", **headers})


def form_request(path: str, files: Mapping[str, tuple[str, bytes]], fields: Mapping[str, str]) -> Request:
    """A request whose content is a form (RFC 7578), with images as files: field -> name, which ends with the type."""
    boundary, parts = uuid.uuid4().hex, []
    for name, (file, content) in files.items():
        head = f'form-data; name="{name}"; filename="{file}"\r\nContent-Type: image/{file.rpartition(".")[2]}'
        parts.append((head, content))
    parts += [(f'form-data; name="{name}"', text.encode()) for name, text in fields.items()]
    body = b"".join(f"--{boundary}\r\nContent-Disposition: {head}\r\n\r\n".encode() + c + b"\r\n" for head, c in parts)
    content_type = f"multipart/form-data; boundary={boundary}"
    return Request(path, body + f"--{boundary}--\r\n".encode(), {"Content-Type": content_type})


def address(url: str) -> SplitResult:
    """The parts of an address ``http://host[:port][/path]``. Raises ``ConfigError``."""
    with suppress(ValueError):
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return parts
    raise ConfigError(f"{url!r} is not an address", "write it like http://localhost:8080")


class _Http(http.client.HTTPConnection):
    """Remembers its socket, which a response takes over."""

    own: socket.socket | None = None

    def connect(self) -> None:
        super().connect()
        self.own = self.sock


class _Https(_Http, http.client.HTTPSConnection):
    pass


def post(server: SplitResult, request: Request, limit_s: float) -> bytes:
    """Send a request over a connection of its own, and return the answer's body.

    Args:
        server: address of the server; its path precedes the request's.
        request: content of the request.
        limit_s: time limit of the whole exchange, connecting included.

    Raises:
        LinkLost: the server cannot be reached, or closes the connection without an answer.
        PolicyError: no answer within ``limit_s``, one of more than ``MAX_ANSWER_BYTES``, or a refusal.
    """
    kind = _Https if server.scheme == "https" else _Http
    connection = kind(str(server.hostname), server.port, timeout=limit_s)
    received: list[bytes | PolicyError] = []

    # A socket's own limit counts from the last byte: a server that sends byte by byte would never reach it.
    def exchange() -> None:
        received.append(_exchange(connection, server, request, limit_s))

    worker = threading.Thread(target=exchange, daemon=True)
    worker.start()
    worker.join(limit_s)
    if worker.is_alive():
        if connection.own is not None:
            with suppress(OSError):
                connection.own.shutdown(socket.SHUT_RDWR)
        raise _late(server, limit_s)
    answer = received[0]
    if isinstance(answer, PolicyError):
        raise answer
    return answer


def _exchange(connection: _Http, server: SplitResult, request: Request, limit_s: float) -> bytes | PolicyError:
    url = server.geturl()
    try:
        connection.request("POST", server.path.rstrip("/") + request.path, request.body, dict(request.headers))
        response = connection.getresponse()
        body = response.read(MAX_ANSWER_BYTES + 1)
        if response.length and len(body) <= MAX_ANSWER_BYTES:
            raise http.client.IncompleteRead(body, response.length)
    except TimeoutError:  # of the socket, which has the same limit
        return _late(server, limit_s)
    except (OSError, http.client.HTTPException, ValueError) as error:
        return LinkLost(
            f"{url}: cannot be reached: {type(error).__name__}: {error}", "check that the server runs, and the network"
        )
    finally:
        connection.close()
    if not 200 <= response.status < 300:
        said = " ".join(body[:200].decode(errors="replace").split())
        return PolicyError(
            f"{url}: refused with HTTP status {response.status} at {request.path}: {said}", "read the server's output"
        )
    if len(body) > MAX_ANSWER_BYTES:
        return PolicyError(
            f"{url}: sent more than {MAX_ANSWER_BYTES} bytes", "check that it is a server of the kind that was named"
        )
    return body


def _late(server: SplitResult, limit_s: float) -> PolicyError:
    return PolicyError(
        f"{server.geturl()}: gave no answer within {limit_s:g} s", "check its load, or give it more time"
    )


def json_object(body: bytes, server: str) -> dict[str, Any]:
    """The JSON object in an answer. Raises ``PolicyError``, naming the server."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise PolicyError(f"{server}: answered with no JSON: {error!r:.200}", "read the server's output") from error
    if not isinstance(document, dict):
        raise PolicyError(f"{server}: answered {document!r:.200}, not a JSON object", "read the server's output")
    return document
