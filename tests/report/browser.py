"""A headless Chromium driven over its own debugging pipe: real clicks and keys, and everything it asks for or says."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--hide-scrollbars",
    "--remote-debugging-pipe",
)  # fmt: skip
KEYS = {"Enter": ("Enter", 13, "\r"), "Space": (" ", 32, " "), "Tab": ("Tab", 9, "")}
SECONDS = 60


class Browser:
    """One page in a browser of its own.

    Attributes
    ----------
    requests : list of str
        Every address asked for.
    messages : list of str
        Whatever the console and the page's errors say.
    """

    def __init__(self, profile: Path) -> None:
        self.requests: list[str] = []
        self.messages: list[str] = []
        self._number, self._buffer = 0, b""
        inwards, outwards = os.pipe(), os.pipe()
        self._write, self._read = inwards[1], outwards[0]

        def connect() -> None:
            ends = os.dup(inwards[0]), os.dup(outwards[1])
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        self._process = subprocess.Popen(
            [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            pass_fds=(3, 4), preexec_fn=connect, start_new_session=True,
        )  # fmt: skip
        os.close(inwards[0])
        os.close(outwards[1])
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *error: object) -> None:
        """End the browser and all that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            while True:  # until the last one of its group is gone
                os.killpg(self._process.pid, 0)
                time.sleep(0.02)
        os.close(self._write)
        os.close(self._read)

    def call(self, method: str, **parameters: object) -> dict:
        """Send a command of the debugging protocol; return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if hasattr(self, "_session"):
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            received = self._receive()
            if received.get("id") == self._number:
                if "error" in received:
                    raise RuntimeError(f"{method}: {received['error']}")
                return received["result"]

    def open(self, address: str, width: int = 1280, height: int = 900) -> None:
        """Load a page in a window of a size (CSS pixels); at most 500 wide: as a phone does."""
        phone = width <= 500
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2 if phone else 1,
            mobile=phone,
        )  # fmt: skip
        self.requests.clear()
        self.messages.clear()
        self.call("Page.navigate", url=address)
        end = time.monotonic() + SECONDS
        while self.run("document.readyState + location.href") != f"complete{address}":
            if time.monotonic() > end:
                raise TimeoutError(address)
            time.sleep(0.02)

    def run(self, script: str) -> object:
        """Evaluate an expression in the page."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"]["exception"].get("description", script))
        return found["result"].get("value")

    def click(self, element: str) -> None:
        """Click in the middle of the element that an expression gives."""
        x, y = self.run(
            f"(() => {{ const e = {element}; e.scrollIntoView({{block: 'center', inline: 'center'}});"
            "const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, name: str) -> None:
        """Press a key."""
        key, code, text = KEYS[name]
        usual = {"key": key, "code": name, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **usual)
        self.call("Input.dispatchKeyEvent", type="keyUp", **usual)

    def screenshot(self, path: Path, whole: bool = False) -> None:
        """Write a PNG of the window, or of the whole page."""
        data = self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))

    def _receive(self) -> dict:
        while b"\0" not in self._buffer:
            part = os.read(self._read, 1 << 16)
            if not part:
                raise RuntimeError("the browser has gone")
            self._buffer += part
        text, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(text)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, method: str | None, told: dict) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.messages.append(str(told["exceptionDetails"].get("exception", told)))
        elif method == "Runtime.consoleAPICalled":
            self.messages.append(str([one.get("value") for one in told["args"]]))
        elif method == "Log.entryAdded":
            self.messages.append(told["entry"]["text"])
