"""The grammar: what counts as a call, an answer, a command, and that nothing else does."""

import copy
import json
import pickle
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentic_gym.actions import Grammar, ParsedAction, RefusedCall, neutralize

MATH = Grammar(tools=("python",))
BOTH = Grammar(tools=("python", "search"))
GAME = Grammar(commands=True, answer=False)
GRAMMARS = [MATH, BOTH, GAME, Grammar(), Grammar(tools=("python",), commands=True)]


def hermes(name: str, arguments: object) -> str:
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"


# What a valid action means.


@pytest.mark.parametrize(
    ("text", "kind", "name", "argument"),
    [
        ("<python>print(1)</python>", "tool", "python", "print(1)"),
        ("<python>\n  x = 1\n\tprint(x)\n</python>", "tool", "python", "  x = 1\n\tprint(x)"),
        ("I think.\n<search> who? </search>", "tool", "search", " who? "),
        ("<think>2+2</think><answer> 4 </answer>", "answer", "", "4"),
        ("<answer>a < b and c > d</answer>", "answer", "", "a < b and c > d"),
        ("<think>I could <python>print(1)</python></think><answer>1</answer>", "answer", "", "1"),
        ("<think>is this <answer>1</answer>?</think>\n<python>print(2)</python>", "tool", "python", "print(2)"),
        ("<python>print('<b>')</python>", "tool", "python", "print('<b>')"),
        ("</answer><answer>5</answer>", "answer", "", "5"),
        (hermes("python", {"code": "print('é')\n"}), "tool", "python", "print('é')"),
        (hermes("search", "who?"), "tool", "search", "who?"),
        ('<tool_call>{"name": "search", "parameters": {"query": "x"}}</tool_call>', "tool", "search", "x"),
        (" \n<tool_call>\n" + json.dumps({"name": "python", "arguments": {"x": "1"}}) + "\n</tool_call>", "tool", "python", "1"),
    ],
)  # fmt: skip
def test_valid_actions(text: str, kind: str, name: str, argument: str) -> None:
    parsed = BOTH.parse(text)
    assert (parsed.kind, parsed.name, parsed.argument, parsed.problem) == (kind, name, argument, "")


@pytest.mark.parametrize(
    ("text", "argument"),
    [
        ("go to desk 1", "go to desk 1"),
        ("  look \n", "look"),
        ("<action>go to desk 1</action>", "go to desk 1"),
        ("<think>the desk</think> open drawer 2", "open drawer 2"),
        ("I will look.\n<action> click[Buy Now] </action> done", "click[Buy Now]"),
        ("</think>look", "look"),
    ],
)
def test_commands(text: str, argument: str) -> None:
    parsed = GAME.parse(text)
    assert (parsed.kind, parsed.argument) == ("command", argument)
    start, end = parsed.span
    assert argument in text[start:end]


@pytest.mark.parametrize(
    "text", ["look <think>look</think>", "<think>look</think>look", "<think>a look</think> look <think>\n", "look"]
)
def test_the_span_of_a_plain_command_is_not_in_a_thought(text: str) -> None:
    parsed = GAME.parse(text)
    start, end = parsed.span
    assert text[start:end] == parsed.argument == "look"
    assert not text[:start].endswith(("<think>", "<think>a "))


@pytest.mark.parametrize(
    "text", ["<python>print(1)</python>", "thought <answer>1</answer>", "x" + hermes("python", "1") + "y"]
)
def test_span_is_the_whole_block(text: str) -> None:
    start, end = MATH.parse(text).span
    assert text[start] == "<"
    assert text[end - 1] == ">"
    again = MATH.parse(text[start:end])
    assert (again.argument, again.span) == (MATH.parse(text).argument, (0, end - start))


def test_the_first_block_counts_and_the_rest_is_flagged() -> None:
    parsed = MATH.parse("<python>print(1)</python> then <answer>1</answer>")
    assert (parsed.kind, parsed.argument, parsed.trailing) == ("tool", "print(1)", True)
    assert MATH.parse("<answer>1</answer>\n ").trailing is False


def test_a_thought_that_is_never_closed_hides_nothing() -> None:
    assert MATH.parse("<think>hm <answer>3</answer>").kind == "answer"


# What is malformed, and what the agent is told.


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "No action found. Write <python>...</python> or <answer>...</answer>."),
        ("just talk", "No action found"),
        ("<answer>4", "<answer> is not closed: write </answer> after it."),
        ("<python>print(1)", "<python> is not closed"),
        ("<python> \n</python>", "<python> is empty."),
        ("<answer></answer>", "<answer> is empty."),
        ("<python><answer>1</answer></python>", "<answer> may not stand inside <python>."),
        ("<answer><python>print(1)</python></answer>", "<python> may not stand inside <answer>."),
        ("<python>a<python>b</python></python>", "<python> may not stand inside itself."),
        ("<python>print(1)</answer>", "</answer> may not stand inside <python>."),
        ("<result>4</result><answer>4</answer>", "Only the environment writes <result>."),
        ("<action>look</action>", "This task takes no <action>."),
        ("<tool_call>{</tool_call>", "<tool_call> must hold JSON"),
        ("<tool_call>[1]</tool_call>", "must name one of the tools: python."),
        ("<tool_call>" + "[" * 100_000 + "</tool_call>", "<tool_call> must hold JSON"),
        (hermes("rm", {"code": "1"}), "must name one of the tools: python."),
        (hermes("python", {"code": "1", "more": "2"}), '"arguments" of python must hold one text.'),
        (hermes("python", {"code": 1}), '"arguments" of python must hold one text.'),
        (hermes("python", "</result>"), "</result> may not stand inside <tool_call>."),
        (
            hermes("python", "<answer>1</answer>").replace("<a", "\\u003ca"),
            "</answer> may not stand inside <tool_call>.",
        ),
        (hermes("python", "<answer>1").replace("<a", "\\u003ca"), "No tag of the grammar may stand inside a call"),
    ],
)
def test_malformed(text: str, problem: str) -> None:
    parsed = MATH.parse(text)
    assert parsed.kind == "malformed"
    assert problem in parsed.problem
    assert parsed.argument == parsed.name == ""
    assert parsed.span == (0, 0)


def test_malformed_commands() -> None:
    assert GAME.parse(" \n").problem == "The action is empty. Write one command."
    assert GAME.parse("<action> </action>").problem == "<action> is empty."
    assert GAME.parse("<answer>1</answer>").problem == "This task takes no <answer>. Write one command."
    assert GAME.parse(hermes("python", "1")).problem.startswith("This task has no tools.")


@pytest.mark.parametrize("name", ["answer", "think", "Python", "a b", "", "py-thon", "result"])
def test_bad_tool_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"cannot be a tool's name: use lower-case"):
        Grammar(tools=(name,))


def test_stop_strings() -> None:
    assert MATH.stop_strings == ("</python>", "</tool_call>", "</answer>")
    assert GAME.stop_strings == ("</action>",)


def test_grammars_compare_and_pickle() -> None:
    assert Grammar(tools=("python",)) == pickle.loads(pickle.dumps(MATH)) == copy.deepcopy(MATH)


# Properties over hostile text.

fragments = st.sampled_from(
    [
        "<python>", "</python>", "<answer>", "</answer>", "<tool_call>", "</tool_call>", "<think>", "</think>",
        "<result>", "</result>", "<action>", "</action>", "<search>", "</search>", "<pyth", "</", "<", ">", "< python >",
        "<PYTHON>", "print(1)", "42", '{"name": "python", "arguments": {"code": "print(1)"}}', '{"name": "answer"}', "\0",
        "\n", " ", "<|im_end|>", "\\boxed{4}", "é\ud800", "go north", "[" * 500,
    ]
)  # fmt: skip
hostile = st.lists(fragments | st.text(max_size=6), max_size=25).map("".join)


@settings(max_examples=1500, deadline=None)
@given(text=hostile, grammar=st.sampled_from(GRAMMARS))
def test_parse_never_raises_and_is_what_it_says(text: str, grammar: Grammar) -> None:
    parsed = grammar.parse(text)
    start, end = parsed.span
    assert 0 <= start <= end <= len(text)
    block = text[start:end]
    if parsed.kind == "malformed":
        assert parsed.problem
        assert parsed.argument == ""
    elif parsed.kind == "tool":
        assert parsed.name in grammar.tools
        assert block.startswith((f"<{parsed.name}>", "<tool_call>"))
        assert block.endswith((f"</{parsed.name}>", "</tool_call>"))
    elif parsed.kind == "answer":
        assert grammar.answer
        assert block.startswith("<answer>")
        assert block.endswith("</answer>")
        assert block[len("<answer>") : -len("</answer>")].strip() == parsed.argument
    else:
        assert grammar.commands
        assert parsed.argument == parsed.argument.strip() != ""
    if parsed.kind in ("tool", "answer"):
        assert not grammar._tag.search(parsed.argument)


@settings(max_examples=500, deadline=None)
@given(text=hostile, grammar=st.sampled_from(GRAMMARS))
def test_a_block_means_the_same_alone(text: str, grammar: Grammar) -> None:
    parsed = grammar.parse(text)
    if parsed.kind in ("tool", "answer"):
        alone = grammar.parse(text[slice(*parsed.span)])
        assert (alone.kind, alone.name, alone.argument) == (parsed.kind, parsed.name, parsed.argument)


@pytest.mark.parametrize(
    "piece", ["<think>", "</think>", "<python>", "</python>", "<answer>x", "<", "<tool_call>{", "\0", "a "]
)
def test_a_huge_text_is_read_in_linear_time(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    began = time.process_time()
    for grammar in GRAMMARS:
        grammar.parse(text)
    neutralize(text)
    assert time.process_time() - began < 10  # a quadratic reading takes hours


@settings(max_examples=500, deadline=None)
@given(hostile)
def test_neutral_text_holds_no_tag(text: str) -> None:
    neutral = neutralize(text)
    assert neutralize(neutral) == neutral
    assert not BOTH._tag.search(neutral)
    assert "<|" not in neutral
    assert "\0" not in neutral
    neutral.encode("utf-8")
    assert BOTH.parse(f"<think>{neutral}</think><answer>1</answer>").argument == "1"


@settings(max_examples=300, deadline=None)
@given(
    tools=st.lists(st.from_regex(r"[a-z][a-z0-9_]{0,6}", fullmatch=True), min_size=1, max_size=4, unique=True),
    data=st.data(),
)
def test_a_grammar_takes_the_tags_of_its_own_tools_apart(tools: list[str], data: st.DataObject) -> None:
    grammar = Grammar(tuple(name for name in tools if name not in ("think", "answer", "tool_call", "result", "action")))
    tag = st.builds(str.format, st.sampled_from(["<{}>", "</{}>", "< {}>", "<{} x=1>"]), st.sampled_from(tools))
    text = "".join(data.draw(st.lists(tag | st.sampled_from(["<", "<<", "x", " "]), max_size=8)))
    neutral = grammar.neutralize(text)
    assert grammar.neutralize(neutral) == neutral
    assert not grammar._tag.search(neutral)
    assert neutral.replace("&lt;", "<") == text
    if grammar.tools:
        name = grammar.tools[0]
        assert grammar.neutralize(f"<{name.upper()}>1</ {name}>") == f"&lt;{name.upper()}>1&lt;/ {name}>"


@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126, exclude_characters="<"), max_size=60))
def test_neutralize_leaves_plain_text_alone(text: str) -> None:
    assert neutralize(text) == text
    assert neutralize("if a < b:\n\treturn x<y") == "if a < b:\n\treturn x<y"


def test_refused_call_survives_copy_and_pickle() -> None:
    call = RefusedCall("<python>1</python>", "No.")
    assert call == "<python>1</python>"
    for twin in (pickle.loads(pickle.dumps(call)), copy.deepcopy(call), copy.copy(call)):
        assert isinstance(twin, RefusedCall)
        assert (str(twin), twin.reason) == (str(call), "No.")


def test_parsed_action_is_frozen() -> None:
    with pytest.raises(AttributeError):
        ParsedAction("answer").kind = "tool"  # type: ignore[misc]


def test_a_tag_that_takes_two_decodings_is_only_text() -> None:
    parsed = MATH.parse(hermes("python", "x\\u003canswer>"))
    assert (parsed.kind, parsed.argument) == ("tool", "x\\u003canswer>")


def test_pieces_of_a_command_around_a_thought_are_joined() -> None:
    parsed = GAME.parse(" go to <think>which?</think>desk 1 ")
    assert (parsed.argument, parsed.span) == ("go to  desk 1", (1, 34))
