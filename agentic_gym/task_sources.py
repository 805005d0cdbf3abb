"""Named task sets, from a local file first and then from the Hugging Face hub.

- ``load_tasks``: a name or a path to a ``TaskSet``.
- ``SOURCES``: the table of names; a new data set is one entry.
- ``TaskSource``: where a data set lies and how its records are read.
- ``GENERATORS``: the sets that are generated instead, as entry points.

A name is looked up under the folder that the environment variable ``AGENTIC_GYM_DATA`` names: ``gsm8k_test.jsonl``
(or ``.json``, ``.parquet``), for the default split also ``gsm8k.jsonl``, or a folder ``gsm8k`` laid out as on the hub.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from agentic_gym.answers import extract_boxed
from agentic_gym.tasks import TaskSet, near, read_records

__all__ = ["DATA_VARIABLE", "GENERATORS", "SOURCES", "TaskSource", "load_tasks", "math_record", "qa_record"]

DATA_VARIABLE = "AGENTIC_GYM_DATA"
"""The environment variable that names the folder of local data files."""

_SUFFIXES = (".jsonl", ".json", ".parquet", ".jsonl.gz", ".json.gz")


def math_record(record: Mapping[str, Any]) -> dict[str, Any]:
    r"""Read one problem of any of the usual mathematics layouts.

    The problem is `question`, `problem` or `prompt`; the answer is `answer`, after ``####`` where it holds a GSM8K
    solution, or else the last ``\boxed{}`` of `solution`. A level "Level 3" becomes 3; other fields go into `info`.

    >>> math_record({"question": "1+1?", "answer": "One and one.\n#### 2"})
    {'prompt': '1+1?', 'answer': '2', 'level': None, 'info': {'solution': 'One and one.'}}
    """
    rest = {key.lower(): value for key, value in record.items() if value is not None}
    prompt = next((rest[key] for key in ("problem", "question", "prompt") if key in rest), None)
    answer = rest.pop("answer", None)
    if isinstance(answer, str) and "####" in answer:
        before, _, answer = answer.rpartition("####")
        rest.setdefault("solution", before.strip())
    if answer is None and isinstance(rest.get("solution"), str):
        answer = extract_boxed(rest["solution"])
    if not isinstance(prompt, str) or answer is None or not str(answer).strip():
        raise ValueError(f"no problem or no answer among the fields {sorted(record)}")
    level = rest.pop("level", None)
    if isinstance(level, str):
        number = re.search("[0-9]+", level)
        level = int(number[0]) if number else None
    info = dict(rest.pop("info", {}))
    info |= {key: value for key, value in rest.items() if key not in ("problem", "question", "prompt")}
    # Thousands separators go, so that the answer reads as the number it is.
    text = str(answer).strip()
    return {
        "prompt": prompt,
        "answer": text.replace(",", "") if re.fullmatch(r"-?\d{1,3}(,\d{3})+", text) else text,
        "level": level,
        "info": info,
    }


def qa_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """Read one question of any of the usual question-answering layouts.

    The question is `question`, `problem` or `prompt` (also a chat, as in Search-R1's files: what follows "Question:" in its last
    message); the accepted answers are `golden_answers`, `answers`, `answer` or Search-R1's `reward_model` target. The titles of
    HotpotQA's supporting facts become `gold_titles`; paragraphs that come with a question (`metadata`, `context`) are left out.

    >>> qa_record({"question": "Who?", "golden_answers": ["Ada", "Ada L."], "type": "bridge"})
    {'prompt': 'Who?', 'answer': ['Ada', 'Ada L.'], 'level': None, 'info': {'type': 'bridge'}}
    """
    rest = {key.lower(): value for key, value in record.items() if value is not None}
    prompt = next((rest[key] for key in ("question", "problem", "prompt") if rest.get(key)), None)
    if isinstance(prompt, (list, tuple)) and isinstance(prompt[-1], Mapping):
        prompt = str(prompt[-1].get("content", "")).rpartition("Question:")[2].strip()
    reward = rest.get("reward_model") or {}
    target = (reward.get("ground_truth") or {}).get("target") if isinstance(reward, Mapping) else None
    found = next((rest[key] for key in ("golden_answers", "answers", "answer") if key in rest), target)
    answers = [str(answer) for answer in (found if isinstance(found, (list, tuple)) else [found]) if answer is not None]
    if not isinstance(prompt, str) or not prompt or not answers:
        raise ValueError(f"no question or no answer among the fields {sorted(record)}")
    metadata = rest.get("metadata")
    facts = metadata.get("supporting_facts") if isinstance(metadata, Mapping) else None
    info = dict(rest.pop("info", {}))
    if isinstance(facts, Mapping) and isinstance(facts.get("title"), (list, tuple)):
        info["gold_titles"] = list(dict.fromkeys(facts["title"]))
    info |= {key: value for key, value in rest.items() if key not in _QA_FIELDS}
    return {"prompt": prompt, "answer": answers, "level": rest.get("level"), "info": info}


_QA_FIELDS = frozenset(
    ("question", "problem", "prompt", "golden_answers", "answers", "answer", "reward_model", "level", "metadata", "context")
)


@dataclass(frozen=True)
class TaskSource:
    """Where a data set lies, how its records become tasks, and how answers are scored."""

    name: str
    hub: str
    """Its id on the Hugging Face hub."""
    configs: tuple[str, ...] = ()
    """The hub configurations to join, in this order; none: the default one."""
    splits: Mapping[str, str] = field(default_factory=lambda: {"train": "train", "test": "test"})
    """Our split names and the hub's; the default split is "test"."""
    convert: Callable[[Mapping[str, Any]], dict[str, Any]] = math_record
    """A raw record to a dict with `prompt`, `answer`, and if known `level` and `info`."""
    metric: Literal["math", "em", "f1"] = "math"
    """Which grader of ``agentic_gym.answers`` scores it."""

    def build(self, records: Iterable[Mapping[str, Any]], split: str, origin: str) -> TaskSet:
        """Convert raw records; a bad one is named by its position in `origin`."""
        return TaskSet.from_records(self._converted(records, split, origin), name=self.name, split=split)

    def _converted(self, records: Iterable[Mapping[str, Any]], split: str, origin: str) -> Iterator[dict[str, Any]]:
        prefix = f"{self.name}-{split}-"
        for i, record in enumerate(records):
            try:
                task = self.convert(record)
            except ValueError as error:
                raise ValueError(f"Record {i} of {origin} is not a {self.name} record: {error}.") from error
            info = dict(task.get("info", {}))
            given = next((info.pop(key) for key in ("unique_id", "id") if key in info), i)
            yield {**task, "info": info, "id": prefix + str(given).removeprefix(prefix)}


_SUBJECTS = (
    "algebra",
    "counting_and_probability",
    "geometry",
    "intermediate_algebra",
    "number_theory",
    "prealgebra",
    "precalculus",
)

_FLASH_RAG = "RUC-NLPIR/FlashRAG_datasets"
"""The collection that Search-R1 and its successors train and test on."""


def _qa(name: str, *, test: str = "test", train: str | None = None) -> TaskSource:
    """One of the seven question-answering sets of that collection, scored by exact match as there."""
    splits = {"test": test} if train is None else {"train": train, "test": test}
    return TaskSource(name, _FLASH_RAG, configs=(name,), splits=splits, convert=qa_record, metric="em")


SOURCES: dict[str, TaskSource] = {
    source.name: source
    for source in (
        TaskSource("gsm8k", "openai/gsm8k", configs=("main",)),
        TaskSource("math", "EleutherAI/hendrycks_math", configs=_SUBJECTS),
        TaskSource("math500", "HuggingFaceH4/MATH-500", splits={"test": "test"}),
        TaskSource("aime24", "HuggingFaceH4/aime_2024", splits={"test": "train"}),
        TaskSource("aime25", "math-ai/aime25", splits={"test": "test"}),
        _qa("nq", train="train"),
        _qa("triviaqa", train="train"),
        _qa("popqa"),
        _qa("hotpotqa", train="train", test="dev"),
        _qa("2wikimultihopqa", train="train", test="dev"),
        _qa("musique", train="train", test="dev"),
        _qa("bamboogle"),
        TaskSource("simpleqa", "basicv8vc/SimpleQA", splits={"test": "test"}, convert=qa_record, metric="f1"),
        TaskSource(
            "webwalkerqa",
            "callanwu/WebWalkerQA",
            splits={"train": "silver", "test": "main"},
            convert=qa_record,
            metric="f1",
        ),
    )
}
"""Every named data set."""

GENERATORS: dict[str, str] = {
    "arithmetic": "agentic_gym.envs.math_tasks:generate_arithmetic",
    "world": "agentic_gym.envs.search_world:world_tasks",
}
"""Entry points, as in Gymnasium's registry, of functions that take `levels` and `split` and return a `TaskSet`."""


def load_tasks(
    name_or_path: str | Path,
    *,
    split: str | None = None,
    path: str | Path | None = None,
    levels: int | str | Iterable[int | str] | None = None,
) -> TaskSet:
    """Load a named data set or a file of tasks.

    Args:
        name_or_path: a name in `SOURCES` or `GENERATORS` ("arithmetic", "world"), or a file for `TaskSet.from_file`.
        split: "train" or "test"; by default "test" for a data set and "train" for a generator.
        path: a file or folder that holds the named data set, instead of looking for it.
        levels: keep only these levels.

    Raises:
        FileNotFoundError: the data is neither here nor to be had from the hub; the message says what to do.
        ValueError: an unknown name or split, a broken file, or no task of these levels.

    >>> load_tasks("arithmetic", levels=[0])[0].prompt
    'What is 1 + 9?'
    """
    name = str(name_or_path)
    if name in GENERATORS:
        if path is not None:
            raise ValueError(f"{name!r} is generated and takes no path, got {str(path)!r}.")
        return _generate(name, split, levels)
    if name in SOURCES:
        tasks = _load_source(SOURCES[name], split or "test", path)
    elif path is None and _is_file(name_or_path):
        tasks = TaskSet.from_file(name_or_path, split=split)
        if not tasks:
            raise ValueError(f"{name_or_path} holds no task: give a file with at least one record")
    else:
        known = [*GENERATORS, *SOURCES]
        raise ValueError(
            f"Unknown task set {name!r}.{near(name, known, n=1)} "
            f"Known: {', '.join(known)}; or give the path of a .jsonl, .json or .parquet file."
        )
    return tasks if levels is None else tasks.filter(levels=levels)


def _is_file(name: str | Path) -> bool:
    # A path that is mistyped is a missing file, not an unknown name.
    return isinstance(name, Path) or name.endswith(_SUFFIXES) or os.sep in name or Path(name).is_file()


def _generate(name: str, split: str | None, levels: int | str | Iterable[int | str] | None) -> TaskSet:
    module, _, function = GENERATORS[name].partition(":")
    given = {"split": split, "levels": levels}
    generate: Callable[..., TaskSet] = getattr(importlib.import_module(module), function)
    return generate(**{key: value for key, value in given.items() if value is not None})


def _load_source(source: TaskSource, split: str, path: str | Path | None) -> TaskSet:
    if split not in source.splits:
        raise ValueError(f"{source.name!r} has no split {split!r}; it has {', '.join(map(repr, source.splits))}.")
    files = _local_files(source, split, path)
    if files:
        records = (record for file in files for record in read_records(file))
        return source.build(records, split, str(files[0] if len(files) == 1 else files[0].parent))
    return source.build(_hub_records(source, split), split, f"{source.hub} on the hub")


def _local_files(source: TaskSource, split: str, path: str | Path | None) -> list[Path]:
    if path is not None:
        given = Path(path)
        files = _in_folder(source, split, given) if given.is_dir() else [given]
        if not files:
            raise FileNotFoundError(f"The folder {given} holds no {split!r} file of {source.name}.")
        return files
    if not os.environ.get(DATA_VARIABLE):
        return []
    folder = Path(os.environ[DATA_VARIABLE])
    stems = [f"{source.name}_{split}", f"{source.name}-{split}", *([source.name] if split == "test" else [])]
    for candidate in (folder / (stem + suffix) for stem in stems for suffix in _SUFFIXES):
        if candidate.is_file():
            return [candidate]
    return _in_folder(source, split, folder / source.name)


def _in_folder(source: TaskSource, split: str, folder: Path) -> list[Path]:
    """The files of a split in a copy of a hub repository: named ``test...`` or in a folder ``test``."""
    names = {split, source.splits[split]}
    files = [
        file
        for file in sorted(folder.rglob("*"))
        if file.name.endswith(_SUFFIXES)
        and names & {re.split("[-_.]", file.name)[0], *file.relative_to(folder).parts[:-1]}
    ]
    # Where the repository has a folder for each configuration, ours are taken and others left.
    ours = [file for config in source.configs for file in files if config in file.relative_to(folder).parts]
    return ours or files


def _hub_records(source: TaskSource, split: str) -> Iterator[Mapping[str, Any]]:
    try:
        import datasets
    except ImportError as error:
        raise FileNotFoundError(_how_to_get(source, split, "the package datasets is not installed")) from error
    try:
        parts = [
            datasets.load_dataset(source.hub, config, split=source.splits[split])
            for config in source.configs or (None,)
        ]
    except Exception as error:  # Offline, a proxy, a gated or renamed set: each library layer has its own type.
        raise FileNotFoundError(_how_to_get(source, split, f"{type(error).__name__}: {error}")) from error
    return (record for part in parts for record in part)


def _how_to_get(source: TaskSource, split: str, reason: str) -> str:
    folder = os.environ.get(DATA_VARIABLE)
    place = Path(folder or f"${DATA_VARIABLE}") / f"{source.name}_{split}.jsonl"
    unset = "" if folder else f" (set {DATA_VARIABLE} to a folder)"
    return (
        f"The {split!r} split of {source.name!r} is neither here nor to be had from the hub ({reason}). Put the file at "
        f"{place}{unset}, or pass path=..., or, with internet access, pip install 'agentic-gym[data]' to load "
        f"{source.hub} from the hub."
    )
