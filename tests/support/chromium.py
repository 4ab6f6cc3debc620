"""A browser that tests drive, by its own protocol; there is none where Chromium is not installed."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import ClientConnection, connect

from robot_runtime.common.clock import SystemClock, wait_for

PATIENCE_S = 60.0

SIZES = ((390, 844), (768, 1024), (1280, 900))
"""Width and height of a phone, a tablet and a desk."""

LEAST_CONTRAST = 4.5
_CONTRAST = """(() => {
    const channel = (v) => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
    const light = (rgb) => .2126 * channel(rgb[0]) + .7152 * channel(rgb[1]) + .0722 * channel(rgb[2]);
    const parsed = (text) => (text.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
    const behind = (e) => { for (; e; e = e.parentElement) {
        const c = parsed(getComputedStyle(e).backgroundColor);
        if (c.length < 4 || c[3] > .5) return c; } return [255, 255, 255]; };
    const drawn = (e) => e instanceof SVGElement;
    return [...document.querySelectorAll("body *")].filter((e) => e.getClientRects().length
        && !e.closest("OMITTED, :disabled, title, [aria-hidden=true]")
        && [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())).map((e) => {
            const style = getComputedStyle(e);
            const a = light(parsed(drawn(e) ? style.fill : style.color)), b = light(behind(e));
            return [(Math.max(a, b) + .05) / (Math.min(a, b) + .05), e.outerHTML.slice(0, 90)];
        }).filter((one) => one[0] < LEAST);
})()"""

NAMES = ("chromium", "chromium-browser", "google-chrome")


class Tab:
    """One page; what goes wrong in its scripts is in ``faults``."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection, self._number = connection, 0
        self.faults: list[str] = []
        self._loaded: set[str] = set()
        for domain in ("Runtime", "Log", "Page"):
            self._call(f"{domain}.enable")
        self._call("Page.setLifecycleEventsEnabled", enabled=True)

    def open(self, page: Path, fragment: str = "", width: int = 1280, height: int = 900) -> None:
        """Load a file, and wait until its scripts have run."""
        self.visit(f"{page.resolve().as_uri()}{fragment}", width, height)

    def visit(self, url: str, width: int = 1280, height: int = 900, scheme: str = "light") -> None:
        """Load an address, and wait until its scripts have run."""
        self.resize(width, height, scheme)
        document = self._call("Page.navigate", url=url)["loaderId"]
        while document not in self._loaded:  # that of the page before may be told of only now
            self._next()

    def run(self, script: str) -> Any:
        """The value of an expression, or what its promise comes to."""
        said = self._call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in said, said["exceptionDetails"]
        return said["result"].get("value")

    def resize(self, width: int, height: int, scheme: str = "light") -> None:
        """Change the size of the window, and the color scheme."""
        self._call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        self._call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def pointer(self, kind: str, selector: str) -> None:
        """A real event of the mouse, ``mousePressed`` or ``mouseReleased``, in the middle of an element."""
        box = f"(() => {{ const e = document.querySelector('{selector}'); e.scrollIntoView({{block: 'center'}}); "
        x, y = self.run(
            box + "const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] })()"
        )
        self._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def click(self, selector: str) -> None:
        """A whole click in the middle of an element."""
        self.pointer("mousePressed", selector)
        self.pointer("mouseReleased", selector)

    def key(self, kind: str, key: str) -> None:
        """A real event of the keyboard: ``keyDown`` or ``keyUp``."""
        self._call("Input.dispatchKeyEvent", type=kind, key=key)

    def until(self, script: str) -> None:
        """Wait until an expression is true."""
        found = wait_for(SystemClock(), lambda: self.run(script) or None, PATIENCE_S, 0.02)
        assert found, f"never true: {script}; {self.run('document.body.innerText')}"

    def out_of_reach(self) -> list[str]:
        """Elements that a reader cannot see whole, neither at once nor by scrolling them sideways."""
        found: list[str] = self.run(
            """[...document.querySelectorAll("body *")].filter(element => {
                const style = getComputedStyle(element);
                if (element.matches("table, img, tr") && !element.getClientRects().length) return true;
                return style.overflowX === "hidden" && element.scrollWidth > element.clientWidth + 1;
            }).concat(document.documentElement.scrollWidth > innerWidth ? [document.documentElement] : [])
            .map(element => element.outerHTML.slice(0, 80))"""
        )
        return found

    def illegible(self, omitted: str = "noscript") -> list[Any]:
        """Texts with too little contrast, each with its contrast."""
        script = _CONTRAST.replace("OMITTED", omitted).replace("LEAST", str(LEAST_CONTRAST))
        found: list[Any] = self.run(script)
        return found

    def looks_right(self, omitted: str = "noscript", hides: bool = False) -> None:
        """Assert that nothing is cut off at any size, that letters are legible, and that images have a text.

        Args:
            omitted: selector of elements whose letters are not looked at.
            hides: whether the page hides elements that are not needed now.
        """
        reach = "document.documentElement.scrollWidth <= innerWidth ? [] : ['wider than the window']"
        for scheme in ("light", "dark"):
            for size in SIZES:
                self.resize(*size, scheme)
                for found in (self.run(reach) if hides else self.out_of_reach(), self.illegible(omitted)):
                    assert not found, (size, scheme, found[:5])
        assert self.run("[...document.images].every((image) => image.hasAttribute('alt'))")
        self.resize(*SIZES[0])

    def picture(self, path: Path) -> None:
        """Save what is shown."""
        path.write_bytes(base64.b64decode(self._call("Page.captureScreenshot")["data"]))

    def clipboard(self) -> str:
        """What a click has copied; the page may read it from now on."""
        self._call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
        text: str = self.run("navigator.clipboard.readText()")
        return text

    def press(self, key: str, **modifiers: bool) -> None:
        """A key, wherever the focus is."""
        options = json.dumps({"key": key, "bubbles": True, "cancelable": True, **modifiers})
        self.run(f"document.body.dispatchEvent(new KeyboardEvent('keydown', {options}))")

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        number = self._number
        self._connection.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while (said := self._next()).get("id") != number:
            pass
        assert "error" not in said, said
        result: dict[str, Any] = said["result"]
        return result

    def _next(self) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(self._connection.recv(PATIENCE_S))
        if said.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
            self.faults.append(json.dumps(said["params"]))
        elif said.get("method") == "Page.lifecycleEvent" and said["params"]["name"] == "load":
            self._loaded.add(said["params"]["loaderId"])
        return said


@contextmanager
def browser(folder: Path) -> Iterator[Tab]:
    """A tab of a Chromium with a profile in ``folder``; skips where there is none."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", f"--user-data-dir={folder}"]
    process = subprocess.Popen([program, *options, "about:blank"], stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        port = next(line for line in process.stderr if "DevTools listening on" in line).rsplit(":", 1)[1]
        port = port.split("/")[0]
        # The program answers before it has opened its page.
        url = wait_for(SystemClock(), lambda: _page_url(port), PATIENCE_S, 0.05)
        assert url is not None
        with connect(url, open_timeout=PATIENCE_S, max_size=None, proxy=None) as connection:
            yield Tab(connection)
    finally:
        process.kill()
        process.communicate()


def _page_url(port: str) -> str | None:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=PATIENCE_S) as answer:
        return next((one["webSocketDebuggerUrl"] for one in json.load(answer) if one["type"] == "page"), None)
