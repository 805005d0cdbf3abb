"""Episodes, groups and the token trace."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_gym.actions import Grammar, ParsedAction
from agentic_gym.episodes import Episode, Group, Response, Span, Step, TokenTrace, ToolEvent
from agentic_gym.roles import Role

GRAMMAR = Grammar(tools=("python",))


def sampled(pieces: list[str], context: list[int] | None = None) -> Response:
    """A response whose tokens are the given pieces of text."""
    ends, text = [], ""
    for piece in pieces:
        text += piece
        ends.append(len(text))
    ids = [sum(map(ord, piece)) for piece in pieces]
    return Response(text, context or [], ids, [-0.5] * len(ids), [0.1] * len(ids), ends)


def kinds(trace: TokenTrace) -> list[tuple[int, str, int, int]]:
    return [tuple(span) for span in trace.spans]  # type: ignore[misc]


# TokenTrace.


def test_a_response_is_split_into_thought_call_and_rest() -> None:
    trace = TokenTrace()
    response = sampled(["let me ", "see", "<python>", "1+1", "</python>", "\n"], [7, 8, 9])
    trace.append_context(0, response.context_ids)
    trace.append_action(0, response, GRAMMAR.parse(response.text))
    assert kinds(trace) == [(-0, "prompt", 0, 3), (0, "thought", 3, 5), (0, "call", 5, 8), (0, "thought", 8, 9)]
    assert trace.loss_mask == [0, 0, 0, 1, 1, 1, 1, 1, 1]
    assert trace.logprobs == [0, 0, 0, *[-0.5] * 6]
    assert trace.entropies == [0, 0, 0, *[0.1] * 6]


def test_a_token_that_overlaps_the_block_belongs_to_it() -> None:
    response = sampled(["so<pyt", "hon>1</python>!", "!"])
    trace = TokenTrace()
    trace.append_action(0, response, GRAMMAR.parse(response.text))
    assert kinds(trace) == [(0, "call", 0, 2), (0, "thought", 2, 3)]


def test_answers_observations_and_malformed_actions() -> None:
    trace = TokenTrace()
    for step, pieces in enumerate((["<answer>", "1</answer>"], ["no ", "action"])):
        response = sampled(pieces, [1, 2])
        trace.append_context(step, response.context_ids)
        trace.append_action(step, response, GRAMMAR.parse(response.text))
    assert [(step, kind) for step, kind, *_ in kinds(trace)] == [
        (0, "prompt"), (0, "answer"), (1, "observation"), (1, "thought"),
    ]  # fmt: skip


def test_a_token_without_characters_is_kept() -> None:
    response = Response("<answer>1</answer>", [], [5, 6, 7], [-1.0] * 3, [], [0, 18, 18])
    trace = TokenTrace()
    trace.append_action(0, response, GRAMMAR.parse(response.text))
    assert trace.token_ids == [5, 6, 7]
    assert kinds(trace) == [(0, "thought", 0, 1), (0, "answer", 1, 2), (0, "thought", 2, 3)]


@pytest.mark.parametrize("field", ["logprobs", "char_ends", "entropies"])
def test_unequal_lists_are_refused(field: str) -> None:
    values = {**sampled(["a", "b"]).__dict__, field: [1]}
    with pytest.raises(ValueError, match="must have one entry a token: 2 ids"):
        TokenTrace().append_action(0, Response(**values), None)


@given(st.lists(st.lists(st.sampled_from(["<python>", "</python>", "x", "<answer>1</answer>", "", "é"]), max_size=8)))
def test_spans_tile_the_trace(turns: list[list[str]]) -> None:
    trace, fed = TokenTrace(), []
    for step, pieces in enumerate(turns):
        response = sampled(pieces, [step, step])
        trace.append_context(step, response.context_ids)
        trace.append_action(step, response, GRAMMAR.parse(response.text))
        fed += [*response.context_ids, *response.token_ids]
    assert trace.token_ids == fed
    assert len(trace) == len(trace.loss_mask) == len(trace.logprobs) == len(trace.entropies)
    assert [span.start for span in trace.spans] == [0, *[span.end for span in trace.spans]][: len(trace.spans)]
    assert not fed or trace.spans[-1].end == len(fed)
    for span in trace.spans:
        sampled_span = span.kind in ("thought", "call", "answer")
        assert set(trace.loss_mask[span.start : span.end]) == {int(sampled_span)}


def test_a_copy_grows_alone() -> None:
    trace = TokenTrace()
    trace.append_context(0, [1, 2])
    branch = trace.copy()
    branch.append_context(1, [3])
    assert (len(trace), len(branch)) == (2, 3)
    assert len(trace.spans) == 1


# Episode.


def call(status: str) -> Step:
    return Step("<python>1</python>", "", kind="tool", tool=ToolEvent("python", "1", status))  # type: ignore[arg-type]


def test_only_executed_calls_count() -> None:
    episode = Episode("t", "", "", steps=[call(s) for s in ("ok", "raised", "refused", "malformed", "unavailable")])
    assert episode.tool_calls == 2


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([call("ok"), Step("", "", kind="answer")], True),
        ([call("raised"), Step("", "", kind="answer")], True),
        ([call("refused"), Step("", "", kind="answer")], False),
        ([Step("", "", kind="malformed"), Step("", "", kind="answer")], False),
        ([call("ok")], False),  # out of turns without an answer
        ([Step("look", "", kind="command")], True),
        ([Step("hi", "")], True),  # a foreign environment has no kinds
    ],
)
def test_well_formed(steps: list[Step], expected: bool) -> None:
    assert Episode("t", "", "", steps=steps).well_formed is expected


def test_record_takes_everything_from_info() -> None:
    episode = Episode("t", "", "q")
    response = sampled(["<python>1</python>"], [1])
    event = ToolEvent("python", "1", "ok", 0.5)
    action = GRAMMAR.parse(response.text)
    episode.record(response, "r", 0.25, False, False, {"action": action, "tool": event, "role": Role.EXPLORATION})
    assert episode.steps == [Step(response.text, "r", 0.25, "tool", event, Role.EXPLORATION)]
    assert not episode.done
    assert episode.last_observation == "r"
    last = {"success": True, "outcome": "solved", "score": 0.5, "roles": [Role.DECISIVE, None]}
    episode.record(Response("<answer>1</answer>"), "Right.", 1.0, True, False, last)
    assert (episode.done, episode.success, episode.outcome, episode.score, episode.reward) == (
        True, True, "solved", 0.5, 1.25,
    )  # fmt: skip
    assert [step.role for step in episode.steps] == [Role.DECISIVE, None]
    assert len(episode.trace) == 2  # the second response had no tokens


def test_an_end_without_outcome_is_judged_by_success_and_never_by_reward() -> None:
    episode = Episode("t", "", "")
    episode.record(Response("x"), "", 5.0, True, False, {})
    assert (episode.outcome, episode.success, episode.score) == ("failed", False, 0.0)


def test_mask() -> None:
    episode = Episode("t", "", "", success=True, score=1.0)
    episode.mask("the tool died")
    assert (episode.masked, episode.done, episode.success, episode.score) == (True, True, False, 0.0)
    assert episode.error == "the tool died"
    assert Group("t", [episode, Episode("t", "", "")]).trainable == [Episode("t", "", "")]


texts = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=12)
steps = st.builds(
    Step, texts, texts, st.floats(-2, 2), st.sampled_from(["tool", "answer", ""]),
    st.none() | st.builds(ToolEvent, texts, texts, st.sampled_from(["ok", "refused"]), st.floats(0, 9)),
    st.none() | st.sampled_from(Role),
)  # fmt: skip
episodes = st.builds(
    Episode, task_id=texts, instructions=texts, observation=texts, level=st.none() | st.integers() | texts,
    seed=st.integers(0, 2**63), tool_free=st.booleans(), base_instructions=st.none() | texts, steps=st.lists(steps, max_size=4),
    terminated=st.booleans(), outcome=st.none() | st.just("solved"), score=st.floats(0, 1), parent=st.none() | st.integers(0, 9),
)  # fmt: skip


@given(episodes, st.lists(st.integers(0, 9), max_size=4))
def test_an_episode_goes_through_json_and_back(episode: Episode, tokens: list[int]) -> None:
    episode.trace.append_context(0, tokens)
    episode.info = {"not": "written"}
    again = Episode.from_dict(json.loads(json.dumps(episode.to_dict())))
    episode.info = {}
    assert again == episode
    assert all(isinstance(span, Span) for span in again.trace.spans)


def test_from_dict_refuses_foreign_data() -> None:
    with pytest.raises((KeyError, TypeError)):
        Episode.from_dict({"task_id": "t"})
    with pytest.raises(TypeError):
        Episode.from_dict({**Episode("t", "", "").to_dict(), "unknown": 1})


def test_groups_of_neighbours() -> None:
    rows = [Episode(t, "", "") for t in "aabba"]
    assert [(group.task_id, len(group)) for group in Group.by_task(rows)] == [("a", 2), ("b", 2), ("a", 1)]
    assert [episode for group in Group.by_task(rows) for episode in group] == rows


def test_a_response_without_an_action_is_all_thought() -> None:
    trace = TokenTrace()
    trace.append_action(0, sampled(["a", "b"]), None)
    trace.append_action(1, sampled(["c"]), ParsedAction("malformed"))
    assert kinds(trace) == [(0, "thought", 0, 2), (1, "thought", 2, 3)]
