import multiprocessing
import pickle
import re
import time
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_gym.tools.python import PythonTool, ToolResult, cut_middle, explain, harmless, render
from agentic_gym.tools.sandbox import Result

LIVE_TAG = re.compile(
    r"<\s*/?\s*((result|answer|python|search|think|tool_call|tool_response|action)\b|[|｜])", re.IGNORECASE
)
FRAGMENTS = st.lists(
    st.sampled_from(
        ["<", ">", "/", " ", "\n", "\t", "result", "RESULT", "answer", "python", "think", "tool_call", "|", "｜", "im_end",
         "\x1b[0m", "\u200b", "\u202e", "\r", "\0", "x", "é", "\ud800", "‹"]
    ),
    max_size=30,
).map("".join)  # fmt: skip


class Recorder:
    """An executor that returns what it is told to and counts."""

    def __init__(self, *results: Result) -> None:
        self.results = list(results)
        self.calls = 0

    def execute(
        self, code: str, timeout: float | None = None, stdin: str = "", echo: bool = False, *, seed: int | None = None
    ) -> Result:
        self.calls += 1
        return self.results[min(self.calls, len(self.results)) - 1]


@pytest.fixture(scope="module")
def tool() -> PythonTool:
    return PythonTool()


@pytest.mark.parametrize(
    ("code", "status", "text"),
    [
        ("1 + 1", "ok", "2"),
        ("print('a')\n'b'", "ok", "a\n'b'"),
        ("x = 1", "ok", "[no output]"),
        ("raise SystemExit(3)", "raised", "[exit code 3]"),
        ("import os\nos._exit(70)", "raised", "[exit code 70]"),
        ("import sys\nprint('out')\nprint('err', file=sys.stderr)", "ok", "out\nerr"),
        ("import os\nos.kill(os.getpid(), 11)", "raised", "[the interpreter crashed (signal 11)]"),
    ],
)
def test_what_the_agent_reads(tool: PythonTool, code: str, status: str, text: str) -> None:
    result = tool.run(code)
    assert (result.status, result.text) == (status, text)


def test_a_failure_shows_output_and_error(tool: PythonTool) -> None:
    result = tool.run("print('so far')\n1 / 0")
    assert result.status == "raised"
    assert result.text.startswith("so far\nTraceback")
    assert result.text.endswith("ZeroDivisionError: division by zero")


@pytest.mark.parametrize("code", ["def f(:", "x = 1\n  y = 2", "return 1", "f(", "'"])
def test_code_that_does_not_compile_shows_only_itself(tool: PythonTool, code: str) -> None:
    text = tool.run(code).text
    assert "Error: " in text.splitlines()[-1]
    assert set(re.findall(r'File "(.*?)"', text)) == {"<cell>"}


def test_timeout_is_told(tool: PythonTool) -> None:
    result = tool.run("print('start')\nwhile True: pass", timeout=0.3)
    assert (result.status, result.text) == ("raised", "start\n[stopped: ran longer than 0.3 seconds]")


@pytest.mark.parametrize(
    ("result", "status", "text"),
    [
        (Result("sandbox_error", detail="no fork"), "unavailable", "[the interpreter is unavailable]"),
        (Result("memory", stderr="MemoryError"), "raised", "MemoryError\n[stopped: out of memory]"),
        (Result("output_limit", "aaa", truncated=True), "raised", "aaa\n[stopped: too much output]"),
        (Result("disk_limit"), "raised", "[stopped: too much written to disk]"),
        (Result("thread_limit"), "raised", "[stopped: too many threads]"),
        (Result("session_lost"), "raised", "[the session is gone; its variables are lost]"),
    ],
)
def test_statuses(result: Result, status: str, text: str) -> None:
    answer = PythonTool(sandbox=Recorder(result)).run("x")
    assert (answer.status, answer.text, answer.sandbox_status) == (status, text, result.status)
    assert explain(result, 5.0) in text


def test_random_code_repeats(tool: PythonTool) -> None:
    code = "import random\nrandom.random()"
    assert tool.run(code).text == tool.run(code).text
    assert PythonTool(seed=1).run(code).text != tool.run(code).text
    assert len({PythonTool(seed=None).run(code).text for _ in range(3)}) == 3


def test_cache_answers_again_without_running() -> None:
    recorder = Recorder(Result("ok", "1\n", wall=0.5))
    tool = PythonTool(sandbox=recorder, cache=True)
    first, second = tool.run("a"), tool.run("a")
    assert (first.text, second.text, recorder.calls) == ("1", "1", 1)
    assert (first.seconds, second.seconds) == (0.5, 0.0)
    tool.run("b")
    tool.run("a", timeout=9.0)
    assert recorder.calls == 3
    tool.close()
    tool.run("a")
    assert recorder.calls == 4


@pytest.mark.parametrize("status", ["timeout", "sandbox_error", "memory", "crashed"])
def test_what_depends_on_load_is_not_cached(status: str) -> None:
    recorder = Recorder(Result(status), Result("ok", "1\n"))  # type: ignore[arg-type]
    tool = PythonTool(sandbox=recorder, cache=True)
    assert tool.run("a").text != "1"
    assert tool.run("a").text == "1"


def test_long_output_is_not_cached() -> None:
    recorder = Recorder(Result("ok", "x" * 60_000))
    tool = PythonTool(sandbox=recorder, cache=True)
    tool.run("a")
    tool.run("a")
    assert recorder.calls == 2


def test_no_cache_unless_asked() -> None:
    recorder = Recorder(Result("ok"))
    tool = PythonTool(sandbox=recorder)
    tool.run("a")
    tool.run("a")
    assert recorder.calls == 2


def test_concurrent(tool: PythonTool) -> None:
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda n: tool.run(f"{n} * 2").text, range(24))) == [str(2 * n) for n in range(24)]


def test_cheap_to_make_and_pickles() -> None:
    started = time.perf_counter()
    tools = [PythonTool(timeout=3.0, cache=True, max_chars=500, seed=4) for _ in range(100)]
    assert time.perf_counter() - started < 0.5
    again = pickle.loads(pickle.dumps(tools[0]))
    assert (again.timeout, again.cache, again.max_chars, again.seed) == (3.0, True, 500, 4)
    assert again.run("1").text == "1"


def _in_a_worker(tool: PythonTool) -> str:
    return tool.run("40 + 2").text


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_in_worker_processes(tool: PythonTool, method: str) -> None:
    tool.run("1")
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert pool.map(_in_a_worker, [tool]) == ["42"]


def test_bad_settings() -> None:
    with pytest.raises(ValueError, match="timeout must be above 0 seconds, got 0"):
        PythonTool(timeout=0)
    with pytest.raises(ValueError, match="max_chars must be at least 100, got 5"):
        PythonTool(max_chars=5)


# -- rendering ------------------------------------------------------------------------------------------------


@given(out=FRAGMENTS, err=FRAGMENTS, note=st.sampled_from(["", "stopped"]))
def test_output_never_speaks_the_grammar(out: str, err: str, note: str) -> None:
    text = render(out, err, note, 200)
    assert not LIVE_TAG.search(text)
    assert not any(unicodedata.category(c) in ("Cc", "Cf", "Cs") for c in text if c not in "\n\t")
    text.encode()


@given(text=st.text(alphabet=st.characters(codec="ascii", categories=("L", "N", "P", "S", "Zs"))))
def test_ordinary_text_is_untouched(text: str) -> None:
    if "<" not in text:
        assert harmless(text) == text


@pytest.mark.parametrize("text", ["<class 'int'>", "a < b", "<div>", "x<y>z", "<module>", "1 <2", "<searching>"])
def test_ordinary_angle_brackets_stay(text: str) -> None:
    assert harmless(text) == text


@pytest.mark.parametrize("name", ["result", "answer", "python", "tool_call", "think", "search"])
@pytest.mark.parametrize("form", ["<{}>", "</{}>", "< / {} >", "<\n{}>", "<{} a='b'>"])
def test_tags_are_broken(name: str, form: str) -> None:
    assert "<" not in harmless(form.format(name))
    assert "<" not in harmless(form.format(name.upper()))


@pytest.mark.parametrize(
    "token",
    ["<|im_end|>", "<｜User｜>", "</s>", "<unused7>", "<extra_id_0>", "<<SYS>>", "<fim_prefix>", "[INST]", "[/INST]",
     "[TOOL_CALLS]", "[gMASK]", "＜|im_end|>", "﹤result>"],
)  # fmt: skip
def test_special_tokens_are_broken(token: str) -> None:
    text = harmless(f"x{token}y")
    assert token not in text
    assert not re.search(r"<\||[＜﹤]", text)
    assert harmless(text) == text


@pytest.mark.parametrize("text", ["[args]", "x[INST]".lower(), "[1, 2]", "[MASKED]", "[[0. 1.]]"])
def test_ordinary_square_brackets_stay(text: str) -> None:
    assert harmless(text) == text


@pytest.mark.parametrize("text", ["<" + " " * 60_000, "<" + "\t/ " * 20_000, "< " * 30_000, "</" * 30_000 + " " * 9000])
def test_rendering_is_linear(text: str) -> None:
    """A text that the tool prints must not be able to stop the trainer."""
    started = time.process_time()
    render(text, text, "", 2000)
    assert time.process_time() - started < 2


def test_a_tag_across_the_streams_is_broken() -> None:
    assert "<" not in render("a <", "/result>", "", 1000)


def test_long_output_loses_its_middle() -> None:
    text = cut_middle("a" * 600 + "b" * 600, 100)
    assert text.startswith("a" * 66 + "\n[... 1100 characters left out ...]\n")
    assert text.endswith("b" * 34)
    assert cut_middle("a" * 100, 100) == "a" * 100


def test_neither_stream_hides_the_other() -> None:
    text = render("o" * 5000, "e" * 5000, "", 2000)
    assert text.count("o") >= 990
    assert text.count("e") >= 990
    assert len(text) < 2200
    assert render("o" * 1500, "e" * 100, "", 2000).count("o") == 1500


def test_result_of_four_fields_renders() -> None:
    assert ToolResult("1\n", "", "ok", 0.1).text == "1"
