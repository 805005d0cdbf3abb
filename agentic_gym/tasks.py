"""Tasks and ordered, immutable, content-hashed sets of them.

- ``Task``: one problem: what the agent is told, and what the grader needs.
- ``TaskSet``: a sequence of tasks with lookup by id, splits, and a content hash for reports.
- ``read_records``: JSONL, JSON or parquet file to a list of dicts, with errors that name the line.
- ``near``: the known names closest to a mistyped one, for error messages.

A task holds JSON data only, so that every set can be hashed, pickled, and written to a file and read back
equal.
"""

from __future__ import annotations

import difflib
import gzip
import hashlib
import importlib
import io
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, overload

import numpy as np

from agentic_gym.files import reading, write_text

__all__ = ["Task", "TaskSet", "near", "read_records"]

Level = int | str | None
PROMPT_KEYS = ("prompt", "question", "problem")


def near(name: str, known: Iterable[str], n: int = 3) -> str:
    """Say which known names lie closest to `name`: `` Did you mean 'a' or 'b'?``, or nothing at all."""
    matches = difflib.get_close_matches(name, list(known), n=n, cutoff=0.5)
    return f" Did you mean {' or '.join(map(repr, matches))}?" if matches else ""


def _freeze(value: Any, where: str) -> Any:
    """Copy JSON data with tuples in place of lists; refuse anything else, naming `where` it stood."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        return tuple(_freeze(item, where) for item in value)
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _freeze(item, f"{where}[{key!r}]") for key, item in value.items()}
    raise TypeError(
        f"{where} holds {value!r} of type {type(value).__name__}; a task holds JSON data only: "
        "None, str, bool, int, float, lists, and dicts with str keys."
    )


@dataclass(frozen=True)
class Task:
    """One problem. Frozen; lists become tuples; equal when every field is equal.

    >>> Task("sum-1", "What is 3 + 4?", "7", level=0).answer
    '7'
    """

    id: str
    """Unique within its set."""
    prompt: str
    """The problem text; environments add their own instructions."""
    answer: Any = None
    """What the grader compares with (text, a number, a tuple of accepted ones); None: a simulator decides."""
    level: Level = None
    """Known difficulty, if any."""
    info: Mapping[str, Any] = field(default_factory=dict)
    """Anything else (a solution, gold passages, a program), read-only."""

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not self.id:
            raise TypeError(f"Task id must be a non-empty str, got {self.id!r}.")
        if not isinstance(self.prompt, str):
            raise TypeError(f"Task {self.id!r}: prompt must be a str, got {type(self.prompt).__name__}.")
        level = self.level.item() if isinstance(self.level, np.generic) else self.level
        if isinstance(level, bool) or not isinstance(level, (int, str, type(None))):
            raise TypeError(f"Task {self.id!r}: level must be an int, a str or None, got {self.level!r}.")
        if not isinstance(self.info, Mapping):
            raise TypeError(f"Task {self.id!r}: info must be a mapping, got {type(self.info).__name__}.")
        object.__setattr__(self, "level", level)
        object.__setattr__(self, "answer", _freeze(self.answer, f"Task {self.id!r}: answer"))
        object.__setattr__(self, "info", MappingProxyType(_freeze(self.info, f"Task {self.id!r}: info")))

    def __hash__(self) -> int:
        return hash((self.id, self.prompt))

    def __reduce__(self) -> tuple[Any, ...]:
        # A mappingproxy does not pickle, so the task is rebuilt from its record.
        return (Task, (self.id, self.prompt, self.answer, self.level, dict(self.info)))

    def __deepcopy__(self, memo: dict[int, Any]) -> Task:
        return self

    def to_record(self) -> dict[str, Any]:
        """Return the five fields as a plain dict that `TaskSet.from_records` reads back."""
        return {
            "id": self.id,
            "prompt": self.prompt,
            "answer": self.answer,
            "level": self.level,
            "info": dict(self.info),
        }


class TaskSet(Sequence[Task]):
    """An ordered, immutable sequence of tasks with unique ids.

    Two sets are equal when they hold equal tasks in the same order; `name` and `split` are labels. The
    `content_hash` is stable across machines and goes into every report.

    >>> tasks = TaskSet([Task("a", "1 + 1?", "2", 0), Task("b", "17 * 23?", "391", 2)], name="sums")
    >>> tasks["b"].answer, len(tasks), [task.id for task in tasks.filter(levels=0)]
    ('391', 2, ['a'])
    >>> tasks
    TaskSet('sums', 2 tasks, levels [0, 2], sha256 16275b3492bf)

    Raises:
        ValueError: two tasks with the same id.
    """

    def __init__(self, tasks: Iterable[Task], *, name: str = "tasks", split: str | None = None) -> None:
        self._tasks = tuple(tasks)
        self._name = name
        self._split = split
        self._hash: str | None = None
        self._position: dict[str, int] = {}
        for i, task in enumerate(self._tasks):
            if not isinstance(task, Task):
                raise TypeError(f"TaskSet {name!r}: item {i} is not a Task but {task!r:.60}; see from_records.")
            first = self._position.setdefault(task.id, i)
            if first != i:
                raise ValueError(
                    f"TaskSet {name!r}: items {first} and {i} share the id {task.id!r}; ids must be unique."
                )

    # -- construction -----------------------------------------------------------------------------------

    @classmethod
    def from_records(
        cls, records: Iterable[Mapping[str, Any]], *, name: str = "tasks", split: str | None = None
    ) -> TaskSet:
        """Build a set from dicts with `prompt` (or `question`, `problem`) and `answer`.

        `id`, `level` and `info` are taken where present and other keys go into `info`; a record without an
        id is called ``name-<position>``.
        """
        return cls((_task(record, i, name) for i, record in enumerate(records)), name=name, split=split)

    @classmethod
    def from_file(cls, path: str | Path, *, name: str | None = None, split: str | None = None) -> TaskSet:
        """Read a .jsonl, .json (a list) or .parquet file of records as `from_records` takes them.

        Raises:
            FileNotFoundError: no such file.
            ValueError: a broken file; the message names the file and the line.
            ImportError: parquet without pyarrow.
        """
        path = Path(path)
        return cls.from_records(read_records(path), name=name or path.name.split(".")[0], split=split)

    @classmethod
    def alfworld(cls, path: str | Path | None = None, *, split: str = "train") -> TaskSet:
        """ALFWorld's games in ``path`` (None: $ALFWORLD_DATA), in the folder layout of ALFWorld.

        See ``agentic_gym.envs.alfworld.tasks.alfworld_tasks``, which this calls.
        """
        # By name: a task set knows nothing of environments until it is asked for theirs.
        tasks: TaskSet = importlib.import_module("agentic_gym.envs.alfworld.tasks").alfworld_tasks(path, split=split)
        return tasks

    @classmethod
    def concat(cls, sets: Iterable[TaskSet], *, name: str | None = None, split: str | None = None) -> TaskSet:
        """Join sets in order; the default name joins theirs with ``+``. Shared ids are refused."""
        sets = list(sets)
        names = list(dict.fromkeys(s.name for s in sets))
        splits = {s.split_name for s in sets}
        return cls(
            (task for s in sets for task in s),
            name=name or "+".join(names) or "tasks",
            split=split if split is not None or len(splits) != 1 else splits.pop(),
        )

    def __add__(self, other: TaskSet) -> TaskSet:
        return TaskSet.concat([self, other]) if isinstance(other, TaskSet) else NotImplemented

    # -- the sequence -----------------------------------------------------------------------------------

    @overload
    def __getitem__(self, key: int | str) -> Task: ...
    @overload
    def __getitem__(self, key: slice) -> TaskSet: ...
    def __getitem__(self, key: int | str | slice) -> Task | TaskSet:
        if isinstance(key, slice):
            return self._derive(self._tasks[key])
        if isinstance(key, str):
            if key not in self._position:
                first = f" The first is {self._tasks[0].id!r}." if self._tasks else ""
                hint = near(key, self._position) or first
                raise KeyError(f"No task {key!r} among the {len(self)} of {self._name!r}.{hint}")
            return self._tasks[self._position[key]]
        try:
            return self._tasks[key]
        except IndexError:
            message = f"Task index {key} is out of range: {self._name!r} holds {len(self)} tasks."
            raise IndexError(message) from None

    def __len__(self) -> int:
        return len(self._tasks)

    def __iter__(self) -> Iterator[Task]:
        return iter(self._tasks)

    def __contains__(self, item: object) -> bool:
        """Whether a task, or a task with this id, is in the set."""
        if isinstance(item, str):
            return item in self._position
        return isinstance(item, Task) and item.id in self._position and self[item.id] == item

    def __eq__(self, other: object) -> bool:
        return self._tasks == other._tasks if isinstance(other, TaskSet) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._tasks)

    def __deepcopy__(self, memo: dict[int, Any]) -> TaskSet:
        return self

    def __repr__(self) -> str:
        split = f", split={self._split!r}" if self._split else ""
        levels = f", levels {self.levels}" if self.levels else ""
        return f"TaskSet({self._name!r}{split}, {len(self)} tasks{levels}, sha256 {self.content_hash[:12]})"

    # -- facts ------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """What the set is called in reports."""
        return self._name

    @property
    def split_name(self) -> str | None:
        """Which split of its source the set is ("train", "test"), if known."""
        return self._split

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids in order."""
        return tuple(self._position)

    @property
    def levels(self) -> list[int | str]:
        """The distinct known levels: numbers ascending, then names."""
        found = {task.level for task in self._tasks if task.level is not None}
        return sorted(found, key=lambda level: (isinstance(level, str), level))

    @property
    def content_hash(self) -> str:
        """SHA-256 (hex) over the canonical JSON of every task in order; name and split do not count."""
        if self._hash is None:
            digest = hashlib.sha256()
            for task in self._tasks:
                line = json.dumps(task.to_record(), sort_keys=True, separators=(",", ":"))
                digest.update(line.encode() + b"\n")
            self._hash = digest.hexdigest()
        return self._hash

    # -- parts ------------------------------------------------------------------------------------------

    def filter(self, *, levels: int | str | Iterable[int | str]) -> TaskSet:
        """Keep the tasks of these levels (one, or several).

        Raises:
            ValueError: no task has such a level.
        """
        wanted = {levels} if isinstance(levels, (int, str)) else set(levels)
        kept = self._derive(task for task in self._tasks if task.level in wanted)
        if not kept:
            raise ValueError(
                f"No task of {self._name!r} has a level in {sorted(wanted, key=str)}; it has {self.levels}."
            )
        return kept

    def subset(self, indices: Iterable[int]) -> TaskSet:
        """Take the tasks at these positions, in this order."""
        return self._derive(self[int(i)] for i in indices)

    def split(
        self, size: int | float, *, seed: int = 0, names: tuple[str, str] = ("train", "test")
    ) -> tuple[TaskSet, TaskSet]:
        """Divide into `size` tasks and the rest, each in the original order.

        Args:
            size: a number of tasks (int) or a fraction (float between 0 and 1) for the first part.
            seed: which tasks; the choice hangs on seed and ids only, so it is the same on every machine.
            names: the two parts' split names.
        """
        n = round(size * len(self)) if isinstance(size, float) and 0 < size < 1 else size
        if not isinstance(n, int) or isinstance(n, bool) or not 0 < n < len(self):
            raise ValueError(
                f"split size must be a fraction in (0, 1) or a count in 1..{len(self) - 1} that leaves both "
                f"parts non-empty, got {size!r} for {len(self)} tasks."
            )
        rank = {task.id: hashlib.sha256(f"{seed}\n{task.id}".encode()).digest() for task in self._tasks}
        first = set(sorted(rank, key=rank.__getitem__)[:n])
        return (
            TaskSet((t for t in self._tasks if t.id in first), name=self._name, split=names[0]),
            TaskSet((t for t in self._tasks if t.id not in first), name=self._name, split=names[1]),
        )

    def sample(self, rng: np.random.Generator) -> Task:
        """Draw one task uniformly with the caller's generator."""
        if not self._tasks:
            raise ValueError(f"TaskSet {self._name!r} is empty; there is nothing to sample.")
        return self._tasks[int(rng.integers(len(self._tasks)))]

    def to_jsonl(self, path: str | Path) -> None:
        """Write one record a line; `from_file` reads back an equal set."""
        lines = "".join(json.dumps(task.to_record(), ensure_ascii=True) + "\n" for task in self._tasks)
        write_text(Path(path), lines)

    def _derive(self, tasks: Iterable[Task]) -> TaskSet:
        return TaskSet(tasks, name=self._name, split=self._split)


def _task(record: Mapping[str, Any], i: int, name: str) -> Task:
    if not isinstance(record, Mapping):
        raise TypeError(f"Record {i} of {name!r} is not a mapping but {record!r:.80}")
    rest = dict(record)
    prompt_key = next((key for key in PROMPT_KEYS if key in rest), None)
    if prompt_key is None:
        raise ValueError(f"Record {i} of {name!r} has none of the keys {PROMPT_KEYS}; it has {sorted(rest)}.")
    prompt, answer, level = rest.pop(prompt_key), rest.pop("answer", None), rest.pop("level", None)
    given = rest.pop("id", None)
    info = rest.pop("info", None) or {}
    if not isinstance(info, Mapping):
        raise ValueError(f"Record {i} of {name!r}: info must be a mapping, got {info!r:.80}")
    return Task(f"{name}-{i}" if given is None else str(given), prompt, answer, level, {**rest, **info})


# -- files --------------------------------------------------------------------------------------------------

_TASK_FILE = "give a .jsonl, .json (both also .gz) or .parquet file"


def read_records(path: str | Path) -> list[dict[str, Any]]:
    """Read a .jsonl, .json (a list of objects) or .parquet file; .jsonl.gz and .json.gz too.

    Raises:
        OSError: no such file, or one that may not be read.
        ValueError: not one of these kinds, or broken; the message names the file and the line.
        ImportError: parquet without pyarrow.
    """
    path = Path(path)
    with reading(path, "task file", fix=_TASK_FILE):
        path.open("rb").close()
    kind = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    if kind == "parquet":
        return _read_parquet(path)
    if kind not in ("jsonl", "json"):
        raise ValueError(f"{path} is not a task file: {_TASK_FILE}")
    text = _read_text(path)
    # Split on \n alone: U+2028 and the like may stand inside a JSON string.
    lines = text.split("\n") if kind == "jsonl" else [text]
    values = [(n, _parse_json(line, path, n)) for n, line in enumerate(lines, start=1) if line.strip()]
    if kind == "json":
        if len(values) != 1 or not isinstance(values[0][1], list):
            raise ValueError(f"{path} must hold one JSON list of objects.")
        values = list(enumerate(values[0][1], start=1))
    for n, value in values:
        if not isinstance(value, dict):
            raise ValueError(f"{path}, {'line' if kind == 'jsonl' else 'item'} {n}: not an object but {value!r:.60}")
    return [value for _, value in values]


def _read_text(path: Path) -> str:
    data = path.read_bytes()
    try:
        if path.name.lower().endswith(".gz"):
            data = gzip.GzipFile(fileobj=io.BytesIO(data)).read()
        return data.decode("utf-8-sig")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} is not a complete gzip file: {error}") from error
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ValueError(f"{path}, line {line}: not UTF-8 ({error.reason} at byte {error.start}).") from error


def _parse_json(text: str, path: Path, line: int) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        at = line + error.lineno - 1 if isinstance(error, json.JSONDecodeError) else line
        raise ValueError(f"{path}, line {at}: not valid JSON ({error}); is the file cut off?") from error


def _read_parquet(path: Path) -> list[dict[str, Any]]:
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise ImportError(f"Reading {path} needs pyarrow: pip install 'agentic-gym[data]'") from error
    import pyarrow

    try:
        rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"{path} is not a complete parquet file: {error}") from error
    return rows
