"""Run one piece of user code the way `python file.py` or a notebook cell would."""

from __future__ import annotations

import ast
import linecache
import os
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
        # Not ast.parse: its frame, with the interpreter's path, would stand in the traceback of a SyntaxError.
        tree = compile(source, filename, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
        assert isinstance(tree, ast.Module)
        last = tree.body[-1] if echo and tree.body else None
        if isinstance(last, ast.Expr):
            tree.body.pop()
        exec(compile(tree, filename, "exec", dont_inherit=True), namespace)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), filename, "eval", dont_inherit=True), namespace)
            if value is not None:
                sys.stdout.write(f"{value!r}\n")
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
    sys.stderr.write(f"{code}\n")
    return ERROR


def _report(error: BaseException) -> None:
    """Print the traceback, without the frames of the sandbox itself."""
    try:
        report = traceback.TracebackException(type(error), error, error.__traceback__)
        own = _report.__code__.co_filename  # not __file__: this also runs as a server's `python -c`
        folder = os.path.dirname(own) + os.sep
        for part in _chain(report):
            part.stack[:] = [f for f in part.stack if f.filename != own and not f.filename.startswith(folder)]
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
