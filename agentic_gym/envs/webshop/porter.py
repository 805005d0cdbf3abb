"""Porter's English stemmer in its author's revised form, as Lucene's PorterStemFilter applies it.

Source: M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980, with the two later revisions
(``bli -> ble``, ``logi -> log``) and words of at most two letters left alone. The "porter" of Snowball is another algorithm.
"""

from __future__ import annotations

from functools import lru_cache

__all__ = ["stem"]

_VOWELS = frozenset("aeiou")

# Suffix tables in order of trial: the first suffix that matches decides, whether or not its condition holds.
_STEP_2 = (
    ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("bli", "ble"),
    ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ization", "ize"), ("ation", "ate"),
    ("ator", "ate"), ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"), ("aliti", "al"),
    ("iviti", "ive"), ("biliti", "ble"), ("logi", "log"),
)  # fmt: skip
_STEP_3 = (
    ("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", ""),
)  # fmt: skip
_STEP_4 = (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate", "iti",
    "ous", "ive", "ize",
)  # fmt: skip


def _shape(word: str) -> str:
    """The word as a string of ``c`` (consonant) and ``v`` (vowel); y is a vowel after a consonant."""
    shape = ""
    for letter in word:
        vowel = letter in _VOWELS or (letter == "y" and shape.endswith("c"))
        shape += "v" if vowel else "c"
    return shape


def _measure(stem: str) -> int:
    """How often a vowel run is followed by a consonant run: m in [C](VC)^m[V]."""
    return _shape(stem).count("vc")


def _has_vowel(stem: str) -> bool:
    return "v" in _shape(stem)


def _ends_double_consonant(word: str) -> bool:
    return len(word) > 1 and word[-1] == word[-2] and _shape(word)[-1] == "c"


def _ends_cvc(word: str) -> bool:
    """Consonant, vowel, consonant at the end, the last of them not w, x or y."""
    return _shape(word).endswith("cvc") and word[-1] not in "wxy"


def _step_1(word: str) -> str:
    """Plurals, -ed, -ing, and y to i."""
    if word.endswith("sses") or word.endswith("ies"):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]

    if word.endswith("eed"):
        if _measure(word[:-3]) > 0:
            word = word[:-1]
    else:
        for suffix in ("ed", "ing"):
            if word.endswith(suffix):
                if _has_vowel(word[: -len(suffix)]):
                    word = _repair(word[: -len(suffix)])
                break

    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    return word


def _repair(word: str) -> str:
    """Mend a stem from which -ed or -ing was taken."""
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if _ends_double_consonant(word):
        return word if word[-1] in "lsz" else word[:-1]
    if _measure(word) == 1 and _ends_cvc(word):
        return word + "e"
    return word


def _replace_suffix(word: str, table: tuple[tuple[str, str], ...]) -> str:
    for suffix, replacement in table:
        if word.endswith(suffix):
            base = word[: -len(suffix)]
            return base + replacement if _measure(base) > 0 else word
    return word


def _step_4(word: str) -> str:
    """Drop a suffix from a long stem."""
    for suffix in _STEP_4:
        if word.endswith(suffix) and (suffix != "ion" or word[:-3].endswith(("s", "t"))):
            base = word[: -len(suffix)]
            return base if _measure(base) > 1 else word
    return word


def _step_5(word: str) -> str:
    """Drop a final e, and one l of a final ll."""
    if word.endswith("e"):
        base = word[:-1]
        measure = _measure(base)
        if measure > 1 or (measure == 1 and not _ends_cvc(base)):
            word = base
    if word.endswith("ll") and _measure(word) > 1:
        word = word[:-1]
    return word


@lru_cache(maxsize=1 << 17)
def stem(word: str) -> str:
    """The stem of a lower-case word.

    >>> stem("relational"), stem("hopping"), stem("happy"), stem("possibly")
    ('relat', 'hop', 'happi', 'possibl')
    """
    if len(word) <= 2:
        return word
    word = _step_1(word)
    word = _replace_suffix(word, _STEP_2)
    word = _replace_suffix(word, _STEP_3)
    return _step_5(_step_4(word))
