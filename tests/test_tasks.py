import copy
import gzip
import json
import operator
import os
import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_gym.tasks import Task, TaskSet, read_records

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
tasks_strategy = st.lists(
    st.builds(
        Task,
        id=st.text(min_size=1, max_size=8),
        prompt=st.text(max_size=30),
        answer=json_values,
        level=st.none() | st.integers() | st.text(max_size=4),
        info=st.dictionaries(st.text(max_size=5), json_values, max_size=3),
    ),
    max_size=6,
    unique_by=lambda task: task.id,
)


def numbered(n: int, name: str = "sums") -> TaskSet:
    return TaskSet([Task(f"sum-{i}", f"What is {i} + 1?", str(i + 1), level=i % 3) for i in range(n)], name=name)


def test_a_task_is_frozen_and_its_info_read_only() -> None:
    given_info = {"golds": ["a", "b"]}
    task = Task("t", "p", ["x", "y"], info=given_info)
    given_info["golds"].append("c")
    assert task.answer == ("x", "y")
    assert task.info["golds"] == ("a", "b")
    with pytest.raises(FrozenInstanceError):
        task.prompt = "other"  # type: ignore[misc]
    with pytest.raises(TypeError):
        task.info["golds"] = ()  # type: ignore[index]


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"id": "", "prompt": "p"}, "non-empty"),
        ({"id": 3, "prompt": "p"}, "non-empty"),
        ({"id": "t", "prompt": None}, "prompt must be a str"),
        ({"id": "t", "prompt": "p", "level": 1.5}, "level must be"),
        ({"id": "t", "prompt": "p", "level": True}, "level must be"),
        ({"id": "t", "prompt": "p", "answer": {1, 2}}, "JSON data only"),
        ({"id": "t", "prompt": "p", "info": {"path": Path("x")}}, r"info\['path'\]"),
        ({"id": "t", "prompt": "p", "info": [1]}, "info must be a mapping"),
    ],
)
def test_a_bad_field_is_refused_by_name(arguments: dict[str, object], match: str) -> None:
    with pytest.raises(TypeError, match=match):
        Task(**arguments)  # type: ignore[arg-type]


def test_numpy_scalars_become_plain_numbers() -> None:
    task = Task("t", "p", np.int64(4), level=np.int32(2))  # type: ignore[arg-type]
    assert type(task.answer) is int
    assert type(task.level) is int


@given(tasks_strategy)
def test_every_set_survives_pickle_copy_and_file(tmp_path_factory: pytest.TempPathFactory, items: list[Task]) -> None:
    tasks = TaskSet(items, name="any", split="train")
    path = tmp_path_factory.mktemp("sets") / "any.jsonl"
    tasks.to_jsonl(path)
    for twin in (pickle.loads(pickle.dumps(tasks)), copy.deepcopy(tasks), TaskSet.from_file(path)):
        assert twin == tasks
        assert hash(twin) == hash(tasks)
        assert twin.content_hash == tasks.content_hash
        assert twin.name == "any"


def test_lookup_by_index_id_and_slice() -> None:
    tasks = numbered(6)
    assert tasks[2] is tasks["sum-2"] is tasks[np.int64(2)] is tasks[-4]
    assert isinstance(tasks[1:3], TaskSet)
    assert tasks[1:3].ids == ("sum-1", "sum-2")
    assert "sum-5" in tasks
    assert tasks[0] in tasks
    assert Task("sum-0", "another prompt") not in tasks
    with pytest.raises(KeyError, match=r"'sums'.*Did you mean 'sum-"):
        tasks["sun-2"]
    with pytest.raises(KeyError, match="The first is 'sum-0'"):
        tasks["zzzzzzzz"]
    with pytest.raises(IndexError, match="holds 6 tasks"):
        tasks[6]
    with pytest.raises(KeyError):
        TaskSet([])["x"]


def test_duplicate_ids_are_refused() -> None:
    with pytest.raises(ValueError, match="items 0 and 2 share the id 'a'"):
        TaskSet([Task("a", "1"), Task("b", "2"), Task("a", "3")])
    with pytest.raises(ValueError, match="share the id"):
        numbered(2) + numbered(2)
    with pytest.raises(TypeError, match="not a Task"):
        TaskSet(["a"])  # type: ignore[list-item]


def test_the_content_hash_sees_content_and_order_but_not_labels() -> None:
    tasks = numbered(5)
    assert tasks.content_hash == numbered(5, name="other").content_hash
    assert tasks.content_hash != tasks[::-1].content_hash
    changed = [*tasks[:4], Task("sum-4", tasks[4].prompt, "6", level=1)]
    assert tasks.content_hash != TaskSet(changed).content_hash
    assert TaskSet([Task("a", "p", 1)]).content_hash != TaskSet([Task("a", "p", "1")]).content_hash
    assert tasks.content_hash[:12] in repr(tasks)
    assert "sums" in repr(tasks)


def test_the_content_hash_is_the_same_in_every_process() -> None:
    code = (
        "from agentic_gym.tasks import *;"
        "t = TaskSet([Task('a', 'é', {'y': 1, 'x': [2.5]}, 'hard', {'k': None})]);"
        "print(t.content_hash)"
    )
    hashes = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "random")
    }
    assert hashes == {"8d74b24b4d8cb236e458ca756c128724c626243793a15e400ca3bfd781592071\n"}


def test_filter_and_subset_keep_order_and_labels() -> None:
    tasks = numbered(9)
    assert tasks.levels == [0, 1, 2]
    assert tasks.filter(levels=2).ids == ("sum-2", "sum-5", "sum-8")
    assert {task.level for task in tasks.filter(levels=range(2))} == {0, 1}
    assert tasks.subset([4, 1]).ids == ("sum-4", "sum-1")
    assert tasks.subset(np.array([4, 1])).name == "sums"
    with pytest.raises(ValueError, match=r"level in \[7\]; it has \[0, 1, 2\]"):
        tasks.filter(levels=7)
    assert TaskSet([Task("a", "", level="b"), Task("c", "", level=3), Task("d", "")]).levels == [3, "b"]


@given(st.integers(2, 40), st.integers(0, 5), st.data())
def test_split_is_a_stable_partition(n: int, seed: int, data: st.DataObject) -> None:
    tasks = numbered(n)
    size = data.draw(st.integers(1, n - 1))
    first, rest = tasks.split(size, seed=seed)
    assert len(first) == size
    assert sorted([*first.ids, *rest.ids]) == sorted(tasks.ids)
    for part in (first, rest):
        assert list(part.ids) == [i for i in tasks.ids if i in part]
    # The choice depends on ids alone, so reordering the set does not move a task to the other side.
    assert set(tasks[::-1].split(size, seed=seed)[0].ids) == set(first.ids)


def test_split_sizes_and_seeds() -> None:
    tasks = numbered(100)
    first, rest = tasks.split(0.8, seed=1)
    assert (len(first), len(rest)) == (80, 20)
    assert (first.split_name, rest.split_name) == ("train", "test")
    assert first.ids != tasks.split(0.8, seed=2)[0].ids
    for bad in (0, 100, 1.0, -3, 0.001, True):
        with pytest.raises(ValueError, match="split size"):
            tasks.split(bad)


def test_concat_joins_names() -> None:
    both = numbered(2) + TaskSet([Task("z", "p")], name="more", split="test")
    assert both.name == "sums+more"
    assert both.split_name is None
    assert both.ids == ("sum-0", "sum-1", "z")
    assert TaskSet.concat([both[:1], both[1:]], name="again").split_name is None
    with pytest.raises(TypeError):
        operator.add(both, [Task("y", "p")])


def test_sample_draws_from_the_given_generator_only() -> None:
    tasks = numbered(50)
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    draws = [tasks.sample(np.random.default_rng(4)).id for _ in range(2)]
    assert draws[0] == draws[1]
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002
    rng = np.random.default_rng(0)
    assert len({tasks.sample(rng).id for _ in range(400)}) == 50
    with pytest.raises(ValueError, match="empty"):
        TaskSet([]).sample(rng)


def test_from_records_names_keys_and_positions() -> None:
    tasks = TaskSet.from_records(
        [
            {"question": "q", "answer": "a", "source": "s"},
            {"id": 7, "problem": "p", "info": {"k": 1}, "level": 2},
        ],
        name="mine",
    )
    assert tasks.ids == ("mine-0", "7")
    assert dict(tasks[0].info) == {"source": "s"}
    assert (tasks[1].answer, tasks[1].level, dict(tasks[1].info)) == (None, 2, {"k": 1})
    with pytest.raises(ValueError, match="Record 0 of 'mine' has none of the keys"):
        TaskSet.from_records([{"text": "x"}], name="mine")
    with pytest.raises(TypeError, match="not a mapping"):
        TaskSet.from_records(["x"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="info must be a mapping"):
        TaskSet.from_records([{"prompt": "p", "info": "x"}])


def test_files_of_every_kind_read_equal(tmp_path: Path) -> None:
    records = [
        {"id": "a", "prompt": "line\u2028separator", "answer": "1"},
        {"id": "b", "prompt": "é", "answer": "2"},
    ]
    lines = "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records)
    (tmp_path / "t.jsonl").write_text("\ufeff" + lines + "\n\n", encoding="utf-8")
    (tmp_path / "t.json").write_text(json.dumps(records, indent=1), encoding="utf-8")
    (tmp_path / "t.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    expected = TaskSet.from_records(records)
    for name in ("t.jsonl", "t.json", "t.jsonl.gz"):
        tasks = TaskSet.from_file(tmp_path / name)
        assert tasks == expected
        assert tasks.name == "t"


def test_parquet_reads_equal(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    records = [{"id": "a", "prompt": "p", "answer": ["1", "one"]}]
    parquet.write_table(pyarrow.Table.from_pylist(records), tmp_path / "t.parquet")
    assert TaskSet.from_file(tmp_path / "t.parquet") == TaskSet.from_records(records)
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "t.parquet").read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"cut\.parquet is not a complete parquet file"):
        read_records(tmp_path / "cut.parquet")


def test_parquet_without_pyarrow_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.parquet").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ImportError, match=r"pip install 'agentic-gym\[data\]'"):
        read_records(tmp_path / "t.parquet")


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("cut.jsonl", b'{"prompt": "a"}\n\n{"prompt": "b', r"cut\.jsonl, line 3: .*cut off"),
        ("list.jsonl", b'{"prompt": "a"}\n[1]\n', r"line 2: not an object"),
        ("latin.jsonl", b'{"prompt": "a"}\n{"prompt": "\xe9"}\n', r"line 2: not UTF-8"),
        ("cut.json", b'[\n{"prompt": "a"},\n{"pro', r"cut\.json, line 3"),
        ("object.json", b'{"prompt": "a"}', r"one JSON list"),
        ("empty.json", b"", r"one JSON list"),
        ("items.json", b'[{"prompt": "a"}, 3]', r"item 2: not an object"),
        ("deep.jsonl", b"[" * 100_000, r"line 1: not valid JSON"),
        ("digits.jsonl", b"1" * 10_000, r"line 1: not valid JSON"),
        ("cut.jsonl.gz", gzip.compress(b'{"prompt": "a"}\n' * 50, mtime=0)[:-12], r"not a complete gzip"),
        ("plain.json.gz", b"[]", r"not a complete gzip"),
        ("t.csv", b"a,b", r"t\.csv is not a task file: give a \.jsonl"),
    ],
)
def test_a_broken_file_is_named_with_its_line(tmp_path: Path, name: str, content: bytes, match: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=match):
        TaskSet.from_file(tmp_path / name)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"gone\.jsonl"):
        TaskSet.from_file(tmp_path / "gone.jsonl")
