"""Run one piece of user code the way `python file.py` or a notebook cell would."""

from __future__ import annotations

import ast
import linecache
import os
import sys
import traceback
import types
from typing import Any

_OWN_FILES = os.path.dirname(os.path.abspath(__file__)) + os.sep
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
    """Print the traceback, without the frames of the sandbox itself."""
    try:
        report = traceback.TracebackException(type(error), error, error.__traceback__)
        for part in _chain(report):
            part.stack[:] = [frame for frame in part.stack if not frame.filename.startswith(_OWN_FILES)]
        sys.stderr.write("".join(report.format()))
    except BaseException:  # a hostile __str__, a broken stderr, no memory left: the type must do
        sys.stderr.write(f"{type(error).__name__}\n")


def _chain(report: traceback.TracebackException) -> list[traceback.TracebackException]:
    """The report and those of its causes and contexts."""
    found: list[traceback.TracebackException] = []
    queue: list[traceback.TracebackException | None] = [report]
    while queue:
        part = queue.pop()
        if part is not None and part not in found and len(found) < 1000:
            found.append(part)
            queue += [part.__cause__, part.__context__]
    return found
