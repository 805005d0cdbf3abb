"""RemoteSandbox against a server that answers as SandboxFusion does, by running the code."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from agentic_gym.tools.python import PythonTool
from agentic_gym.tools.sandbox import RemoteSandbox


class Fusion(BaseHTTPRequestHandler):
    canned: bytes | None = None

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        assert (self.path, request["language"]) == ("/run_code", "python")
        body = self.canned or json.dumps(self.answer(request)).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def answer(self, request: dict[str, object]) -> dict[str, object]:
        command = [sys.executable, "-c", str(request["code"])]
        try:
            done = subprocess.run(
                command, input=str(request["stdin"]), capture_output=True, text=True,
                timeout=float(str(request["run_timeout"])), check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            run: dict[str, object] = {"status": "TimeLimitExceeded", "execution_time": 1.0, "return_code": None}
            return {"status": "Failed", "message": "", "run_result": {**run, "stdout": "", "stderr": ""}}
        status = "Success" if done.returncode == 0 else "Failed"
        run = {"status": "Finished", "execution_time": 0.1, "return_code": done.returncode}
        return {"status": status, "message": "", "run_result": {**run, "stdout": done.stdout, "stderr": done.stderr}}

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def remote() -> Iterator[RemoteSandbox]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Fusion)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with RemoteSandbox(f"http://127.0.0.1:{server.server_address[1]}/") as sandbox:
        yield sandbox
    server.shutdown()
    server.server_close()
    Fusion.canned = None


@pytest.mark.parametrize(
    ("code", "status", "stdout"),
    [
        ("print(1)\n2 + 3", "ok", "1\n5\n"),
        ("x = 'é'\n# last\nx", "ok", "'é'\n"),
        ("from __future__ import annotations\n1", "ok", "1\n"),
        ("1 / 0", "error", ""),
        ("raise SystemExit(4)", "error", ""),
        ("def f(:", "error", ""),
        ("import os\nos.abort()", "crashed", ""),
        ("print(input())", "ok", "given\n"),
        ("while True: pass", "timeout", ""),
    ],
)
def test_same_answers_as_here(remote: RemoteSandbox, code: str, status: str, stdout: str) -> None:
    result = remote.execute(code, 1.0 if status == "timeout" else 20.0, "given", echo=True)
    assert (result.status, result.stdout) == (status, stdout), result


def test_seed_and_order(remote: RemoteSandbox) -> None:
    code = "import random\nrandom.random()"
    assert remote.execute(code, echo=True, seed=5).stdout == remote.execute(code, echo=True, seed=5).stdout
    assert [r.stdout for r in remote.execute_many(["print(1)", "print(2)"])] == ["1\n", "2\n"]


def test_as_a_tool(remote: RemoteSandbox) -> None:
    assert PythonTool(sandbox=remote, timeout=20.0).run("6 * 7").text == "42"


@pytest.mark.parametrize(
    "canned",
    [b"not json", b"[]", b"{}", b'{"status": "SandboxError", "message": "full"}', b'{"status": "Success"}',
     b'{"status": "Success", "run_result": {"status": "Error"}}'],
)  # fmt: skip
def test_a_server_in_trouble_is_infrastructure(remote: RemoteSandbox, canned: bytes) -> None:
    Fusion.canned = canned
    assert remote.execute("1").status == "sandbox_error"
    tool = PythonTool(sandbox=remote).run("1")
    assert (tool.status, tool.text) == ("unavailable", "[the interpreter is unavailable]")


def test_nobody_there() -> None:
    with RemoteSandbox("http://127.0.0.1:9") as nobody:
        assert nobody.execute("1").status == "sandbox_error"


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="url must start with http"):
        RemoteSandbox("localhost:80")
    with pytest.raises(ValueError, match="workers must be at least 1"):
        RemoteSandbox("http://localhost", workers=0)
