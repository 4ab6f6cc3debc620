"""Messages with pictures over a pipe, without copies of the pictures that would hold up the sender's other threads."""

import pickle
from multiprocessing.connection import Connection
from typing import Any


def send(connection: Connection, message: Any) -> None:
    """Send a message to a process of this program.

    Args:
        connection: connection to the process.
        message: message, whose contiguous arrays are written from where they are.

    Raises:
        OSError: the process has ended.
    """
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(message, protocol=5, buffer_callback=buffers.append)
    connection.send((data, len(buffers)))
    for buffer in buffers:
        connection.send_bytes(buffer.raw())


def receive(connection: Connection) -> Any:
    """Receive what :func:`send` sent; its arrays cannot be written to. Raises ``EOFError`` and ``OSError``."""
    data, count = connection.recv()
    return pickle.loads(data, buffers=[connection.recv_bytes() for _ in range(count)])
