"""Run one piece of user code the way `python file.py` or a notebook cell would."""

from __future__ import annotations

import ast
import linecache
import sys
import traceback
import types
from typing import Any

OK, ERROR, OUT_OF_MEMORY = 0, 1, -1


def fresh_main() -> dict[str, Any]:
    """A new `__main__` module; returns its namespace."""
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    module.__dict__["__builtins__"] = __builtins__
    return module.__dict__


def run(source: str | bytes, filename: str, namespace: dict[str, Any], *, echo: bool) -> int:
    """Execute `source`; with `echo`, print the value of a last expression unless it is None.

    Returns the exit code, or OUT_OF_MEMORY. An exception is printed to stderr as the interpreter would.
    """
    try:
        text = source if isinstance(source, str) else source.decode("utf-8", "replace")
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
        tree = ast.parse(source, filename)
        last = tree.body.pop() if echo and tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, filename, "exec"), namespace)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), filename, "eval"), namespace)
            if value is not None:
                print(repr(value))
        return OK
    except SystemExit as stop:
        return _exit_code(stop.code)
    except BaseException as error:
        _report(error)
        return OUT_OF_MEMORY if isinstance(error, MemoryError) else ERROR


def _exit_code(code: object) -> int:
    if code is None:
        return OK
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return ERROR


def _report(error: BaseException) -> None:
    """Print the traceback, without the frames of this file."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    try:
        traceback.print_exception(type(error), error, trace)
    except BaseException:  # a hostile __str__, a broken stderr, no memory left: the type must do
        sys.stderr.write(f"{type(error).__name__}\n")
