"""Where the sampled tokens lie in their text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["decode_with_ends"]


def decode_with_ends(tokenizer: Any, token_ids: Sequence[int]) -> tuple[str, list[int]]:
    """The text of ``token_ids`` and, for each token, how many of its characters are complete with that token.

    Linear in the number of tokens; a character spread over several tokens counts with its last.
    """

    def decode(ids: Sequence[int]) -> str:
        text: str = tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)
        return text

    text = decode(token_ids)
    ends: list[int] = []
    done = anchor = start = 0
    before = ""
    for i in range(len(token_ids)):
        # Some tokenizers write a token differently at the start of a text, so one finished token stands before the new ones.
        piece = decode(token_ids[anchor : i + 1])
        if not piece.endswith("\ufffd"):
            done += len(piece) - len(before)
            anchor, start = start, i + 1
            before = decode(token_ids[anchor:start])
        ends.append(min(done, len(text)))
    if ends:
        ends[-1] = len(text)
    return text, ends
