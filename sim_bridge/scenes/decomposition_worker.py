"""CoACD in a process of its own: native code that can run for minutes, does not answer signals, and may crash."""

import multiprocessing
import signal
from multiprocessing.connection import Connection
from types import TracebackType

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from sim_bridge.scenes.decompose import DecompositionSettings, Faces, coacd_parts

Array = NDArray[np.float64]

TIME_LIMIT_S = 60.0
"""Time limit of one search; boxes stand for what takes longer."""


class DecompositionWorker:
    """A process that decomposes solids, one after another; a context, at whose end nothing is left running.

    It starts at the first search, and again after one that did not end.
    """

    def __init__(self, time_limit_s: float = TIME_LIMIT_S) -> None:
        self._time_limit_s = time_limit_s
        self._process: multiprocessing.process.BaseProcess | None = None
        self._connection: Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def search(self, vertices: Array, faces: Faces, settings: DecompositionSettings) -> list[Array] | None:
        """:func:`~sim_bridge.scenes.decompose.coacd_parts`; None if it takes too long or its process ends."""
        connection = self._connection or self._start()
        try:
            connection.send((vertices, faces, settings))
            if connection.poll(self._time_limit_s):
                found: list[Array] = connection.recv()
                return found
        except (EOFError, OSError):  # the process has ended
            pass
        except BaseException:
            self._stop()
            raise
        self._stop()
        return None

    def _start(self) -> Connection:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()
        return self._connection

    def _stop(self) -> None:
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._process.kill()
            self._process.join()
        self._process = self._connection = None


def _serve(connection: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the other side's, which ends this process
    while True:
        try:
            vertices, faces, settings = connection.recv()
        except (EOFError, OSError):
            return
        connection.send(coacd_parts(vertices, faces, settings))
