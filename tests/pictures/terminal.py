"""A terminal in which a command runs, as a picture. It understands what this project's own commands write."""

from __future__ import annotations

import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Sequence
from contextlib import suppress
from fcntl import ioctl
from pathlib import Path

import numpy as np
from matplotlib import get_data_path
from PIL import Image as Pillow
from PIL import ImageDraw, ImageFont

from tests.pictures.studio import ROOT, Image

COLUMNS, ROWS, LETTER_PX, LINE_PX = 80, 20, 13, 18
_PART = re.compile(r"\x1b\[(\??[\d;]*)([A-Za-z])|\x1b\].*?(?:\x07|\x1b\\)|([\r\n])|([^\x1b\r\n]+)", re.DOTALL)


class Screen:
    """The letters that output leaves on a terminal. Colors are ignored."""

    def __init__(self) -> None:
        self.lines: list[str] = [""]
        self._row = self._column = 0

    def take(self, text: str) -> None:
        """Output that follows."""
        for found in _PART.finditer(text):
            arguments, command, control, letters = found.groups()
            if letters:
                self._write(letters)
            elif control == "\r":
                self._column = 0
            elif control == "\n":
                self._go(self._row + 1)
            elif command == "A":
                self._go(max(0, self._row - int(arguments or 1)))
            elif command == "K":
                kept = 0 if arguments == "2" else self._column
                self.lines[self._row] = self.lines[self._row][:kept]

    def _go(self, row: int) -> None:
        self._row = row
        self.lines += [""] * (row + 1 - len(self.lines))

    def _write(self, letters: str) -> None:
        while letters:
            here, letters = letters[: COLUMNS - self._column], letters[COLUMNS - self._column :]
            line = self.lines[self._row].ljust(self._column)
            self.lines[self._row] = line[: self._column] + here + line[self._column + len(here) :]
            self._column += len(here)
            if letters:
                self._go(self._row + 1)
                self._column = 0

    def picture(self) -> Image:
        """The last lines, light on dark, uint8 (H, W, 3)."""
        font = ImageFont.truetype(str(Path(get_data_path()) / "fonts" / "ttf" / "DejaVuSansMono.ttf"), LETTER_PX)
        width = round(font.getlength("m") * COLUMNS) + 24
        canvas = Pillow.new("RGB", (width, ROWS * LINE_PX + 24), (16, 22, 28))
        pen = ImageDraw.Draw(canvas)
        for number, line in enumerate(self.lines[-ROWS:]):
            pen.text((12, 12 + number * LINE_PX), line, (222, 230, 236), font)
        return np.asarray(canvas, np.uint8)


class TerminalRun:
    """A command of ``robot-runtime`` on a terminal.

    Args:
        arguments: arguments of the command.
        folder: folder in which it runs.
    """

    def __init__(self, arguments: Sequence[str], folder: Path) -> None:
        self.screen, self.said = Screen(), ""
        self.screen.take(f"$ robot-runtime {' '.join(arguments)}\n")
        self._reads, terminal = pty.openpty()
        ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        # The terminal is the session's own, as a terminal emulator starts a command: its keys are read.
        program = "import fcntl, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
        program += "from robot_runtime.cli.main import main; main(sys.argv[1:])"
        command = [sys.executable, "-c", program, *arguments]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "NO_COLOR": "1"}
        environment.pop("CI", None)
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
        )
        os.close(terminal)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with suppress(OSError):  # by which Linux reports that no program has the terminal open any longer
            while part := os.read(self._reads, 4096).decode(errors="replace"):
                self.said += part
                self.screen.take(part)

    def end(self) -> None:
        """End the command, if it has not ended by itself, and read what it said; again without effect."""
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(60)
        if self._reader.is_alive():
            self._reader.join(10)
        with suppress(OSError):  # closed already
            os.close(self._reads)
