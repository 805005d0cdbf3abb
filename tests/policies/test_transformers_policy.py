"""TransformersPolicy against the plain forward pass and ``generate`` of the model itself."""

from __future__ import annotations

import copy
import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from agentic_gym.benchmarks.experiments import tiny
from agentic_gym.episodes import Episode, Step
from agentic_gym.policies import transformers as module
from agentic_gym.policies.base import Sampling
from agentic_gym.policies.formats import InlineFormat
from agentic_gym.policies.sampling import Draw
from agentic_gym.policies.token_text import decode_with_ends
from agentic_gym.policies.transformers import TransformersPolicy
from tests.policies.tiny_models import FAMILIES, begin, build, byte_tokenizer, metaspace_tokenizer, record

SHORT = Sampling(max_tokens=9)
PROMPTS = ["12+34=?", "7", "12+34=? and then some more 56*78=?", "12+34=?", "Let me run it. 5"]
RESULTS = ["<result>46</result>", "<result></result>", "<result>123456 and more</result>"]


@pytest.fixture(scope="module")
def tokenizer():
    torch.set_num_threads(1)
    return tiny.build_tokenizer()


def policy_of(model, tokenizer, **kwargs) -> TransformersPolicy:
    return TransformersPolicy(model, tokenizer, format=InlineFormat(tokenizer, "Q: {observation}A: "), **kwargs)


@pytest.fixture
def policy(tokenizer) -> TransformersPolicy:
    return policy_of(build("qwen2", len(tokenizer)), tokenizer)


def play(policy: TransformersPolicy, episodes: list[Episode], turns: int, sampling: Sampling = SHORT) -> None:
    """Play all ``episodes`` side by side; episode i stops after turn ``turns - i % 2``."""
    for turn in range(turns):
        active = [(i, e) for i, e in enumerate(episodes) if turn < turns - i % 2]
        responses = policy.respond([e for _, e in active], sampling)
        for (i, episode), response in zip(active, responses, strict=True):
            record(episode, response, RESULTS[(i + turn) % len(RESULTS)])


def starts() -> list[Episode]:
    return [begin(prompt, seed) for seed, prompt in enumerate(PROMPTS)]


def plain_logprobs(model, episode: Episode, temperature: float = 1.0) -> np.ndarray:
    """log-probability of every token but the first under one forward pass of the model itself."""
    ids = torch.tensor([episode.trace.token_ids])
    with torch.no_grad():
        logprobs = (model(input_ids=ids, use_cache=False).logits[0, :-1].float() / temperature).log_softmax(-1)
    return logprobs.gather(1, ids[0, 1:, None])[:, 0].numpy()


def assert_true_logprobs(model, episode: Episode, temperature: float = 1.0) -> None:
    written = np.flatnonzero(episode.trace.loss_mask)
    assert len(written)
    recorded = np.array(episode.trace.logprobs)[written]
    np.testing.assert_allclose(recorded, plain_logprobs(model, episode, temperature)[written - 1], atol=2e-4)


class Fed:
    """Every forward pass: (B, T) and positions."""

    def __init__(self, policy: TransformersPolicy) -> None:
        policy.lm.verify()
        self.calls: list[tuple[torch.Tensor, torch.Tensor]] = []
        hidden = policy.lm.hidden

        def spy(token_ids, positions=None, cache=None):
            self.calls.append((token_ids.clone(), positions.clone()))
            return hidden(token_ids, positions, cache)

        policy.lm.hidden = spy  # type: ignore[method-assign]

    @property
    def shapes(self) -> list[tuple[int, int]]:
        return [tuple(ids.shape) for ids, _ in self.calls]


# The model that is sampled is the model that was given.


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("family", FAMILIES)
def test_recorded_logprobs_are_those_of_one_plain_forward(tokenizer, family, attention):
    model = build(family, len(tokenizer), attention=attention)
    episodes = starts()
    play(policy_of(model, tokenizer), episodes, 3)
    for episode in episodes:
        assert_true_logprobs(model, episode)


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("Bloom", {"hidden_size": 32, "n_layer": 2, "n_head": 4, "initializer_range": 0.3}),
        ("Mamba", {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 4, "initializer_range": 0.3}),
    ],
)
def test_a_model_that_cannot_be_read_in_parts_is_refused(tokenizer, name, sizes):
    policy = policy_of(build(name, len(tokenizer), attention="eager", **sizes), tokenizer)
    with pytest.raises(ValueError, match=f"{name}ForCausalLM cannot be sampled by TransformersPolicy"):
        policy.respond(starts(), SHORT)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 1.7])
def test_logprobs_are_at_the_sampling_temperature(policy, temperature):
    episodes = starts()
    play(policy, episodes, 2, replace(SHORT, temperature=temperature))
    for episode in episodes:
        assert_true_logprobs(policy.model, episode, temperature)


def test_entropies_are_recorded_when_asked_for(policy):
    [response] = policy.respond(starts()[:1], replace(SHORT, entropies=True))
    ids = torch.tensor([[*response.context_ids, *response.token_ids]])
    with torch.no_grad():
        logprobs = policy.model(input_ids=ids).logits[0].log_softmax(-1)
    expected = -(logprobs.exp() * logprobs).sum(-1)[len(response.context_ids) - 1 : -1]
    np.testing.assert_allclose(response.entropies, expected, atol=1e-4)
    assert policy.respond(starts()[:1], SHORT)[0].entropies == []


@pytest.mark.parametrize("family", ["qwen2", "gemma2", "gpt2"])
def test_greedy_equals_generate(tokenizer, family):
    model = build(family, len(tokenizer))
    policy = policy_of(model, tokenizer)
    stops = [tokenizer.eos_token_id, *tokenizer.convert_tokens_to_ids(["</python>", "</answer>"])]
    for response in policy.respond(starts(), Sampling(temperature=0.0, max_tokens=20)):
        prompt = torch.tensor([response.context_ids])
        expected = model.generate(
            input_ids=prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=20,
            eos_token_id=stops, pad_token_id=0,
        )  # fmt: skip
        assert response.token_ids == expected[0, prompt.shape[1] :].tolist()


# Neighbours, caches and time.


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.permutations(range(len(PROMPTS))), st.sets(st.integers(0, len(PROMPTS) - 1), min_size=1))
def test_neighbours_do_not_matter(policy, order, chosen):
    alone, together = starts(), starts()
    for episode in alone:
        play(policy, [episode], 2)
    episodes = [together[i] for i in order if i in chosen]
    for _ in range(2):
        for episode, response in zip(episodes, policy.respond(episodes, SHORT)):
            record(episode, response, alone[together.index(episode)].steps[len(episode.steps)].observation)
    for i in chosen:
        assert together[i].trace.token_ids == alone[i].trace.token_ids
        np.testing.assert_allclose(together[i].trace.logprobs, alone[i].trace.logprobs, atol=1e-4)


def test_a_batch_may_mix_new_and_running_episodes(policy):
    early, late = starts()[:3], starts()[3:]
    play(policy, early, 1)
    for episode in early:  # those that play() left out
        if not episode.steps:
            record(episode, policy.respond([episode], SHORT)[0], RESULTS[0])
    play(policy, [*early[:2], *late, early[2]], 2)
    for episode in [*early, *late]:
        assert_true_logprobs(policy.model, episode)


def test_forgetting_between_turns_changes_nothing(policy):
    kept, forgot = starts(), starts()
    play(policy, kept, 3)
    for turn in range(3):
        active = [(i, e) for i, e in enumerate(forgot) if turn < 3 - i % 2]
        policy.forget()
        for (i, episode), response in zip(active, policy.respond([e for _, e in active], SHORT)):
            record(episode, response, RESULTS[(i + turn) % len(RESULTS)])
    for a, b in zip(kept, forgot):
        assert a.trace.token_ids == b.trace.token_ids
        np.testing.assert_allclose(a.trace.logprobs, b.trace.logprobs, atol=1e-4)


def shift(model) -> None:
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, 1.0) + parameter.detach()


def optimizer_step(model, **kwargs) -> None:
    shift(model)
    torch.optim.AdamW(model.parameters(), lr=0.1, **kwargs).step()


def replace_parameter(model) -> None:
    layer = model.base_model.layers[0].mlp.up_proj
    layer.weight = torch.nn.Parameter(layer.weight.detach() * -1)


def reload(model) -> None:
    model.load_state_dict({name: value * 1.5 for name, value in model.state_dict().items()})


def in_inference_mode(model) -> None:
    with torch.inference_mode():
        model.base_model.layers[0].mlp.up_proj.weight.mul_(-1)


def data_replaced(model) -> None:
    parameter = model.base_model.layers[0].mlp.up_proj.weight
    parameter.data = parameter.data * -1


CHANGES = {
    "optimizer, foreach": lambda m: optimizer_step(m, foreach=True),
    "optimizer, loop": lambda m: optimizer_step(m, foreach=False),
    "optimizer, fused": lambda m: optimizer_step(m, fused=True),
    "sgd": lambda m: (shift(m), torch.optim.SGD(m.parameters(), lr=0.1).step()),
    "state dict": reload,
    "new parameter": replace_parameter,
    "new data": data_replaced,
    "written behind torch's back": lambda m: m.base_model.layers[0].mlp.up_proj.weight.data.mul_(1.2),
    "inference mode": in_inference_mode,
}


@pytest.mark.parametrize("change", CHANGES)
def test_changed_weights_are_never_met_by_an_old_cache(policy, change):
    episodes = starts()
    play(policy, episodes, 2)
    CHANGES[change](policy.model)
    lengths = [len(e.trace) for e in episodes]
    for episode, response in zip(episodes, policy.respond(episodes, SHORT)):
        record(episode, response, "")
    for episode, length in zip(episodes, lengths):
        written = np.flatnonzero(episode.trace.loss_mask)
        written = written[written >= length]
        expected = plain_logprobs(policy.model, episode)[written - 1]
        np.testing.assert_allclose(np.array(episode.trace.logprobs)[written], expected, atol=2e-4)


# What is forwarded.


def test_equal_prompts_are_read_once(policy):
    fed = Fed(policy)
    episodes = [begin(PROMPTS[i // 4], i) for i in range(8)]
    responses = policy.respond(episodes, SHORT)
    assert fed.shapes[0][0] == 2
    assert len({tuple(r.token_ids) for r in responses[:4]}) > 1


def test_no_history_is_read_twice(policy):
    fed = Fed(policy)
    episodes = starts()
    before = 0
    for turn in range(3):
        responses = policy.respond(episodes, SHORT)
        rows, width = fed.shapes[before]
        contexts = [len(r.context_ids) for r in responses]
        # From the second turn on: the last token of the turn before, never fed, and the observation.
        assert width == max(contexts) + (turn > 0)
        assert rows == (len(set(PROMPTS)) if turn == 0 else len(episodes))
        assert all(shape[1] == 1 for shape in fed.shapes[before + 1 :])
        before = len(fed.shapes)
        for i, (episode, response) in enumerate(zip(episodes, responses)):
            record(episode, response, RESULTS[i % 2])


def test_finished_rows_leave_the_batch(tokenizer):
    policy = policy_of(build("qwen2", len(tokenizer)), tokenizer, max_length=40)
    episodes = [begin("1" * n, n) for n in range(2, 32)]
    fed = Fed(policy)
    responses = policy.respond(episodes, Sampling(max_tokens=64, stop=()))
    sizes = [rows for rows, _ in fed.shapes]
    assert sizes == sorted(sizes, reverse=True)
    # Never more than a third more rows than are still writing.
    for step, rows in enumerate(sizes[1:], start=1):
        assert rows <= sum(len(r.token_ids) > step for r in responses) / module._SHRINK_BELOW
    assert sum(sizes[1:]) < 0.8 * len(episodes) * len(sizes)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text("Q: 0123456789+*=?A<>/", min_size=1, max_size=20),
    st.lists(st.text("<result>/0123456789 \n", max_size=15), min_size=1, max_size=3),
    st.integers(0, 2**32 - 1),
    st.integers(1, 12),
)
def test_the_spans_are_what_the_model_was_fed(policy, prompt, observations, seed, max_tokens):
    hidden = policy.lm.hidden
    fed = Fed(policy)
    episode = begin(prompt, seed)
    try:
        for observation in observations:
            record(episode, policy.respond([episode], Sampling(max_tokens=max_tokens))[0], observation)
    finally:
        policy.lm.hidden = hidden
        policy.forget()
    trace = episode.trace
    assert [s.start for s in trace.spans] == [0, *[s.end for s in trace.spans[:-1]]]
    assert trace.spans[-1].end == len(trace) == len(trace.loss_mask) == len(trace.logprobs) == len(trace.entropies)
    assert [s.step for s in trace.spans] == sorted(s.step for s in trace.spans)
    for span in trace.spans:
        assert span.start < span.end
        assert set(trace.loss_mask[span.start : span.end]) == {int(span.kind not in ("prompt", "observation"))}
    places = torch.cat([positions.flatten() for _, positions in fed.calls]).tolist()
    tokens = torch.cat([ids.flatten() for ids, _ in fed.calls]).tolist()
    # Every token once, at its place, but for the last: it was sampled and not yet read.
    assert places == list(range(len(trace) - 1))
    assert tokens == trace.token_ids[:-1]


# Where a turn ends.


def test_a_turn_has_a_limit(policy):
    for response in policy.respond(starts(), Sampling(max_tokens=5, stop=())):
        ended = response.token_ids[-1] in policy.end_ids
        assert (response.finish == "stop") == ended
        assert len(response.token_ids) == 5 or ended


@pytest.mark.parametrize("family", ["qwen2", "gpt2"])
def test_the_window_is_never_left(tokenizer, family):
    model = build(family, len(tokenizer))
    policy = policy_of(model, tokenizer, max_length=1000)
    assert policy.max_length == 128
    # A row near the end of its window beside a long new one: padding must not push positions over the end.
    old, new = begin("1" * 100, 0), begin("2" * 90, 1)
    record(old, policy.respond([old], Sampling(max_tokens=6, stop=()))[0], "3" * 5)
    full = begin("1" * 130, 2)
    responses = policy.respond([old, new, full], Sampling(max_tokens=64, stop=()))
    assert (responses[2].finish, list(responses[2].token_ids), responses[2].text) == ("context", [], "")
    for episode, response in zip((old, new), responses):
        room = 128 - len(episode.trace) - len(response.context_ids)
        assert len(response.token_ids) == room or response.token_ids[-1] in policy.end_ids
        record(episode, response, "")
        assert_true_logprobs(model, episode)
    assert policy.respond([full], SHORT)[0].finish == "context"


def scripted(monkeypatch, tokenizer, text: str) -> None:
    """Let the model write ``text`` and then digits without end."""
    ids = tokenizer.encode(text, add_special_tokens=False)
    filler = tokenizer.encode("7", add_special_tokens=False)[0]

    def draw(logits, uniforms, **_):
        token = ids.pop(0) if ids else filler
        return Draw(torch.full((len(logits),), token), torch.zeros(len(logits)), None)

    monkeypatch.setattr(module, "draw_tokens", draw)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ab<python>1</python>zz", "ab<python>1</python>"),
        ("<think>a</python>b</think><python>1</python>zz", "<think>a</python>b</think><python>1</python>"),
        ("<think>a<answer>1</answer></think>b</answer>", "<think>a<answer>1</answer></think>b</answer>"),
        ("<answer>1<eos>zz", "<answer>1"),
    ],
)
def test_a_turn_ends_at_a_closing_tag_outside_a_thought(policy, tokenizer, monkeypatch, text, shown):
    scripted(monkeypatch, tokenizer, text)
    [response] = policy.respond(starts()[:1], Sampling(max_tokens=40))
    assert (response.text, response.finish) == (shown, "stop")
    assert response.char_ends[-1] == len(shown)


def test_an_unclosed_thought_is_ended_by_the_limit(policy, tokenizer, monkeypatch):
    scripted(monkeypatch, tokenizer, "<think>1</answer>")
    [response] = policy.respond(starts()[:1], Sampling(max_tokens=12))
    assert (response.finish, len(response.token_ids)) == ("length", 12)


def test_an_episode_of_a_text_policy_cannot_be_continued(policy):
    episode = begin("1", 0)
    episode.steps.append(Step("<python>1</python>", "<result>1</result>"))
    with pytest.raises(ValueError, match="cannot be continued by a token policy"):
        policy.respond([episode], SHORT)


def test_no_episodes_no_responses(policy):
    assert policy.respond([], SHORT) == []


def test_sampling_leaves_no_trace_on_the_model(policy):
    policy.model.train()
    weights = copy.deepcopy(policy.model.state_dict())
    state = torch.random.get_rng_state()
    play(policy, starts(), 2)
    assert policy.model.training
    assert torch.equal(state, torch.random.get_rng_state())
    assert all(torch.equal(v, weights[k]) for k, v in policy.model.state_dict().items())


# Text.


@settings(max_examples=30, deadline=None)
@given(st.text(max_size=12), st.text(max_size=8))
def test_a_character_over_several_tokens_ends_with_its_last(first, second):
    text = f"{first}é<python>π🙂{second}</python>"
    ids = BYTES.encode(text, add_special_tokens=False)
    spelt, ends = decode_with_ends(BYTES, ids)
    assert spelt == text
    # Independent of the decoder: a byte-level token has one symbol a byte.
    raw = [len(token) for token in BYTES.convert_ids_to_tokens(ids)]
    encoded = text.encode()
    assert ends == [len(encoded[: sum(raw[: i + 1])].decode(errors="ignore")) for i in range(len(ids))]


BYTES = byte_tokenizer(["<eos>"], eos="<eos>")


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, len(BYTES) - 1), max_size=30))
def test_any_sampled_bytes_have_ends_in_order(ids):
    text, ends = decode_with_ends(BYTES, ids)
    assert len(ends) == len(ids)
    assert ends == sorted(ends)
    assert not ids or ends[-1] == len(text)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(["say", "it", "many", "wörds", "日本", "x<y>"]), min_size=1, max_size=8))
def test_ends_where_a_token_is_written_differently_at_the_start(words):
    tokenizer = META
    ids = tokenizer.encode(" ".join(words), add_special_tokens=False)
    text, ends = decode_with_ends(tokenizer, ids)
    assert text == " ".join(words)
    prefixes = [tokenizer.decode(ids[: i + 1], clean_up_tokenization_spaces=False) for i in range(len(ids))]
    # Half a character makes the decoder forget the whole ones of the same run of bytes.
    assert ends == list(itertools.accumulate((len(p.rstrip("\ufffd")) for p in prefixes), max))


META = metaspace_tokenizer()


def test_the_policy_spells_as_decode_with_ends_does(tokenizer):
    policy = policy_of(build("qwen2", len(BYTES), eos_token_id=BYTES.eos_token_id), BYTES)
    for text in ("plain", "é🙂", "aé<python>π</python>"):
        ids = BYTES.encode(text, add_special_tokens=False)
        assert policy.spell(ids) == decode_with_ends(BYTES, ids)
        assert policy.spell([*ids, BYTES.eos_token_id]) == (text, [*decode_with_ends(BYTES, ids)[1], len(text)])
