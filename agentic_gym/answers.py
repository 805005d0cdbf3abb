r"""Grading: is this answer right?

- ``extract_boxed``: the content of the last ``\boxed{...}``.
- ``grade_math``: mathematical equality with one of the accepted answers, exact arithmetic first.
- ``exact_match``, ``token_f1``, ``normalize_squad``: the SQuAD v1.1 metrics for question answering.

A prediction is text a model wrote: it is never evaluated here, and no input makes a grader raise or hang.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal, NamedTuple

__all__ = ["Grade", "exact_match", "extract_boxed", "grade_math", "normalize_squad", "token_f1"]

Gold = str | int | float


@dataclass(frozen=True)
class Grade:
    """The verdict on one answer, and how it was reached."""

    correct: bool
    """Whether the prediction equals an accepted answer."""
    status: Literal["exact", "symbolic", "unparseable", "timeout"]
    """How it was decided: by exact comparison, by computer algebra, or not: no mathematics, out of time."""


# -- \boxed{} -----------------------------------------------------------------------------------------------

_BOX_TOKEN = re.compile(
    r"(?P<box>\\(?:boxed|fbox)\s*\{)|\\(?:boxed|fbox)\s+(?P<bare>[+-]?[0-9][0-9,./]*)|\\.|[{}]", re.DOTALL
)


def extract_boxed(text: str) -> str | None:
    r"""Return the content of the last complete ``\boxed{...}`` or ``\fbox{...}`` or ``\boxed 7``, else None.

    Escaped braces do not count; of nested boxes the innermost last one is taken. Linear time.

    >>> extract_boxed(r"so \boxed{1} or rather \boxed{\frac{1}{2}}, I \boxed{think")
    '\\frac{1}{2}'
    """
    open_braces: list[int] = []  # where the content of each open box starts; -1 for a plain brace
    start, found = -1, None
    for token in _BOX_TOKEN.finditer(text):
        if token["box"]:
            open_braces.append(token.end())
        elif token["bare"]:
            start, found = token.start("bare"), token["bare"].rstrip(",./")
        elif token[0] == "{":
            open_braces.append(-1)
        elif token[0] == "}" and open_braces:
            opened = open_braces.pop()
            if opened > start:
                start, found = opened, text[opened : token.start()]
    return found


# -- mathematics --------------------------------------------------------------------------------------------


def grade_math(prediction: str, gold: Gold | Sequence[Gold], *, symbolic: bool = True, timeout: float = 5.0) -> Grade:
    r"""Decide whether `prediction` equals the accepted answer (or one of several).

    1. Both sides are read as exact rationals: integers with separators, signs, ``$`` or units, decimals,
       ``a/b``, ``\frac``, mixed numbers, in wrappers such as ``\boxed``, ``\text`` or ``x =``. Where both
       can be read, this decides: no rounding, and ``50\%`` is both 50 and 0.5.
    2. Equal text after LaTeX normalisation.
    3. Computer algebra (math-verify) in a helper process that is killed after `timeout` seconds.

    Args:
        prediction: the answer; if it holds a ``\boxed{}``, that content counts.
        gold: one accepted answer or a sequence of them.
        symbolic: whether step 3 may be taken; without it, step 2 is final.
        timeout: seconds allowed to step 3, all accepted answers together.

    Returns:
        A `Grade`; a wrong answer that was understood has status "exact" or "symbolic", never "unparseable".

    Raises:
        ImportError: step 3 is needed and math-verify is not installed.

    >>> grade_math(r"so \boxed{1{,}200}", ["1200", "1.2e3"])
    Grade(correct=True, status='exact')
    >>> grade_math("41", 42).status, grade_math("I give up", 42).status
    ('exact', 'unparseable')
    """
    if not isinstance(prediction, str):
        raise TypeError(f"prediction must be a str, got {type(prediction).__name__}: {prediction!r:.60}")
    golds = _golds(gold)
    answer = _answer(prediction)
    if not answer:
        return Grade(False, "unparseable")
    number = _read_number(answer)
    undecided = []
    for text in golds:
        gold_number = _read_number(text)
        if number is not None and gold_number is not None:
            if _same_number(number, gold_number):
                return Grade(True, "exact")
        else:
            undecided.append((text, gold_number is not None))
    if not undecided:
        return Grade(False, "exact")
    numeric_only = all(is_number for _, is_number in undecided)
    if len(answer) > MAX_EXPRESSION or _deep(answer) or (numeric_only and not _NUMERIC.search(answer)):
        return Grade(False, "unparseable")
    plain = _plain(answer)
    if plain and any(plain == _plain(text) for text, _ in undecided):
        return Grade(True, "exact")
    if not symbolic:
        return Grade(False, "unparseable" if numeric_only else "exact")

    from agentic_gym.symbolic import verify

    verdict = verify(answer, [text for text, _ in undecided], timeout=timeout)
    if verdict in ("unparseable", "timeout"):
        return Grade(False, verdict)
    return Grade(verdict == "equal", "symbolic")


MAX_EXPRESSION = 1_000
"""Longer answers (characters) are compared as plain numbers only; no accepted answer comes near it."""

MAX_NESTING = 40
"""Brackets nested deeper than this make an answer unparseable: parsers take exponential time on them."""

# A text without a digit or a LaTeX command is no number: not worth a question to computer algebra.
_NUMERIC = re.compile(r"[0-9\\]")


def _deep(text: str) -> bool:
    depth = 0
    for char in text:
        depth += (char in "([{") - (char in ")]}")
        if depth > MAX_NESTING:
            return True
    return False


def _golds(gold: Gold | Sequence[Gold]) -> list[str]:
    several = [gold] if isinstance(gold, (str, int, float)) else list(gold)
    if not several or not all(isinstance(one, (str, int, float)) for one in several):
        raise ValueError(f"gold must be a str, a number or a non-empty sequence of these, got {gold!r:.80}")
    return [_answer(one) if isinstance(one, str) else str(one) for one in several]


def _answer(text: str) -> str:
    boxed = extract_boxed(text) if "\\" in text else None
    return (text if boxed is None else boxed).strip()


class _Number(NamedTuple):
    """An exact value; one too long to expand is kept as (sign, digits, power of ten), which is unique too."""

    value: Fraction | int | tuple[str, str, int]
    percent: bool = False


def _same_number(a: _Number, b: _Number) -> bool:
    if a.value == b.value:
        return True
    if a.percent == b.percent or isinstance(a.value, tuple) or isinstance(b.value, tuple):
        return False
    return a.value == b.value * 100 if a.percent else a.value * 100 == b.value


_SMALL_INT = re.compile(r"[+-]?[0-9]{1,18}")
_DECIMAL = re.compile(r"([+-]?)\s*([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]{1,18}))?")
_THOUSANDS = re.compile(r"[+-]?\s*[0-9]{1,3}(?:(?:,[0-9]{3})+|(?: [0-9]{3})+)(?:\.[0-9]*)?")
_MAX_DIGITS = 400  # Beyond this a value is compared digit by digit instead of being expanded.


def _read_number(text: str) -> _Number | None:
    if _SMALL_INT.fullmatch(text):
        return _Number(int(text))
    if len(text) > 500:
        value = _decimal(text)
        return None if value is None else _Number(value)
    return _read_latex_number(text)


def _decimal(text: str) -> Fraction | int | tuple[str, str, int] | None:
    """Read ``-12.5e3`` exactly, without ever building a number of more than `_MAX_DIGITS` digits."""
    match = _DECIMAL.fullmatch(text)
    if match is None or not (match[2] or match[3]):
        return None
    sign, whole, part = match[1], match[2], match[3] or ""
    digits = (whole + part).lstrip("0")
    significant = digits.rstrip("0")
    if not significant:
        return 0
    power = int(match[4] or 0) - len(part) + len(digits) - len(significant)
    if len(significant) + abs(power) > _MAX_DIGITS:
        return "-" if sign == "-" else "", significant, power
    value = int(significant) * (-1 if sign == "-" else 1)
    return value * 10**power if power >= 0 else Fraction(value, 10**-power)


_TRANSLATE = str.maketrans({"\u2212": "-", "\u2013": "-", "\u00a0": " ", "\u202f": " ", "\u2009": " "})
_SEPARATOR = re.compile(r"\{,\}|,\s*\\!\s*")
_SPACING = re.compile(r"\\[!,;:> ]|\\q?quad\b|~|\\left\b|\\right\b|\s+")
_WRAPPED = re.compile(
    r"\\\((?P<paren>.*)\\\)|\\\[(?P<bracket>.*)\\\]|\$\$?(?P<dollar>[^$]+)\$\$?|\*\*(?P<bold>[^*]+)\*\*"
    r"|(?:\\(?:text|textbf|textrm|mathrm|mathbf|mbox|boxed|fbox)\s*)?\{(?P<brace>.*)\}|\((?P<group>[^(),]*)\)",
    re.DOTALL,
)
_PREFIX = re.compile(r"(?:[A-Za-z](?:_(?:[A-Za-z0-9]|\{[A-Za-z0-9]+\}))?\s*)?=\s*(?!=)")
_CURRENCY = re.compile(r"([+-]?)\s*(?:\\?\$|[€£¥])\s*")
_UNIT = re.compile(
    r"\s*(?:(?P<percent>\\?%)|\^\s*(?:\\circ|\{\s*\\circ\s*\})|\\degree|°|\\?\$|[€£¥]"
    r"|\\(?:text|textrm|mathrm|mbox)\s*\{(?P<text>[^{}0-9\\]*)\}(?:\s*\^\s*\{?[23]\}?)?"
    r"|(?<![A-Za-z\\])(?:[cmk]m|kg|mph|in|ft|lbs?|oz|mi)(?:\s*\^\s*\{?[23]\}?)?"
    r"|(?<=[^A-Za-z ])(?P<words> [A-Za-z]{3,}(?: [A-Za-z]+)*))$"
)
_SCALES = {
    "hundred": 100,
    "thousand": 10**3,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
    "dozen": 12,
}
# Words after a number that are not units: they would change its value.
_NOT_A_UNIT = re.compile(
    r"\b(?:hundreds?|thousands?|[mbtr]{1,2}illions?|dozens?|hal(?:f|ves)|thirds?|quarters?|pi|base|mod|squared|cubed"
    r"|factorial|or|and|not|to|over|times|plus|minus|divided|choose|sqrt|sin|cos|tan|log|exp|inf\w*|alpha|beta|gamma"
    r"|theta|phi|e|i|x)\b",
    re.IGNORECASE,
)
_NUM = r"[+-]?\s*(?:[0-9][0-9,]*(?:\.[0-9]*)?|\.[0-9]+)"
_FRACTION = re.compile(
    rf"(?P<sign>[+-]?)\s*(?P<whole>[0-9]*)\s*(?:\\[dtc]?frac\s*(?:\{{\s*(?P<a>{_NUM})\s*\}}|(?P<a1>[0-9]))"
    rf"\s*(?:\{{\s*(?P<b>{_NUM})\s*\}}|(?P<b1>[0-9])))"
)
_QUOTIENT = re.compile(rf"(?:(?P<sign>[+-]?)\s*(?P<whole>[0-9]+) +)?(?P<a>{_NUM})\s*/\s*(?P<b>{_NUM})")


@lru_cache(maxsize=8192)
def _read_latex_number(text: str) -> _Number | None:
    text = _SEPARATOR.sub(",", text.translate(_TRANSLATE))
    text = _SPACING.sub(" ", text).strip()
    percent, scale = False, 1
    before = None
    while text != before:  # Each round takes one wrapper, prefix or unit off, so this ends.
        before = text
        text = text.strip().rstrip(".;").rstrip() if len(text) > 1 else text
        wrapped = _WRAPPED.fullmatch(text)
        if wrapped and _balanced(inner := wrapped[wrapped.lastgroup or 0]):
            text = inner.strip()
        text = _PREFIX.sub("", text, count=1) if _PREFIX.match(text) else text
        text = _CURRENCY.sub(r"\1", text, count=1) if _CURRENCY.match(text) else text
        unit = _UNIT.search(text)
        if unit and unit.start() > 0:
            words = (unit["text"] or unit["words"] or "").strip().lower()
            first, _, rest = words.partition(" ")
            if scale == 1 and first.rstrip("s") in _SCALES:  # 5 million dollars
                scale, words = _SCALES[first.rstrip("s")], rest
            if _NOT_A_UNIT.search(words):
                return None
            percent = percent or unit["percent"] is not None or first == "percent"
            text = text[: unit.start()]
    value = _plain_number(text)
    if value is None:
        value = _fraction(_FRACTION.fullmatch(text) or _QUOTIENT.fullmatch(text))
    if value is None or (scale > 1 and isinstance(value, tuple)):
        return None
    return _Number(value if isinstance(value, tuple) else value * scale, percent)


def _balanced(text: str) -> bool:
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", text):
        depth += 1 if brace == "{" else -1
        if depth < 0:
            return False
    return depth == 0


def _plain_number(text: str) -> Fraction | int | tuple[str, str, int] | None:
    return _decimal(re.sub("[, ]", "", text) if _THOUSANDS.fullmatch(text) else text)


def _fraction(match: re.Match[str] | None) -> Fraction | None:
    """A quotient or a mixed number (``1 1/2``) from its matched parts; None for a zero or overlong part."""
    if match is None:
        return None
    groups = match.groupdict()
    a = _plain_number(groups["a"] or groups["a1"])
    b = _plain_number(groups["b"] or groups["b1"])
    if a is None or b is None or isinstance(a, tuple) or isinstance(b, tuple) or b == 0:
        return None
    value = Fraction(a) / Fraction(b)
    if groups["whole"]:
        # A mixed number needs a proper fraction; 2 \frac{5}{3} could only be a product.
        whole = _plain_number(groups["whole"])
        if not isinstance(whole, int) or not 0 < value < 1:
            return None
        value += whole
    return -value if groups["sign"] == "-" else value


_TEXT_COMMAND = re.compile(r"\\(?:text|textbf|textrm|mathrm|mathbf|mbox)\s*\{([^{}]*)\}")
_SHORT_FRACTION = re.compile(r"\\frac(?:\{([^{}]*)\}|([0-9]))(?:\{([^{}]*)\}|([0-9]))")
_SHORT_ROOT = re.compile(r"\\sqrt([0-9])")


@lru_cache(maxsize=8192)
def _plain(text: str) -> str:
    """The text with everything that only changes the look taken out; words in lower case."""
    text = _SPACING.sub(" ", _SEPARATOR.sub(",", text.translate(_TRANSLATE)))
    text = _TEXT_COMMAND.sub(r"\1", text)
    text = re.sub(r"\\[dtc]frac", r"\\frac", text).replace("\\$", "").replace("^\\circ", "").strip(" $")
    text = re.sub(r"(?<![0-9])\s+|\s+(?![0-9])", "", text).rstrip(".")  # 7 8 is not 78.
    text = _SHORT_FRACTION.sub(lambda m: f"\\frac{{{m[1] or m[2]}}}{{{m[3] or m[4]}}}", text)
    text = _SHORT_ROOT.sub(r"\\sqrt{\1}", text)
    text = re.sub(r"^\(([A-Za-z])\)$", r"\1", text)
    return text.lower() if re.fullmatch("[A-Za-z]{3,}", text) else text


# -- question answering -------------------------------------------------------------------------------------

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_VERDICTS = {"yes", "no", "noanswer"}


def normalize_squad(text: str) -> str:
    """Lower-case, drop ASCII punctuation, then the articles a/an/the, then squeeze white space (SQuAD v1.1).

    >>> normalize_squad("The  Beatles' 'U.S.A.' tour")
    'beatles usa tour'
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(prediction: str, golds: str | Sequence[str]) -> float:
    """1.0 if the normalised prediction equals a normalised gold answer, else 0.0."""
    answer = normalize_squad(prediction)
    return float(any(answer == normalize_squad(gold) for gold in _gold_texts(golds)))


def token_f1(prediction: str, golds: str | Sequence[str]) -> float:
    """Return the best token F1 over the gold answers, in [0, 1].

    As in HotpotQA, "yes", "no" and "noanswer" on either side count only when both sides are equal.

    >>> round(token_f1("Barack Obama Jr", ["Barack Obama", "Obama"]), 3)
    0.8
    """
    answer = normalize_squad(prediction)
    return max(_f1(answer, normalize_squad(gold)) for gold in _gold_texts(golds))


def _gold_texts(golds: str | Sequence[str]) -> Sequence[str]:
    several = [golds] if isinstance(golds, str) else golds
    if not several or not all(isinstance(gold, str) for gold in several):
        raise ValueError(f"golds must be a str or a non-empty sequence of str, got {golds!r:.80}")
    return several


def _f1(answer: str, gold: str) -> float:
    if answer != gold and (answer in _VERDICTS or gold in _VERDICTS):
        return 0.0
    answer_tokens, gold_tokens = answer.split(), gold.split()
    common = (Counter(answer_tokens) & Counter(gold_tokens)).total()
    if common == 0:
        return 0.0
    precision, recall = common / len(answer_tokens), common / len(gold_tokens)
    return 2 * precision * recall / (precision + recall)
