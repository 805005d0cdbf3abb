"""A headless Chromium over its debugging pipe: enough to open a page, click, type and read what is visible."""

import json
import os
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

VISIBLE_TEXTS = """(() => {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), texts = [];
    while (walker.nextNode()) {
        const node = walker.currentNode;
        if (node.textContent.trim() && node.parentElement.checkVisibility({visibilityProperty: true, opacityProperty: true}))
            texts.push(node.textContent.trim());
    }
    return texts;
})()"""


class Browser:
    """One browser with one tab. Ends with the context."""

    def __init__(self, program: str, profile: Path, seconds: float = 60.0) -> None:
        self._deadline = seconds
        self._number = 0
        read_command, write_command = os.pipe()
        read_reply, write_reply = os.pipe()
        self._commands, self._replies = os.fdopen(write_command, "wb", buffering=0), read_reply
        self._buffer = b""

        def connect() -> None:  # the browser reads commands from 3 and writes replies to 4
            commands, replies = os.dup(read_command), os.dup(write_reply)
            os.dup2(commands, 3)
            os.dup2(replies, 4)

        flags = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe")
        self._process = subprocess.Popen(
            [program, *flags, f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False, preexec_fn=connect,
        )  # fmt: skip
        os.close(read_command)
        os.close(write_reply)
        targets = self.send("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        self._session: str | None = None
        self._session = self.send("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        self.send("Page.enable")

    def __enter__(self) -> "Browser":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._commands.close()
        os.close(self._replies)

    def send(self, method: str, **parameters: Any) -> Any:
        """One command and its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if getattr(self, "_session", None):
            message["sessionId"] = self._session
        self._commands.write(json.dumps(message).encode() + b"\0")
        while True:
            reply = self._receive()
            if reply.get("id") == self._number:
                if "error" in reply:
                    raise RuntimeError(f"{method}: {reply['error']}")
                return reply["result"]

    def evaluate(self, script: str) -> Any:
        """The value of a script in the page."""
        result = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(str(result["exceptionDetails"]))
        return result["result"].get("value")

    def go(self, address: str) -> None:
        """Open an address and wait until the page is there."""
        self.send("Page.navigate", url=address)
        self._wait_for_event("Page.loadEventFired")

    def act(self, script: str) -> None:
        """Run a script that leads to another page, and wait for that page."""
        self.evaluate(script)
        self._wait_for_event("Page.loadEventFired")

    def visible_texts(self) -> list[str]:
        """The stripped texts that a person can see, in order."""
        texts: list[str] = self.evaluate(VISIBLE_TEXTS)
        return texts

    def _wait_for_event(self, method: str) -> None:
        while self._receive().get("method") != method:
            pass

    def _receive(self) -> Any:
        end = time.monotonic() + self._deadline
        os.set_blocking(self._replies, False)
        while b"\0" not in self._buffer:
            try:
                chunk = os.read(self._replies, 1 << 16)
            except BlockingIOError:
                if time.monotonic() > end:
                    raise TimeoutError("the browser does not answer") from None
                time.sleep(0.005)
                continue
            if not chunk:
                raise RuntimeError("the browser has ended")
            self._buffer += chunk
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)
