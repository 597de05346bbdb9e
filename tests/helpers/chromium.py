"""A headless Chromium, driven by the DevTools protocol over a pipe."""

import base64
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time

PROGRAM = next(
    (
        executable
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (executable := shutil.which(name))
    ),
    None,
)


class Page:
    """One tab."""

    def __init__(self, write, read):
        self._write, self._read = write, read
        self._buffer, self._number, self._session = b"", 0, None
        self.errors = []  # exceptions, and what the console calls errors
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        """Calls a method of the protocol and returns its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self._note(answer)

    def _next(self):
        while b"\0" not in self._buffer:
            part = os.read(self._read, 1 << 16)
            assert part, "Chromium has ended"
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def _note(self, event):
        parameters = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            self.errors.append(parameters["exceptionDetails"])
        elif event.get("method") == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.errors.append(parameters["entry"])
        elif event.get("method") == "Runtime.consoleAPICalled" and parameters["type"] == "error":
            self.errors.append(parameters["args"])

    def size(self, width, height, dark=False):
        """Sets the size of the window, and whether the system is dark."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
            mobile=False,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.call("Emulation.setEmulatedMedia", features=[scheme, still])

    def open(self, url):
        """Opens an address, from nothing even where it differs by its hash alone.

        Returns when its scripts have run: a navigation answers before the page is read.
        """
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)
        self.wait("location.href !== 'about:blank' && document.readyState === 'complete'")

    def run(self, expression):
        """The value of a JavaScript expression, awaited if it is a promise."""
        result = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait(self, expression, seconds=120):
        """Waits until a JavaScript expression is true."""
        deadline = time.monotonic() + seconds
        while not self.run(expression):
            assert time.monotonic() < deadline, f"never came true: {expression}"
            time.sleep(0.05)

    def key(self, key, code=None):
        """Presses a key."""
        text = {"text": key} if len(key) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=code or key, **text)

    def point(self, selector, number=0, at=(0.5, 0.5)):
        """Moves the pointer onto an element: to shares of its width and height.

        Returns:
          the pointer's place in the window.
        """
        element = f"document.querySelectorAll({selector!r})[{number}]"
        self.run(f"{element}.scrollIntoView({{block: 'center', inline: 'center'}})")
        box = self.run(f"{element}.getBoundingClientRect().toJSON()")
        place = {"x": box["x"] + at[0] * box["width"], "y": box["y"] + at[1] * box["height"]}
        self.call("Input.dispatchMouseEvent", type="mouseMoved", **place)
        return place

    def click(self, selector, number=0, at=(0.5, 0.5)):
        """Clicks on an element with the pointer, as `point` moves it."""
        place = self.point(selector, number, at)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **place)

    def picture(self, path):
        """Writes the whole page as PNG."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=False)
        with open(path, "wb") as stream:
            stream.write(base64.b64decode(shot["data"]))


@contextlib.contextmanager
def chromium():
    """Starts Chromium; yields a page.

    A shell gives it descriptors 3 and 4, because `preexec_fn` stops for ever while another thread
    imports TensorFlow: a fork waits for Python's locks.
    """
    profile = tempfile.mkdtemp()
    program = subprocess.Popen(
        ["sh", "-c", 'exec "$@" 3<&0 4>&1 </dev/null >/dev/null', "sh",
         PROGRAM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
         "--hide-scrollbars", "--disable-background-networking", "--disable-sync", "--no-first-run",
         f"--user-data-dir={profile}", "--remote-debugging-pipe"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield Page(program.stdin.fileno(), program.stdout.fileno())
    finally:
        program.terminate()
        program.wait(30)
        program.stdin.close()
        program.stdout.close()
        shutil.rmtree(profile, ignore_errors=True)
