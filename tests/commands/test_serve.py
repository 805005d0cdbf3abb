"""``agentic-gym serve search``: a real process, asked over a real socket, interrupted."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from agentic_gym.commands import serve

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")


def test_it_serves_until_interrupted(tmp_path):
    corpus = tmp_path / "c.jsonl"
    corpus.write_text('{"id": "1", "title": "Loa", "text": "Loa lies on the Ebb."}\n')
    code = "import sys; from agentic_gym.commands.serve import main; sys.exit(main(sys.argv[1:]))"
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "AGENTIC_GYM_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-c", code, "search", "--corpus", str(corpus), "--port", "0"]
    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True) as process:
        try:
            url = next(found[0] for line in process.stderr if (found := re.search(r"http://127\.0\.0\.1:\d+", line)))
            request = urllib.request.Request(url + "/retrieve", json.dumps({"queries": ["Ebb"], "topk": 1}).encode())
            with urllib.request.urlopen(request, timeout=10) as reply:
                assert json.load(reply) == {"result": [[{"id": "1", "contents": '"Loa"\nLoa lies on the Ebb.'}]]}
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=30)
    assert process.returncode in (0, -signal.SIGINT, 130)


def test_what_cannot_be_served_is_named():
    with pytest.raises(ValueError, match=r"cannot serve 'models'.*search"):
        serve.main(["models"])


def test_help_shows_the_flags(capsys):
    assert serve.main([]) == 0
    assert "search" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stop:
        serve.main(["search", "--help"])
    assert stop.value.code == 0
    assert "--corpus" in capsys.readouterr().out


def test_a_missing_corpus(tmp_path):
    with pytest.raises(FileNotFoundError, match="no corpus at"):
        serve.main(["search", "--corpus", str(tmp_path / "none.jsonl")])
