"""Who may import whom, and what `import agentic_gym` may cost. Read from the source with ``ast``."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1] / "agentic_gym"

LAYERS = {
    7: ["benchmarks", "cli", "commands"],
    6: ["trainers"],
    5: ["policies"],
    4: ["wrappers", "judges"],
    3: ["envs", "task_sources"],
    2: ["tools", "text_env", "check_env", "configs"],
    1: ["spaces", "actions", "tasks", "answers", "symbolic", "episodes", "roles", "role_theory", "files", "ranges"],
}
LEVEL = {name: level for level, names in LAYERS.items() for name in names}
HEAVY = {"torch", "transformers", "tokenizers", "safetensors"}
MAY_USE_HEAVY = ("policies", "trainers", "benchmarks")
"""Folders whose modules may import torch and transformers (credit may not)."""
NOT_AT_IMPORT = (
    "torch", "transformers", "httpx", "rich", "tyro", "cattrs", "yaml", "sympy", "math_verify", "pyarrow", "datasets",
    "matplotlib", "starlette", "bm25s", "rapidfuzz", "asyncio",
)  # fmt: skip


def modules() -> list[Path]:
    # rglob does not follow the four links, so their folders are walked by name.
    folders = [ROOT, *[ROOT / name for name in ("wrappers", "policies", "trainers", "benchmarks")]]
    found = {path for folder in folders if folder.is_dir() for path in folder.rglob("*.py")}
    return sorted(found)


def imports(path: Path, *, module_level: bool = False) -> Iterator[str]:
    """The full names that a file imports, anywhere or (``module_level``) when it is loaded."""
    waiting: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: import by full name"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif module_level and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        elif module_level and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        waiting.extend(ast.iter_child_nodes(node))


def part(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def test_the_walk_sees_the_linked_folders() -> None:
    parts = {part(path) for path in modules()}
    assert {"envs", "tools", "wrappers", "policies", "text_env"} <= parts


def test_every_module_has_a_layer() -> None:
    unknown = {part(path) for path in modules()} - set(LEVEL) - {"__init__"}
    assert not unknown, f"give {unknown} a place in LAYERS"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_imports_a_higher_layer(path: Path) -> None:
    if part(path) == "__init__":
        return
    level = LEVEL[part(path)]
    for name in imports(path):
        if name.startswith("agentic_gym."):
            target = name.split(".")[1]
            if target in LEVEL:
                assert LEVEL[target] <= level, f"layer {level} imports {name} of layer {LEVEL[target]}"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_torch_stays_in_its_place(path: Path) -> None:
    relative = path.relative_to(ROOT)
    used = {name.split(".")[0] for name in imports(path)} & HEAVY
    if used and relative.parts != ("commands", "doctor.py"):  # which looks whether torch is there
        assert relative.parts[0] in MAY_USE_HEAVY, f"imports {used}"
        assert relative.parts[:2] != ("trainers", "credit"), "credit is pure numpy"


@pytest.mark.parametrize("path", [p for p in modules() if LEVEL.get(part(p)) == 1], ids=lambda path: path.name)
def test_the_lowest_layer_needs_numpy_and_gymnasium_only(path: Path) -> None:
    allowed = {*sys.stdlib_module_names, "numpy", "gymnasium", "agentic_gym"}
    assert {name.split(".")[0] for name in imports(path, module_level=True)} <= allowed


def loaded_by(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    return {line.split(".")[0] for line in done.stdout.splitlines()}


@pytest.mark.parametrize(
    "code",
    [
        "import agentic_gym",
        "import agentic_gym.wrappers, agentic_gym.check_env, agentic_gym.tasks, agentic_gym.answers",
        "import agentic_gym.policies",
        "import agentic_gym.trainers.credit",
        "import agentic_gym.cli",
    ],
)
def test_nothing_heavy_is_loaded(code: str) -> None:
    # What Gymnasium itself loads is not ours to judge.
    assert not (loaded_by(code) - loaded_by("import gymnasium, numpy")) & set(NOT_AT_IMPORT)


def test_import_takes_less_than_half_a_second() -> None:
    # CPU time and the best of five: other processes on the machine do not count.
    script = "import time; import agentic_gym; print(time.process_time())"
    best = min(
        float(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout)
        for _ in range(5)
    )
    assert best < 0.5


def test_python_runs_the_package_from_any_folder(tmp_path: Path) -> None:
    script = "import agentic_gym, gymnasium; print(all(i in gymnasium.registry for i in agentic_gym.ENVIRONMENTS))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True, text=True, check=True, cwd=tmp_path, env={"PYTHONPATH": str(ROOT.parent)},
    )  # fmt: skip
    assert done.stdout.strip() == "True"
