import math
import os
import random
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_gym.answers import grade_math
from agentic_gym.envs.math_tasks import KINDS, Kind, generate_arithmetic
from agentic_gym.tasks import Task


def drawn(kind: Kind, n: int, seed: int = 0) -> list[tuple[Task, tuple[int, ...]]]:
    rng = random.Random(seed)
    values = [kind.draw(rng) for _ in range(n)]
    return [(kind.task(v), v) for v in values]


def kind_id(kind: Kind) -> str:
    return f"{kind.level}-{kind.name}"


def test_every_program_prints_the_answer() -> None:
    """All kinds' programs in one fresh interpreter, each with names of its own."""
    tasks = [task for kind in KINDS for task, _ in drawn(kind, 5)]
    script = "programs = " + repr([task.info["program"] for task in tasks]) + "\nfor p in programs: exec(p, {})"
    ended = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == [task.answer for task in tasks]


def test_every_expression_has_the_value() -> None:
    for kind in KINDS:
        for task, _ in drawn(kind, 2):
            expression = task.info["expression"]
            if "\n" not in expression:
                assert str(int(eval(expression))) == task.answer
            else:
                assert expression == task.info["program"]


def reference(name: str, v: tuple[int, ...]) -> int:
    """The answers once more, by definition or by sympy, from the parameters alone."""
    sympy = pytest.importorskip("sympy")
    if name == "gcd":
        return max(d for d in range(1, min(v) + 1) if v[0] % d == v[1] % d == 0)
    if name == "lcm":
        return next(k for k in range(v[0], v[0] * v[1] + 1, v[0]) if k % v[1] == 0)
    if name == "modular_power":
        return int(sympy.Mod(sympy.Integer(v[0]) ** v[1], v[2]))
    if name == "digit_sum":
        return int(sum(sympy.ntheory.digits(v[0] ** v[1])[1:]))
    if name == "divisor_count":
        return int(sympy.divisor_count(v[0]))
    if name == "prime_count":
        return sum(p % v[1] == v[2] for p in sympy.primerange(2, v[0] + 1))
    if name == "nth_prime":
        return int(sympy.prime(v[0]))
    if name == "multiple_count":
        either = set(range(v[1], v[0] + 1, v[1])) | set(range(v[2], v[0] + 1, v[2]))
        return len(either - set(range(0, v[0] + 1, v[3])))
    if name == "digit_sum_range":
        return sum(n for n in range(v[0], v[0] + v[1]) if sum(sympy.ntheory.digits(n)[1:]) % v[2] == 0)
    if name == "pair_count":
        return sum((a + b) % v[1] == 0 for b in range(1, v[0] + 1) for a in range(1, b))
    if name == "divisor_search":
        return next(n for n in range(v[0], 10**6) if sympy.divisor_count(n) == v[1])
    arithmetic = {
        "add": lambda a, b: a + b,
        "subtract": lambda a, b: a - b,
        "multiply": lambda a, b: sum([a] * b),
        "brackets": lambda a, b, c, d: a * c - a * d + b * c - b * d,
        "chain": lambda a, b, c, d, e: sum([a] * b) + sum([c] * d) - e,
        "remainder": lambda a, b, c, m: divmod(a * b + c, m)[1],
    }
    return arithmetic[name](*v)


@pytest.mark.parametrize("kind", KINDS, ids=kind_id)
def test_answers_agree_with_a_second_way(kind: Kind) -> None:
    for task, values in drawn(kind, 25, seed=1):
        assert int(task.answer) == reference(kind.name, values), task.prompt


@pytest.mark.parametrize("kind", KINDS, ids=kind_id)
def test_every_parameter_stands_in_prompt_program_and_id(kind: Kind) -> None:
    for task, values in drawn(kind, 10):
        assert task.id.split("-")[1:] == list(map(str, values))
        for value in map(str, values):
            assert value in task.prompt
            assert value in task.info["program"]
        assert (task.level, task.info["kind"]) == (kind.level, kind.name)
        assert grade_math(task.answer, task.answer, symbolic=False).correct


def test_levels_and_counts() -> None:
    tasks = generate_arithmetic(40)
    assert tasks.levels == [0, 1, 2, 3, 4, 5]
    assert [len(tasks.filter(levels=level)) for level in range(6)] == [40] * 6
    assert len({task.prompt for task in tasks}) == len(tasks)
    for level in range(6):
        kinds = {kind.name for kind in KINDS if kind.level == level}
        assert {task.info["kind"] for task in tasks.filter(levels=level)} == kinds
    assert tasks.name == "arithmetic"
    assert tasks.split_name == "train"


def test_level_0_is_complete_and_fully_divided() -> None:
    train = generate_arithmetic(1000, levels=0)
    test = generate_arithmetic(1000, levels=0, split="test")
    assert (len(train), len(test)) == (152, 48)
    prompts = {task.prompt for task in train} | {task.prompt for task in test}
    assert prompts == {f"What is {a} {sign} {b}?" for a in range(10) for b in range(10) for sign in "+-"}


def test_train_and_test_share_no_content_whatever_the_seeds() -> None:
    train = [t for seed in range(4) for t in generate_arithmetic(150, seed=seed)]
    test = [t for seed in range(4) for t in generate_arithmetic(150, seed=seed, split="test")]
    assert not {t.prompt for t in train} & {t.prompt for t in test}

    def unordered(task: Task) -> tuple[object, ...]:
        name, *values = task.id.split("-")
        kind = next(k for k in KINDS if (k.name, k.level) == (name, task.level))
        return (name, *(sorted(values) if kind.symmetric else values))

    assert not {unordered(t) for t in train} & {unordered(t) for t in test}


def test_seeds_differ_and_repeat() -> None:
    assert generate_arithmetic(20, seed=1) == generate_arithmetic(20, seed=1)
    first, second = (set(generate_arithmetic(50, levels=[3, 4, 5], seed=s).ids) for s in (42, 43))
    assert len(first & second) < 15


@given(st.sets(st.integers(0, 5), min_size=1), st.integers(1, 30), st.integers(0, 3))
def test_a_levels_tasks_depend_on_nothing_else(levels: set[int], n: int, seed: int) -> None:
    tasks = generate_arithmetic(n, levels=levels, seed=seed)
    whole = generate_arithmetic(30, seed=seed)
    for level in levels:
        assert tasks.filter(levels=level).ids == whole.filter(levels=level).ids[:n]


def test_the_same_tasks_in_every_process() -> None:
    code = "from agentic_gym.envs.math_tasks import *; print(generate_arithmetic(30, seed=5).content_hash)"
    hashes = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for hash_seed in ("0", "7")
    }
    assert hashes == {"5097f65065e698f9026fb360f100e61ffa77aa8a0cc615da62812471d71b68b7"}


def test_the_global_generator_is_left_alone() -> None:
    state = random.getstate()
    generate_arithmetic(10, seed=123456)
    assert random.getstate() == state


def test_about_a_quarter_is_held_out() -> None:
    for kind in KINDS:
        rng = random.Random(0)
        share = sum(kind.split_of(kind.draw(rng)) == "test" for _ in range(1500)) / 1500
        assert 0.15 < share < 0.35, kind.name


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"levels": [6]}, "levels must be among"),
        ({"levels": []}, "levels must be among"),
        ({"levels": ["0"]}, "levels must be among"),
        ({"split": "dev"}, "split must be"),
        ({"n": 0}, "at least 1"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, object], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        generate_arithmetic(**arguments)  # type: ignore[arg-type]


def test_pair_count_by_hand() -> None:
    kind = next(k for k in KINDS if k.name == "pair_count")
    assert kind.answer(5, 3) == 4  # 1+2, 1+5, 2+4, 4+5
    assert kind.answer(4, 2) == 2
    assert math.comb(5, 2) == kind.answer(5, 1)
