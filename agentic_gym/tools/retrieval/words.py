"""Text to index terms: lower case, no accents, no function words, characters of unspaced scripts one by one."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["index_terms"]

_UNSPACED = "\u3040-\u30ff\u3400-\u9fff"  # kana and Han
_TERM = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
_FUNCTION_WORDS = """
    a an and are as at be been but by can could did do does for from had has have he her him his how i
    if in into is it its me my no nor not of on or our s she so such t than that the their them then
    there these they this those to was we were what when where which who whom whose why will with would
    you your
"""
_IGNORED = frozenset(_FUNCTION_WORDS.split())


def index_terms(text: str) -> list[str]:
    """The terms of a text in order, with repetitions.

    >>> index_terms("Who was the mayor of Düsseldorf in 1872? 北京")
    ['mayor', 'dusseldorf', '1872', '北', '京']
    """
    text = text.lower()
    if not text.isascii():
        text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return [term for term in _TERM.findall(text) if term not in _IGNORED]
