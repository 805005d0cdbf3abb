"""Grades a second: ``grade_math`` against math-verify alone, on the same answers in the same run."""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Callable

from agentic_gym.answers import grade_math

CASES = {
    "right integer": [(f"\\boxed{{{n}}}", str(n)) for n in range(10_000, 12_000)],
    "wrong integer": [(f"\\boxed{{{n}}}", str(n + 1)) for n in range(10_000, 12_000)],
    "fraction": [(f"\\boxed{{\\frac{{{n}}}{{7}}}}", f"{2 * n}/14") for n in range(10_001, 12_001)],
    "no number": [(f"I cannot say, {word * 3}", "42") for word in ("perhaps ", "sorry ", "no ") * 600],
    "root (symbolic)": [(f"\\boxed{{\\sqrt{{{4 * n}}}}}", f"2\\sqrt{{{n}}}") for n in range(1001, 1301)],
}


def _math_verify(prediction: str, gold: str) -> bool:
    from math_verify import parse, verify

    return bool(verify(parse(f"${gold}$"), parse(f"${prediction}$")))


def _rate(grade: Callable[[str, str], object], pairs: list[tuple[str, str]], seconds: float) -> float:
    """Grade distinct pairs for about `seconds`; returns grades a second."""
    grade(*pairs[0])  # Imports and starts what there is to start.
    start, done = time.perf_counter(), 0
    while done < len(pairs) - 1 and time.perf_counter() - start < seconds:
        done += 1
        grade(*pairs[done])
    return done / (time.perf_counter() - start)


def main(argv: list[str]) -> int:
    """Print a table; needs the extra ``math``."""
    parser = argparse.ArgumentParser(prog="throughput.py grading", description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="time for each cell (default 2)")
    seconds = parser.parse_args(argv).seconds
    logging.disable(logging.WARNING)
    print(f"{'answers':<18}{'grade_math /s':>15}{'math-verify /s':>16}{'ratio':>9}")
    for name, pairs in CASES.items():
        ours, theirs = _rate(grade_math, pairs, seconds), _rate(_math_verify, pairs, seconds)
        print(f"{name:<18}{ours:>15,.0f}{theirs:>16,.0f}{ours / theirs:>9,.1f}")
    return 0
