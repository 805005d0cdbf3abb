"""Where the sampled tokens lie in their text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["decode_with_ends"]


def decode_with_ends(tokenizer: Any, token_ids: Sequence[int]) -> tuple[str, list[int]]:
    """The text of ``token_ids`` and, for each token, how many of its characters are complete with that token.

    Linear in the number of tokens for byte-level tokenizers; a character spread over several tokens counts with its last.
    """

    def decode(ids: Sequence[int]) -> str:
        text: str = tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)
        return text

    text = decode(token_ids)
    ends: list[int] = []
    done = start = 0
    for i in range(len(token_ids)):
        piece = decode(token_ids[start : i + 1])
        if not piece.endswith("\ufffd"):
            done, start = done + len(piece), i + 1
        ends.append(done)
    if ends and start == len(token_ids) and done != len(text):
        # Some tokenizers write a token differently at the start of a text: measure every prefix.
        longest = 0
        for i in range(len(token_ids)):
            longest = max(longest, len(decode(token_ids[: i + 1]).rstrip("\ufffd")))
            ends[i] = min(longest, len(text))
    if ends:
        ends[-1] = len(text)
    return text, ends
