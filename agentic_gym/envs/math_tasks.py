"""Seeded arithmetic problems in six levels, from sums a small model can know to what needs a program.

- ``generate_arithmetic``: a ``TaskSet`` of distinct problems.
- ``KINDS``: the table of problem kinds; a new kind is one entry.

| level | problems |
| --- | --- |
| 0 | one-digit sums and differences |
| 1 | two-digit sums and differences |
| 2 | two-digit products |
| 3 | several steps: brackets, chains, remainders |
| 4 | number theory: gcd, lcm, modular powers, digit sums, divisor counts |
| 5 | counting and searching, which wants a short program |

Whether a problem belongs to train or test hangs on its content alone (a hash; one in four is for test), so no seed
can carry a problem, or the same one with swapped operands, over to the other side.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from agentic_gym.tasks import Task, TaskSet

__all__ = ["KINDS", "Kind", "generate_arithmetic"]

Split = Literal["train", "test"]


@dataclass(frozen=True)
class Kind:
    """One kind of problem: independent integer parameters, three texts, and the answer."""

    name: str
    level: int
    ranges: tuple[range, ...]
    """The values of each parameter."""
    prompt: str
    """The problem, with {0}, {1}, ... for the parameters."""
    program: str
    """Python source that prints the answer, with the same fields; written apart from `answer`."""
    answer: Callable[..., int]
    symmetric: bool = False
    """Whether the parameters' order does not matter: 3 + 4 and 4 + 3 then fall on the same side of the split."""
    valid: Callable[..., bool] | None = None
    """Which parameters make a problem; None: all."""

    def draw(self, rng: random.Random) -> tuple[int, ...]:
        """Draw valid parameters, each uniform over its range."""
        while True:
            # Only random() is promised to repeat in every Python version.
            values = tuple(choices[int(rng.random() * len(choices))] for choices in self.ranges)
            if self.valid is None or self.valid(*values):
                return values

    def split_of(self, values: tuple[int, ...]) -> Split:
        """Return the side of the problem: a stable hash of its content puts one in four into "test"."""
        content = f"{self.name} {sorted(values) if self.symmetric else list(values)}"
        return "test" if hashlib.sha256(content.encode()).digest()[0] % 4 == 0 else "train"

    def task(self, values: tuple[int, ...]) -> Task:
        """Build the task; its id says what it is, e.g. ``add-3-4``."""
        program = self.program.format(*values)
        one_line = "\n" not in program
        expression = program.removeprefix("print(").removesuffix(")") if one_line else program
        info = {"kind": self.name, "expression": expression, "program": program}
        return Task(
            "-".join(map(str, (self.name, *values))),
            self.prompt.format(*values),
            str(self.answer(*values)),
            self.level,
            info,
        )


def generate_arithmetic(
    n: int = 100, *, levels: Iterable[int] | int = range(6), seed: int = 0, split: Split = "train"
) -> TaskSet:
    """Generate up to `n` distinct problems for each level.

    A level with fewer than `n` problems on this side of the split gives what it has: level 0 holds 152 for train
    and 48 for test, level 2 about 6,100 and 2,000. A level's tasks do not depend on which other levels are asked
    for, and a larger `n` only appends to each level.

    Args:
        n: problems per level, at least 1.
        levels: which levels, of 0 to 5.
        seed: which problems; the same seed gives the same tasks on every machine.
        split: "train" or "test"; the two never share a problem, whatever the seeds.

    Returns:
        Tasks by ascending level. `answer` is the integer as text. `info` holds `kind`, `program` (Python source
        that prints the answer) and `expression` (the Python expression with that value, or the program again
        where it takes more than one line).

    >>> tasks = generate_arithmetic(1, levels=[0, 2])
    >>> [(task.id, task.prompt, task.answer) for task in tasks]
    [('add-1-9', 'What is 1 + 9?', '10'), ('multiply-92-60', 'What is 92 * 60?', '5520')]
    >>> tasks[1].info["expression"], tasks[1].info["program"]
    ('92 * 60', 'print(92 * 60)')
    """
    wanted = {levels} if isinstance(levels, int) else set(levels)
    if not wanted or not wanted <= set(range(6)):
        raise ValueError(f"levels must be among 0, 1, 2, 3, 4, 5, got {levels!r}.")
    if split not in ("train", "test"):
        raise ValueError(f"split must be 'train' or 'test', got {split!r}.")
    if n < 1:
        raise ValueError(f"n, the number of problems per level, must be at least 1, got {n!r}.")
    parts = (_generate_level(n, level, seed, split) for level in sorted(wanted))
    return TaskSet((task for part in parts for task in part), name="arithmetic", split=split)


@lru_cache(maxsize=64)
def _generate_level(n: int, level: int, seed: int, split: Split) -> tuple[Task, ...]:
    kinds = [kind for kind in KINDS if kind.level == level]
    rng = random.Random(f"arithmetic {seed} {level} {split}")  # A text seed does not depend on PYTHONHASHSEED.
    tasks: dict[tuple[str, tuple[int, ...]], Task] = {}
    misses = 0
    while len(tasks) < n and misses < _MAX_MISSES:
        kind = kinds[int(rng.random() * len(kinds))]
        values = kind.draw(rng)
        if kind.split_of(values) == split and (kind.name, values) not in tasks:
            tasks[kind.name, values] = kind.task(values)
            misses = 0
        else:
            misses += 1
    return tuple(tasks.values())


_MAX_MISSES = 5_000  # So many draws in a row without a new problem: the level is exhausted.


# -- answers that need more than an operator ----------------------------------------------------------------


def _digit_sum(n: int) -> int:
    return sum(map(int, str(n)))


def _divisor_count(n: int) -> int:
    count, p = 1, 2
    while p * p <= n:
        exponent = 0
        while n % p == 0:
            n, exponent = n // p, exponent + 1
        count, p = count * (exponent + 1), p + 1
    return count * (2 if n > 1 else 1)


@lru_cache(maxsize=1)
def _primes() -> list[int]:
    """The primes below 20,000."""
    sieve = bytearray([1]) * 20_000
    sieve[:2] = b"\0\0"
    for p in range(2, 142):
        if sieve[p]:
            sieve[p * p :: p] = bytes(len(sieve[p * p :: p]))
    return [n for n, is_prime in enumerate(sieve) if is_prime]


def _count_multiples(limit: int, a: int, b: int, c: int) -> int:
    """Count 1..limit divisible by a or b but not by c, by inclusion and exclusion."""
    total = 0
    for sign, d in ((1, a), (1, b), (-1, math.lcm(a, b))):
        total += sign * (limit // d - limit // math.lcm(d, c))
    return total


def _count_pairs(limit: int, m: int) -> int:
    """Count pairs 1 <= a < b <= limit with m dividing a + b, residue by residue."""
    counts = [(limit - r) // m + (r > 0) for r in range(m)]
    total = 0
    for r in range(m):
        s = (m - r) % m
        total += counts[r] * (counts[r] - 1) if r == s else counts[r] * counts[s]
    return total // 2


def _first_with_divisors(start: int, count: int) -> int:
    n = start
    while _divisor_count(n) != count:
        n += 1
    return n


_DIGIT = range(10)
_TWO_DIGITS = range(10, 100)
_IS_PRIME = "def is_prime(n):\n    return n > 1 and all(n % d for d in range(2, int(n**0.5) + 1))\n\n"

KINDS: tuple[Kind, ...] = (
    Kind("add", 0, (_DIGIT, _DIGIT), "What is {0} + {1}?", "print({0} + {1})", lambda a, b: a + b, symmetric=True),
    Kind("subtract", 0, (_DIGIT, _DIGIT), "What is {0} - {1}?", "print({0} - {1})", lambda a, b: a - b),
    Kind("add", 1, (_TWO_DIGITS,) * 2, "What is {0} + {1}?", "print({0} + {1})", lambda a, b: a + b, symmetric=True),
    Kind("subtract", 1, (_TWO_DIGITS,) * 2, "What is {0} - {1}?", "print({0} - {1})", lambda a, b: a - b),
    Kind(
        "multiply", 2, (_TWO_DIGITS,) * 2, "What is {0} * {1}?", "print({0} * {1})", lambda a, b: a * b, symmetric=True
    ),
    Kind(
        "brackets",
        3,
        (_TWO_DIGITS,) * 4,
        "What is ({0} + {1}) * ({2} - {3})?",
        "print(({0} + {1}) * ({2} - {3}))",
        lambda a, b, c, d: (a + b) * (c - d),
    ),
    Kind(
        "chain",
        3,
        (_TWO_DIGITS, _TWO_DIGITS, _TWO_DIGITS, _TWO_DIGITS, range(100, 1000)),
        "What is {0} * {1} + {2} * {3} - {4}?",
        "print({0} * {1} + {2} * {3} - {4})",
        lambda a, b, c, d, e: a * b + c * d - e,
    ),
    Kind(
        "remainder",
        3,
        (_TWO_DIGITS, _TWO_DIGITS, _TWO_DIGITS, range(7, 100)),
        "What is the remainder when {0} * {1} + {2} is divided by {3}?",
        "print(({0} * {1} + {2}) % {3})",
        lambda a, b, c, m: (a % m * (b % m) + c) % m,
    ),
    Kind(
        "gcd",
        4,
        (range(12, 5000, 12), range(18, 5000, 6)),
        "What is the greatest common divisor of {0} and {1}?",
        "import math\nprint(math.gcd({0}, {1}))",
        math.gcd,
        symmetric=True,
    ),
    Kind(
        "lcm",
        4,
        (range(12, 1000), range(12, 1000)),
        "What is the least common multiple of {0} and {1}?",
        "import math\nprint(math.lcm({0}, {1}))",
        lambda a, b: a * b // math.gcd(a, b),
        symmetric=True,
    ),
    Kind(
        "modular_power",
        4,
        (range(2, 100), range(10, 200), range(11, 1000)),
        "What is the remainder when {0}^{1} is divided by {2}?",
        "print(pow({0}, {1}, {2}))",
        lambda a, b, m: a**b % m,
    ),
    Kind(
        "digit_sum",
        4,
        (range(2, 100), range(8, 60)),
        "What is the sum of the decimal digits of {0}^{1}?",
        "print(sum(int(digit) for digit in str({0}**{1})))",
        lambda a, b: _digit_sum(a**b),
        valid=lambda a, b: a % 10 > 0,
    ),
    Kind(
        "divisor_count",
        4,
        (range(200, 20_000),),
        "How many positive divisors does {0} have?",
        "print(sum({0} % d == 0 for d in range(1, {0} + 1)))",
        _divisor_count,
    ),
    Kind(
        "prime_count",
        5,
        (range(300, 5000), range(3, 13), range(1, 12)),
        "How many primes p <= {0} leave the remainder {2} when divided by {1}?",
        _IS_PRIME + "print(sum(is_prime(p) and p % {1} == {2} for p in range(2, {0} + 1)))",
        lambda limit, m, r: sum(p <= limit and p % m == r for p in _primes()),
        valid=lambda limit, m, r: r < m and math.gcd(m, r) == 1,
    ),
    Kind(
        "nth_prime",
        5,
        (range(50, 2000),),
        "What is the prime number in position {0} when the primes are listed in order, 2 being the first?",
        _IS_PRIME + "n, found = 1, 0\nwhile found < {0}:\n    n += 1\n    found += is_prime(n)\nprint(n)",
        lambda k: _primes()[k - 1],
    ),
    Kind(
        "multiple_count",
        5,
        (range(500, 10_000), range(3, 20), range(3, 20), range(3, 20)),
        "How many integers from 1 to {0} are divisible by {1} or by {2}, but not by {3}?",
        "print(sum((n % {1} == 0 or n % {2} == 0) and n % {3} != 0 for n in range(1, {0} + 1)))",
        _count_multiples,
        valid=lambda limit, a, b, c: a < b and b % a > 0 and a % c > 0 and b % c > 0,
    ),
    Kind(
        "digit_sum_range",
        5,
        (range(100, 1000), range(200, 1000), range(3, 12)),
        "What is the sum of all integers n with {0} <= n < {0} + {1} whose digit sum is divisible by {2}?",
        "print(sum(n for n in range({0}, {0} + {1}) if sum(map(int, str(n))) % {2} == 0))",
        lambda start, width, k: sum(n for n in range(start, start + width) if _digit_sum(n) % k == 0),
    ),
    Kind(
        "pair_count",
        5,
        (range(30, 300), range(3, 40)),
        "How many pairs of integers (a, b) with 1 <= a < b <= {0} have a sum divisible by {1}?",
        "print(sum((a + b) % {1} == 0 for a in range(1, {0} + 1) for b in range(a + 1, {0} + 1)))",
        _count_pairs,
    ),
    Kind(
        "divisor_search",
        5,
        (range(100, 3000), range(6, 17, 2)),
        "What is the smallest integer n >= {0} with exactly {1} positive divisors?",
        "n = {0}\nwhile sum(n % d == 0 for d in range(1, n + 1)) != {1}:\n    n += 1\nprint(n)",
        _first_with_divisors,
    ),
)
"""Every kind, by level."""
