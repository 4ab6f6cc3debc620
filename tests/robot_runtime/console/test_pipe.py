"""Messages of the console to its page's process."""

from __future__ import annotations

import multiprocessing
import threading

import numpy as np
import pytest

from robot_runtime.console import pipe


def test_messages_arrive_whole_and_in_order() -> None:
    receiving, sending = multiprocessing.Pipe(duplex=False)
    picture = np.arange(480 * 640 * 3, dtype=np.uint32).astype(np.uint8).reshape(480, 640, 3)
    depth_m = np.ones((240, 320), np.float32)
    messages = [("frame", (picture, depth_m)), ("state", {"step": 3}), ("frame", (picture[::2, ::2], None))]

    def send() -> None:
        for message in messages:
            pipe.send(sending, message)
        sending.close()

    thread = threading.Thread(target=send)  # a picture does not fit the pipe
    thread.start()
    (_, (color, depth)), state, (_, (thinned, nothing)) = (pipe.receive(receiving) for _ in messages)
    thread.join()
    np.testing.assert_array_equal(color, picture)
    np.testing.assert_array_equal(depth, depth_m)
    np.testing.assert_array_equal(thinned, picture[::2, ::2])
    assert (state, nothing) == (("state", {"step": 3}), None)
    with pytest.raises(EOFError):
        pipe.receive(receiving)
