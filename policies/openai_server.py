"""OpenAIServerPolicy: the model behind any OpenAI-compatible server (vLLM, SGLang, llama.cpp, OpenAI).

Two ways to ask:

- ``chat``: messages in, text out; the server applies its chat template. Any server; for evaluation.
- ``completions``: with a tokenizer, token ids in and, from servers that return them (vLLM), token ids and log-probabilities
  out: nothing is tokenised twice and episodes can be trained on.

Failures stay apart: what concerns one episode gives ``finish="unavailable"`` (to be masked); only when *no* request could be
made at all (no server there, wrong model name or key) one ``ServerError`` is raised.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from agentic_gym.episodes import Episode, Response
from agentic_gym.policies.base import Sampling
from agentic_gym.policies.formats import ChatFormat, Format, InlineFormat, encode
from agentic_gym.policies.server_client import ServerClient, ServerError
from agentic_gym.policies.token_text import decode_with_ends

__all__ = ["OpenAIServerPolicy"]

_log = logging.getLogger(__name__)

_EXTENSIONS: Mapping[str, Any] = {
    # Keep the stop string in the text (vLLM; SGLang).
    "include_stop_str_in_output": True,
    "no_stop_trim": True,
    # Switch off what servers add on their own, so that ``Sampling`` alone says how to draw.
    "top_k": -1,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
}
"""Fields beyond OpenAI's own API. Lenient servers ignore the unknown ones; for strict ones all are left out."""

_OPTIONAL = (*_EXTENSIONS, "return_token_ids", "seed", "stop", "temperature", "top_p", "logprobs", "max_tokens")
_OPENAI_MAX_STOPS = 4


class OpenAIServerPolicy:
    """Asks a server for every episode's next action, many at a time.

    Args:
        base_url: for example ``http://localhost:8000/v1``.
        model: the model's name at the server.
        api: ``chat`` or ``completions``.
        tokenizer: for ``completions``: the served model's Hugging Face tokenizer; prompts are then token ids. Without one,
            prompts are one running text.
        format: how episodes become tokens; None takes the tokenizer's chat template, or plain text where there is none.
        max_length: tokens an episode may have (the server's window), for prompts of token ids.
        extra: further fields of the request's body, such as ``{"chat_template_kwargs": {"enable_thinking": False}}``.
        api_key, concurrency, timeout, retries, backoff: see ``ServerClient``.

    Log-probabilities are those that the server reports. To be those of the sampling distribution at a temperature or ``top_p``
    other than 1, vLLM must run with ``--logprobs-mode processed_logprobs``. Entropies are not recorded.

    Where a server cuts the stop string off and does not say whether one was hit, an open block of a turn that ended
    by itself gets its closing tag back.

    Example::

        with OpenAIServerPolicy("http://localhost:8000/v1", "Qwen/Qwen2.5-7B-Instruct") as policy:
            responses = policy.respond(episodes, Sampling(temperature=0.7))
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api: Literal["chat", "completions"] = "chat",
        tokenizer: Any = None,
        format: Format | None = None,
        max_length: int | None = None,
        extra: Mapping[str, Any] | None = None,
        api_key: str | None = None,
        concurrency: int = 16,
        timeout: float = 300.0,
        retries: int = 3,
        backoff: float = 0.5,
    ) -> None:
        if api not in ("chat", "completions"):
            raise ValueError(f"api must be 'chat' or 'completions', got {api!r}")
        if api == "chat" and (tokenizer is not None or format is not None):
            raise ValueError("the chat api takes messages: give a tokenizer or format only with api='completions'")
        if format is not None and tokenizer is None:
            raise ValueError("a format of token ids needs the tokenizer, too")
        self.model, self.api, self.tokenizer, self.max_length = model, api, tokenizer, max_length
        self.format = format
        if tokenizer is not None and format is None:
            self.format = ChatFormat(tokenizer) if tokenizer.chat_template else InlineFormat(tokenizer)
        self._end_ids = frozenset(tokenizer.all_special_ids if tokenizer is not None else ())
        self._vocabulary = len(tokenizer) if tokenizer is not None else 0
        self.extra = dict(extra or {})
        self.client = ServerClient(
            base_url, api_key=api_key, concurrency=concurrency, timeout=timeout, retries=retries, backoff=backoff
        )
        self._left_out: frozenset[str] = frozenset()

    def __enter__(self) -> OpenAIServerPolicy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give up what is under way and end the connections. May be called twice."""
        self.client.close()

    def respond(self, episodes: Sequence[Episode], sampling: Sampling) -> list[Response]:
        """One response an episode, in order; safe to call from several threads.

        A request that finally failed gives an empty response with ``finish="unavailable"``; a full window, ``"context"``.

        Raises:
            ServerError: no server could be reached for any of the episodes, or it refused every request.
            RuntimeError: the policy is closed.
        """

        async def answer(episode: Episode) -> Response | ServerError:
            try:
                return await self._answer(episode, sampling)
            except ServerError as error:
                return error

        answers = self.client.map(answer, episodes)
        errors = [item for item in answers if isinstance(item, ServerError)]
        if errors and len(errors) == len(answers) and all(error.kind != "failed" for error in errors):
            raise errors[0]
        if errors:
            _log.warning("%d of %d requests failed, the first: %s", len(errors), len(answers), errors[0])
        return [Response("", finish="unavailable") if isinstance(item, ServerError) else item for item in answers]

    async def _answer(self, episode: Episode, sampling: Sampling) -> Response:
        context: list[int] = []
        body: dict[str, Any] = {
            "model": self.model,
            "max_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": _turn_seed(episode),
            **({"stop": list(sampling.stop)} if sampling.stop else {}),
            **_EXTENSIONS,
        }
        if self.api == "chat":
            path = "chat/completions"
            body["messages"] = _messages(episode)
        else:
            path = "completions"
            if self.format is None:
                body["prompt"] = _running_text(episode)
            else:
                context = self._context_ids(episode, self.format)
                prompt = [*episode.trace.token_ids, *context]
                body |= {"prompt": prompt, "logprobs": 1, "return_token_ids": True}
                if self.max_length is not None:
                    body["max_tokens"] = min(sampling.max_tokens, self.max_length - len(prompt))
        full = Response("", context, finish="context")
        if body["max_tokens"] < 1:
            return full
        try:
            answer = await self._post(path, body | self.extra)
        except ServerError as error:
            if _window_is_full(error):
                return full
            raise
        try:
            return self._read(answer, episode, context, sampling)
        except _BrokenAnswer as error:
            raise ServerError(f"{self.client.base_url}/{path}", f"the answer is broken: {error}", "failed") from error

    async def _post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Post ``body``; a field that the server does not know is left out, for good once that has helped."""
        left_out = self._left_out
        while True:
            try:
                answer = await self.client.post(path, _fitted(body, left_out))
            except ServerError as error:
                further = _to_leave_out(error, body) - left_out
                if not further:
                    raise
                left_out |= further
                continue
            for name in sorted(left_out - self._left_out - set(_EXTENSIONS)):
                _log.warning("%s does not take %r; it is left out from now on", self.client.base_url, name)
            self._left_out |= left_out
            return answer

    def _context_ids(self, episode: Episode, format: Format) -> list[int]:
        """The tokens to read after those of the trace."""
        if not episode.steps:
            return format.prompt_ids(episode.instructions, episode.observation)
        if len(episode.trace):
            ended = episode.trace.token_ids[-1] in self._end_ids
            return format.observation_ids(episode.last_observation, ended=ended)
        # The server returns no token ids, so the episode has no trace: its text is all there is.
        ids = list(format.prompt_ids(episode.instructions, episode.observation))
        for step in episode.steps:
            ids += encode(self.tokenizer, step.action)
            ids += format.observation_ids(step.observation, ended=False)
        return ids

    def _read(self, answer: Mapping[str, Any], episode: Episode, context: list[int], sampling: Sampling) -> Response:
        choice = _first_choice(answer)
        reason = choice.get("finish_reason")
        finish: Literal["stop", "length"] = "length" if reason == "length" else "stop"
        token_ids = choice.get("token_ids")
        if self.format is not None and token_ids is not None and (len(episode.trace) or not episode.steps):
            return self._token_response(answer, choice, [*episode.trace.token_ids, *context], context, finish)
        if len(episode.trace):
            raise _BrokenAnswer("the server returned token ids before, and now it does not")
        text = _text(choice)
        if finish == "stop":
            text += _lost_stop(text, choice, sampling.stop)
        return Response(_cut_after_stop(text, sampling.stop), finish=finish)

    def _token_response(
        self,
        answer: Mapping[str, Any],
        choice: Mapping[str, Any],
        prompt: list[int],
        context: list[int],
        finish: Literal["stop", "length"],
    ) -> Response:
        token_ids = _list_of(choice, "token_ids", int)
        logprobs_field = choice.get("logprobs")
        if not isinstance(logprobs_field, dict):
            raise _BrokenAnswer("token ids without log-probabilities")
        logprobs = _list_of(logprobs_field, "token_logprobs", float)
        if len(logprobs) != len(token_ids):
            raise _BrokenAnswer(f"{len(token_ids)} token ids, but {len(logprobs)} log-probabilities")
        if not all(map(math.isfinite, logprobs)) or not all(0 <= token < self._vocabulary for token in token_ids):
            raise _BrokenAnswer("a token id or log-probability is out of range")
        read = choice.get("prompt_token_ids", answer.get("prompt_token_ids"))
        if read is not None and read != prompt:
            raise _BrokenAnswer("the server read other tokens than it was sent")
        ended = finish == "stop" and bool(token_ids) and token_ids[-1] in self._end_ids
        text, ends = decode_with_ends(self.tokenizer, token_ids[:-1] if ended else token_ids)
        if ended:
            ends.append(len(text))
        return Response(text, context, token_ids, logprobs, (), ends, finish)


class _BrokenAnswer(ValueError):
    """The answer has not the form of the API."""


# Episodes as requests.


def _messages(episode: Episode) -> list[dict[str, str]]:
    """The chat: instructions are the system turn, what the environment says are user turns."""
    messages = [{"role": "system", "content": episode.instructions}] if episode.instructions else []
    messages.append({"role": "user", "content": episode.observation})
    for step in episode.steps:
        messages.append({"role": "assistant", "content": step.action})
        messages.append({"role": "user", "content": step.observation})
    return messages


def _running_text(episode: Episode) -> str:
    """The same text as ``InlineFormat``'s, for servers that are sent no token ids."""
    turns = "".join(step.action + step.observation for step in episode.steps)
    return f"{episode.instructions}\n\n{episode.observation}\n{turns}"


def _turn_seed(episode: Episode) -> int:
    """A seed for this turn from (episode seed, turn) alone."""
    state = np.random.SeedSequence([episode.seed & (2**64 - 1), len(episode.steps)]).generate_state(1)
    return int(state[0]) >> 1  # servers take 31 bits at least


# What servers do not take.


def _fitted(body: Mapping[str, Any], left_out: frozenset[str]) -> dict[str, Any]:
    sent = {name: value for name, value in body.items() if name not in left_out}
    if "max_tokens" in left_out:
        sent["max_completion_tokens"] = body["max_tokens"]
    if left_out.issuperset(_EXTENSIONS) and "stop" in sent:
        sent["stop"] = sent["stop"][:_OPENAI_MAX_STOPS]  # the rest is cut here
    return sent


def _to_leave_out(error: ServerError, body: Mapping[str, Any]) -> frozenset[str]:
    """The fields without which the request may pass."""
    if error.status not in (400, 422) or _window_is_full(error):
        return frozenset()
    if error.param in _OPTIONAL and error.param in body:
        return frozenset([error.param])
    return frozenset(_EXTENSIONS) | ({"return_token_ids"} & body.keys())


def _window_is_full(error: ServerError) -> bool:
    """Whether the server refused because the prompt is too long; each has its own words for it."""
    if error.status not in (400, 413, 422):
        return False
    return bool(re.search(r"context.{0,12}(length|size|window)|maximum model length", error.reason, re.IGNORECASE))


# Answers.


def _first_choice(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise _BrokenAnswer("it holds no choices")
    return choices[0]


def _text(choice: Mapping[str, Any]) -> str:
    """The text of a choice of either API, as valid Unicode."""
    text = choice.get("text")
    if isinstance(message := choice.get("message"), dict):
        text = message.get("content")
        if text is None:  # a refusal, or a turn of reasoning alone
            return ""
    if not isinstance(text, str):
        raise _BrokenAnswer("it holds no text")
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _list_of(holder: Mapping[str, Any], key: str, type_: type[int] | type[float]) -> list[Any]:
    """A list of whole numbers, or of numbers as floats."""
    values = holder.get(key)
    allowed = (int,) if type_ is int else (int, float)
    if not isinstance(values, list) or not all(type(value) in allowed for value in values):
        raise _BrokenAnswer(f"{key!r} is no list of numbers")
    try:
        return [type_(value) for value in values]
    except OverflowError as error:
        raise _BrokenAnswer(f"{key!r} holds a huge number") from error


def _lost_stop(text: str, choice: Mapping[str, Any], stop: Sequence[str]) -> str:
    """The stop string that the server cut off ``text``, or ''."""
    if text.endswith(tuple(stop)):
        return ""
    for key in (
        "stop_reason",
        "matched_stop",
    ):  # vLLM, SGLang: the string, or null or a token id for the model's own end
        if key in choice:
            matched = choice[key]
            return matched if isinstance(matched, str) and matched in stop else ""
    closing = {tag[2:-1]: tag for tag in stop if tag.startswith("</") and tag.endswith(">")}
    if not closing:
        return ""
    opened = ""
    # A closed thought holds no action.
    for tag in re.finditer(rf"<(/?)({'|'.join(map(re.escape, closing))})>", text[text.rfind("</think>") + 1 :]):
        if not opened and not tag.group(1):
            opened = tag.group(2)
        elif tag.group(1) and tag.group(2) == opened:
            opened = ""
    return closing.get(opened, "")


def _cut_after_stop(text: str, stop: Sequence[str]) -> str:
    """``text`` up to the end of the first stop string outside a thought: some servers do not stop there themselves."""
    if not stop:
        return text
    thinking = False
    last_think_end = text.rfind("</think>")
    for found in re.finditer("|".join(["</?think>", *map(re.escape, stop)]), text):
        if found.group() in ("<think>", "</think>"):
            # As in the grammar: a thought that is never closed hides nothing.
            thinking = found.group() == "<think>" and found.end() <= last_think_end
        elif not thinking:
            return text[: found.end()]
    return text
