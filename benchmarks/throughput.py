"""Speed benchmarks, each beside a baseline in the same run: `python -m agentic_gym.benchmarks.throughput NAME [options]`.

One file of `benchmarks/speed/` is one benchmark; `NAME --help` shows its options.
"""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path

__all__ = ["benchmarks", "main"]

_FOLDER = Path(__file__).resolve().parent / "speed"


def benchmarks() -> dict[str, str]:
    """The first line that each benchmark says about itself, by name."""
    found = {}
    for path in sorted(_FOLDER.glob("*.py")):
        if not path.stem.startswith("_"):
            text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            found[path.stem] = text.partition("\n")[0]
    return found


def main(argv: list[str]) -> int:
    """Run the benchmark named first with the other arguments; without a name, list them. Returns the exit code."""
    known = benchmarks()
    if not argv or argv[0] in ("-h", "--help"):
        print("usage: throughput.py NAME [options]\n")
        for name, line in known.items():
            print(f"  {name:12} {line}")
        print("\nexample: python -m agentic_gym.benchmarks.throughput training --repeats 5")
        return 0
    if argv[0] not in known:
        print(f"there is no benchmark {argv[0]!r}; known: {', '.join(known)}", file=sys.stderr)
        return 2
    result: int = importlib.import_module(f"agentic_gym.benchmarks.speed.{argv[0]}").main(argv[1:])
    return result


if __name__ == "__main__":
    # Run as a file, Python looks for packages in this folder and not in the one above.
    sys.path.insert(0, str(_FOLDER.parent.parent))
    raise SystemExit(main(sys.argv[1:]))
