"""The text analyser of the search engine: text in, index terms out.

Lucene's English chain: Unicode word segmentation (UAX #29 with emoji), possessives dropped, lower case, stop words, Porter
stems. Python's ``re`` knows no word-break property, so every character is first mapped to a one-letter class and the
segmentation is a regular expression over the class string.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from agentic_gym.envs.webshop.porter import stem

__all__ = ["ANALYSER_VERSION", "analyse", "segment"]

ANALYSER_VERSION = 1
"""Part of the key of cached indexes: raise it whenever `analyse` may answer differently."""

_STOP_WORDS = frozenset(
    ("a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not", "of", "on", "or",
     "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was", "will", "with")
)  # fmt: skip
_LONGEST_TOKEN = 255  # longer runs are cut, as Lucene's tokenizer cuts them

# Classes: a letter, 0 digit, _ joiner, : between letters, , between digits, . between either, x combining, z zero-width
# joiner, k katakana, c a character that stands alone (ideograph, hiragana), s South-East Asian, e emoji, r flag half.
_JOIN_LETTERS = ":\u00b7\u0387\u055f\u05f4\u2027\ufe13\ufe55\uff1a"
_JOIN_DIGITS = ",;\u037e\u0589\u060c\u060d\u066c\u07f8\u2044\ufe10\ufe14\ufe50\ufe54\uff0c\uff1b"
_JOIN_EITHER = ".'\u2018\u2019\u2024\ufe52\uff07\uff0e"

_ALONE = ((0x2E80, 0x2FD5), (0x3005, 0x3007), (0x3021, 0x3029), (0x3038, 0x303B), (0x3041, 0x3096), (0x309D, 0x309F),
          (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x1B001, 0x1B11F), (0x1B150, 0x1B152),
          (0x20000, 0x3FFFD))  # fmt: skip
_KATAKANA = ((0x3031, 0x3035), (0x309B, 0x309C), (0x30A0, 0x30FA), (0x30FC, 0x30FF), (0x31F0, 0x31FF),
             (0x32D0, 0x32FE), (0x3300, 0x3357), (0xFF66, 0xFF9D), (0x1B000, 0x1B000))  # fmt: skip
_SOUTH_EAST_ASIAN = ((0x0E01, 0x0E3A), (0x0E40, 0x0E4E), (0x0E81, 0x0EDF), (0x1000, 0x103F), (0x1050, 0x108F),
                     (0x109A, 0x109F), (0x1780, 0x17D3), (0x17DC, 0x17DD), (0x1950, 0x1974), (0x1980, 0x19DF),
                     (0x1A20, 0x1AAD), (0xA9E0, 0xA9EF), (0xAA60, 0xAADF))  # fmt: skip
_FLAG_HALVES = ((0x1F1E6, 0x1F1FF),)
# Unicode 12's Extended_Pictographic, the edition of Lucene 9.
_PICTOGRAPHS = """
a9 ae 203c 2049 2122 2139 2194-2199 21a9-21aa 231a-231b 2328 2388 23cf 23e9-23f3 23f8-23fa 24c2 25aa-25ab 25b6 25c0
25fb-25fe 2600-2605 2607-2612 2614-2685 2690-2705 2708-2712 2714 2716 271d 2721 2728 2733-2734 2744 2747 274c 274e
2753-2755 2757 2763-2767 2795-2797 27a1 27b0 27bf 2934-2935 2b05-2b07 2b1b-2b1c 2b50 2b55 3030 303d 3297 3299
1f000-1f0ff 1f10d-1f10f 1f12f 1f16c-1f171 1f17e-1f17f 1f18e 1f191-1f19a 1f1ad-1f1e5 1f201-1f20f 1f21a 1f22f 1f232-1f23a
1f23c-1f23f 1f249-1f3fa 1f400-1f53d 1f546-1f64f 1f680-1f6ff 1f774-1f77f 1f7d5-1f7ff 1f80c-1f80f 1f848-1f84f 1f85a-1f85f
1f888-1f88f 1f8ae-1f8ff 1f90c-1f93a 1f93c-1f945 1f947-1fffd
"""


def _pictograph_ranges() -> tuple[tuple[int, int], ...]:
    bounds = (entry.partition("-") for entry in _PICTOGRAPHS.split())
    return tuple((int(first, 16), int(last or first, 16)) for first, _, last in bounds)


_BY_RANGE = (
    ("r", _FLAG_HALVES),
    ("e", _pictograph_ranges()),
    ("k", _KATAKANA),
    ("c", _ALONE),
    ("s", _SOUTH_EAST_ASIAN),
)


def _class_of(code: int) -> str:
    """The word-break class of one code point, a space when it only separates."""
    char = chr(code)
    if code == 0x200D:
        return "z"
    for joiners, name in ((_JOIN_LETTERS, ":"), (_JOIN_DIGITS, ","), (_JOIN_EITHER, ".")):
        if char in joiners:
            return name
    if code > 0x7F:
        for name, ranges in _BY_RANGE:
            if any(first <= code <= last for first, last in ranges):
                return name
    category = unicodedata.category(char)
    if category in ("Mn", "Me", "Mc") or (category == "Cf" and code != 0x200B):
        return "x"
    if code in (0xFF9E, 0xFF9F) or 0x1F3FB <= code <= 0x1F3FF:  # half-width sound marks, skin tones
        return "x"
    if category == "Nd":
        return "0"
    if category == "Pc" or code == 0x202F:
        return "_"
    if category[0] == "L" or category == "Nl" or 0x24B6 <= code <= 0x24E9:
        return "a"
    return " "


class _ClassTable(dict[int, str]):
    """Code point -> class for `str.translate`, filled on demand."""

    def __missing__(self, code: int) -> str:
        self[code] = name = _class_of(code)
        return name


_CLASSES = _ClassTable()
_EXTENDED = re.compile(r"([a0_k])([xz]+)")
_TOKEN = re.compile(
    r"[a0_]+(?:(?:(?<=a)[:.][xz]*(?=a)|(?<=0)[,.][xz]*(?=0))[a0_]+)*"  # words and numbers
    r"|e[xz]*(?:(?<=z)e[xz]*)*"  # emoji with their variation selectors and joined sequences
    r"|k+|c[xz]*|(?:s[xz]*)+|rr"
)


def segment(text: str) -> Iterator[str]:
    """The words of a text after Unicode's word segmentation, without blanks and punctuation.

    >>> list(segment("Men's 3.5-inch wrench (don't drop), U.S. 1,000 pcs"))
    ["Men's", '3.5', 'inch', 'wrench', "don't", 'drop', 'U.S', '1,000', 'pcs']
    """
    classes = text.translate(_CLASSES)
    if "x" in classes or "z" in classes:  # a combining mark belongs to what it follows
        classes = _EXTENDED.sub(lambda found: found[1] * len(found[0]), classes)
    for found in _TOKEN.finditer(classes):
        start, end = found.span()
        if classes[start] == "_" and not found[0].strip("_"):
            continue
        for cut in range(start, end, _LONGEST_TOKEN):
            yield text[cut : min(cut + _LONGEST_TOKEN, end)]


def analyse(text: str) -> list[str]:
    """The index terms of a text, in order.

    >>> analyse("The women's relaxed sleeveless tops, with 2 pockets")
    ['women', 'relax', 'sleeveless', 'top', '2', 'pocket']
    """
    terms = []
    for word in segment(text):
        token = word.lower()
        if token.endswith(("'s", "\u2019s", "\uff07s")):
            token = token[:-2]
        if token not in _STOP_WORDS:
            terms.append(stem(token))
    return terms
