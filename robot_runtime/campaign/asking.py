"""Ways of asking for a person: a callback, a desktop notification, an HTTP hook."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

from robot_runtime.campaign.plan import Help

TIMEOUT_S = 5.0


class Notifier:
    """Sender of messages; none of them delays the campaign.

    Args:
        settings: message settings of the plan.
        tell: gets each message's line, and each failure to send.
    """

    def __init__(self, settings: Help, tell: Callable[[str], None]) -> None:
        self._settings, self._tell = settings, tell

    def ask(self, text: str, facts: Mapping[str, Any]) -> None:
        """Ask for a person.

        Args:
            text: text of the request: what to do.
            facts: machine-readable details of the request, for programs.
        """
        self._tell(text)
        if self._settings.desktop:
            self._start(self._notify, text)
        self.post({"asks": text, **facts})

    def post(self, document: Mapping[str, Any]) -> None:
        """Post to the hook, if the plan names one."""
        if self._settings.hook is not None:
            self._start(self._post, json.dumps(document))

    def _start(self, send: Callable[[str], None], text: str) -> None:
        threading.Thread(target=send, args=(text,), name="notification", daemon=True).start()

    def _notify(self, text: str) -> None:
        program = shutil.which("notify-send")
        if program is None:
            self._tell("no desktop notification: notify-send is not installed")
            return
        try:
            subprocess.run(
                [program, "robot-runtime campaign", text], timeout=TIMEOUT_S, check=True, capture_output=True
            )
        except (OSError, subprocess.SubprocessError) as error:
            self._tell(f"no desktop notification: {error}")

    def _post(self, text: str) -> None:
        assert self._settings.hook is not None
        request = urllib.request.Request(self._settings.hook, text.encode(), {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S):
                pass
        except OSError as error:
            self._tell(f"{self._settings.hook}: not reached: {error}")
