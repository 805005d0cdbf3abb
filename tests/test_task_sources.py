import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from agentic_gym.answers import grade_math
from agentic_gym.envs.math_tasks import generate_arithmetic
from agentic_gym.task_sources import DATA_VARIABLE, SOURCES, TaskSource, load_tasks, math_record
from agentic_gym.tasks import TaskSet


def write_jsonl(path: Path, records: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder, and no hub."""
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    monkeypatch.setitem(sys.modules, "datasets", None)
    return tmp_path


GSM8K = {"question": "How many?", "answer": "He has 80,000<<x>>.\n#### 80,000"}
MATH = {"problem": "Find x.", "level": "Level 3", "type": "Algebra", "solution": r"So $x=\boxed{\frac{1}{2}}$."}
MATH500 = {
    "problem": "Find y.",
    "solution": r"\boxed{1}, no, \boxed{2}",
    "answer": "2",
    "subject": "Precalculus",
    "level": 2,
    "unique_id": "test/precalculus/807.json",
}
AIME24_SHARED = {
    "id": 60,
    "problem": "P",
    "question": "P",
    "solution": r"$\framebox{204}$",
    "answer": "025",
    "url": "u",
}
AIME24_CAPS = {"ID": "2024-II-4", "Problem": "P", "Solution": "s", "Answer": 33}
AIME24_BOXED = {"id": 1, "problem": "P", "solution": r"\boxed{204}", "url": "u"}


@pytest.mark.parametrize(
    ("record", "prompt", "answer", "level", "info"),
    [
        (GSM8K, "How many?", "80000", None, {"solution": "He has 80,000<<x>>."}),
        (MATH, "Find x.", r"\frac{1}{2}", 3, {"type": "Algebra", "solution": MATH["solution"]}),
        (
            MATH | {"level": "Level ?"},
            "Find x.",
            r"\frac{1}{2}",
            None,
            {"type": "Algebra", "solution": MATH["solution"]},
        ),
        (
            MATH500,
            "Find y.",
            "2",
            2,
            {k: MATH500[k] for k in ("solution", "subject", "unique_id")},
        ),
        (AIME24_SHARED, "P", "025", None, {"id": 60, "solution": r"$\framebox{204}$", "url": "u"}),
        (AIME24_CAPS, "P", "33", None, {"id": "2024-II-4", "solution": "s"}),
        (AIME24_BOXED, "P", "204", None, {"id": 1, "solution": r"\boxed{204}", "url": "u"}),
        ({"problem": "P", "answer": "(1,234)"}, "P", "(1,234)", None, {}),
    ],
)
def test_every_layout_reads_alike(
    record: dict[str, Any], prompt: str, answer: str, level: int | None, info: dict[str, Any]
) -> None:
    assert math_record(record) == {"prompt": prompt, "answer": answer, "level": level, "info": info}


@pytest.mark.parametrize(
    ("name", "count", "total"),
    [("gsm8k", 660, None), ("math500", 250, None), ("aime24", 30, 30), ("aime25", 30, 30)],
)
def test_real_files(
    shared_data: Path, monkeypatch: pytest.MonkeyPatch, name: str, count: int, total: int | None
) -> None:
    monkeypatch.setenv(DATA_VARIABLE, str(shared_data / "math"))
    tasks = load_tasks(name)
    assert len(tasks) == count
    assert (tasks.name, tasks.split_name) == (name, "test")
    assert all(task.id.startswith(f"{name}-test-") for task in tasks)
    for task in tasks:
        assert grade_math(rf"\boxed{{{task.answer}}}", task.answer, symbolic=False).correct
        assert "####" not in task.answer
    if name != "math500":
        assert all(task.answer.removeprefix("-").isdigit() for task in tasks)
    assert load_tasks(name).content_hash == tasks.content_hash


def test_a_given_path_comes_before_the_folder(data: Path, tmp_path: Path) -> None:
    write_jsonl(data / "gsm8k_test.jsonl", [GSM8K])
    other = write_jsonl(tmp_path / "elsewhere" / "x.jsonl", [GSM8K, GSM8K | {"question": "Why?"}])
    assert len(load_tasks("gsm8k")) == 1
    assert load_tasks("gsm8k", path=other).ids == ("gsm8k-test-0", "gsm8k-test-1")
    with pytest.raises(FileNotFoundError, match=r"gone\.jsonl"):
        load_tasks("gsm8k", path=tmp_path / "gone.jsonl")


def test_splits_do_not_take_each_others_files(data: Path) -> None:
    write_jsonl(data / "gsm8k.jsonl", [GSM8K])
    assert load_tasks("gsm8k", split="test").split_name == "test"
    with pytest.raises(FileNotFoundError, match="'train' split"):
        load_tasks("gsm8k", split="train")
    write_jsonl(data / "gsm8k-train.jsonl", [GSM8K, GSM8K])
    assert len(load_tasks("gsm8k", split="train")) == 2
    with pytest.raises(ValueError, match="'aime24' has no split 'train'"):
        load_tasks("aime24", split="train")
    with pytest.raises(ValueError, match="has no split 'dev'; it has 'train', 'test'"):
        load_tasks("gsm8k", split="dev")


def test_copies_of_hub_repositories(data: Path) -> None:
    write_jsonl(data / "math" / "geometry" / "test-00000-of-00001.jsonl", [MATH | {"problem": "G"}])
    write_jsonl(data / "math" / "algebra" / "test-00000-of-00001.jsonl", [MATH | {"problem": "A"}])
    write_jsonl(data / "math" / "algebra" / "train-00000-of-00001.jsonl", [MATH] * 3)
    write_jsonl(data / "gsm8k" / "main" / "test-00000-of-00001.jsonl", [GSM8K])
    write_jsonl(data / "gsm8k" / "socratic" / "test-00000-of-00001.jsonl", [GSM8K] * 5)
    write_jsonl(data / "aime24" / "data" / "train.jsonl", [AIME24_BOXED])
    assert [task.prompt for task in load_tasks("math")] == ["A", "G"]
    assert load_tasks("math").levels == [3]
    assert len(load_tasks("math", split="train")) == 3
    assert len(load_tasks("gsm8k")) == 1
    assert load_tasks("aime24")[0].answer == "204"
    with pytest.raises(FileNotFoundError, match="holds no 'train' file of gsm8k"):
        load_tasks("gsm8k", split="train", path=data / "gsm8k")


def test_a_data_folder_of_that_name_is_not_the_data_set(data: Path) -> None:
    """A folder "math" with other sets' files in it is not the MATH data set."""
    write_jsonl(data / "math" / "gsm8k_test.jsonl", [GSM8K])
    with pytest.raises(FileNotFoundError, match="neither here"):
        load_tasks("math")


def test_a_set_written_by_to_jsonl_reads_back(data: Path) -> None:
    write_jsonl(data / "math500.jsonl", [MATH500])
    tasks = load_tasks("math500")
    assert tasks.ids == ("math500-test-test/precalculus/807.json",)
    tasks.to_jsonl(data / "math500_test.jsonl")
    (data / "math500.jsonl").unlink()
    assert load_tasks("math500") == tasks


def test_levels_are_kept(data: Path) -> None:
    write_jsonl(data / "math_test.jsonl", [MATH | {"level": f"Level {i}"} for i in (1, 5, 3, 5)])
    assert len(load_tasks("math", levels=5)) == 2
    assert load_tasks("math", levels=[1, 3]).levels == [1, 3]
    with pytest.raises(ValueError, match=r"it has \[1, 3, 5\]"):
        load_tasks("math", levels=[9])


@pytest.mark.parametrize(
    ("record", "match"),
    [
        ({"question": "q", "answer": None}, r"Record 1 of .*gsm8k_test\.jsonl is not a gsm8k record: no problem"),
        ({"question": "q", "answer": "#### "}, "no problem or no answer"),
        ({"text": "q", "answer": "1"}, r"fields \['answer', 'text'\]"),
        ({"question": "q", "solution": "no box"}, "no problem or no answer"),
    ],
)
def test_a_bad_record_is_named(data: Path, record: dict[str, Any], match: str) -> None:
    write_jsonl(data / "gsm8k_test.jsonl", [GSM8K, record])
    with pytest.raises(ValueError, match=match):
        load_tasks("gsm8k")


def test_absent_data_says_where_to_put_it(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        load_tasks("gsm8k")
    message = str(caught.value)
    assert str(data / "gsm8k_test.jsonl") in message
    assert "pip install 'agentic-gym[data]'" in message
    assert "openai/gsm8k" in message
    monkeypatch.delenv(DATA_VARIABLE)
    with pytest.raises(FileNotFoundError, match=r"set AGENTIC_GYM_DATA to a folder"):
        load_tasks("aime25")


def fake_hub(monkeypatch: pytest.MonkeyPatch, load_dataset: Any) -> None:
    module = types.ModuleType("datasets")
    module.load_dataset = load_dataset  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "datasets", module)


def test_the_hub_is_asked_last_and_its_configurations_joined(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str | None, str]] = []

    def load_dataset(hub: str, config: str | None, *, split: str) -> list[dict[str, Any]]:
        asked.append((hub, config, split))
        return [MATH | {"problem": f"{hub} {config} {split}"}]

    fake_hub(monkeypatch, load_dataset)
    assert len(load_tasks("math", split="train")) == 7
    assert {config for _, config, _ in asked} == set(SOURCES["math"].configs)
    asked.clear()
    load_tasks("aime24")
    assert asked == [("HuggingFaceH4/aime_2024", None, "train")]
    asked.clear()
    write_jsonl(data / "aime24.jsonl", [AIME24_SHARED])
    load_tasks("aime24")
    assert asked == []


def test_an_unreachable_hub_gives_the_same_one_error(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load_dataset(*_: Any, **__: Any) -> None:
        raise ConnectionError("no route")

    fake_hub(monkeypatch, load_dataset)
    with pytest.raises(FileNotFoundError, match=r"ConnectionError: no route.*gsm8k_test\.jsonl"):
        load_tasks("gsm8k")


def test_any_file_of_tasks(tmp_path: Path) -> None:
    tasks = TaskSet.from_records([{"prompt": "p", "answer": "a", "level": 1}], name="mine")
    tasks.to_jsonl(tmp_path / "mine.jsonl")
    assert load_tasks(tmp_path / "mine.jsonl") == tasks
    assert load_tasks(str(tmp_path / "mine.jsonl"), split="dev", levels=1).split_name == "dev"
    with pytest.raises(FileNotFoundError, match=r"other\.jsonl"):
        load_tasks(str(tmp_path / "other.jsonl"))


def test_an_unknown_name_gives_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"Unknown task set 'gms8k'. Did you mean 'gsm8k'\? Known: arithmetic, "):
        load_tasks("gms8k")
    with pytest.raises(ValueError, match="Unknown task set"):
        load_tasks("")


def test_arithmetic_is_generated() -> None:
    assert load_tasks("arithmetic") == generate_arithmetic(100)
    assert load_tasks("arithmetic", split="test", levels=3) == generate_arithmetic(100, levels=3, split="test")
    with pytest.raises(ValueError, match="takes no path"):
        load_tasks("arithmetic", path="x.jsonl")
    with pytest.raises(ValueError, match="split must be"):
        load_tasks("arithmetic", split="dev")


def test_another_source_is_one_entry(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def qa_record(record: Any) -> dict[str, Any]:
        return {"prompt": record["question"], "answer": record["golden_answers"]}

    monkeypatch.setitem(SOURCES, "trivia", TaskSource("trivia", "x/trivia", convert=qa_record, metric="f1"))
    write_jsonl(data / "trivia_test.jsonl", [{"question": "Who?", "golden_answers": ["A", "B"]}])
    tasks = load_tasks("trivia")
    assert tasks[0].answer == ("A", "B")
    assert tasks.ids == ("trivia-test-0",)
