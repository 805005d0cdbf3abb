"""The question-answering data sets of the loader table, and the layouts of their records."""

import json
import sys
from types import ModuleType

import pytest

from agentic_gym.task_sources import DATA_VARIABLE, SOURCES, load_tasks, qa_record
from agentic_gym.tasks import TaskSet

FLASH_RAG = {
    "id": "train_0",
    "question": "Which magazine was started first?",
    "golden_answers": ["Arthur's Magazine"],
    "metadata": {
        "type": "comparison",
        "supporting_facts": {"title": ["Arthur's Magazine", "First for Women", "First for Women"], "sent_id": [0, 0, 1]},
        "context": {"title": [], "sentences": []},
    },
}
SEARCH_R1 = {
    "id": "test_3",
    "question": "who got the first nobel prize in physics?",
    "golden_answers": ["Wilhelm Conrad Röntgen"],
    "data_source": "nq",
    "prompt": [{"role": "user", "content": "Answer the question. ... Question: who got the first nobel prize in physics?\n"}],
    "ability": "fact-reasoning",
    "reward_model": {"ground_truth": {"target": ["Wilhelm Conrad Röntgen"]}, "style": "rule"},
    "extra_info": {"index": 3, "split": "test"},
}


@pytest.mark.parametrize(
    ("record", "prompt", "answers", "info"),
    [
        (FLASH_RAG, FLASH_RAG["question"], ["Arthur's Magazine"], {"gold_titles": ["Arthur's Magazine", "First for Women"]}),
        (SEARCH_R1, SEARCH_R1["question"], ["Wilhelm Conrad Röntgen"], {"data_source": "nq", "ability": "fact-reasoning"}),
        (
            {key: SEARCH_R1[key] for key in ("prompt", "reward_model")},
            "who got the first nobel prize in physics?",
            ["Wilhelm Conrad Röntgen"],
            {},
        ),
        ({"problem": "When?", "answer": "1870", "metadata": "{'topic': 'Art'}"}, "When?", ["1870"], {}),
        ({"Question": "Where?", "Answer": "here", "Info": {"hop": "multi"}}, "Where?", ["here"], {"hop": "multi"}),
        ({"question": "How many?", "answer": 7, "gold": ["p1"]}, "How many?", ["7"], {"gold": ["p1"]}),
    ],
)
def test_layouts(record, prompt, answers, info):
    read = qa_record(record)
    assert (read["prompt"], read["answer"]) == (prompt, answers)
    assert info.items() <= read["info"].items()


@pytest.mark.parametrize(
    "record", [{}, {"question": "?"}, {"answer": "x"}, {"question": "", "answer": "x"}, {"question": "?", "answer": []}]
)
def test_incomplete_records(record):
    with pytest.raises(ValueError, match="no question or no answer"):
        qa_record(record)


QA = [name for name, source in SOURCES.items() if source.metric in ("em", "f1")]


def test_the_nine_sets_are_there():
    assert QA == ["nq", "triviaqa", "popqa", "hotpotqa", "2wikimultihopqa", "musique", "bamboogle", "simpleqa", "webwalkerqa"]


@pytest.mark.parametrize("name", QA)
def test_a_local_file_comes_first(name, tmp_path, monkeypatch):
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    monkeypatch.setitem(sys.modules, "datasets", None)
    (tmp_path / f"{name}_test.jsonl").write_text(json.dumps(FLASH_RAG) + "\n")
    tasks = load_tasks(name)
    assert tasks.ids == (f"{name}-test-train_0",)
    assert tasks[0].answer == ("Arthur's Magazine",)


@pytest.mark.parametrize("name", QA)
def test_then_the_hub(name, tmp_path, monkeypatch):
    asked = []
    hub = ModuleType("datasets")
    hub.load_dataset = lambda *args, **kwargs: asked.append((args, kwargs)) or [SEARCH_R1]
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    monkeypatch.setitem(sys.modules, "datasets", hub)
    assert len(load_tasks(name)) == 1
    source = SOURCES[name]
    config = source.configs[0] if source.configs else None
    assert asked == [((source.hub, config), {"split": source.splits["test"]})]


def test_without_either_the_message_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(FileNotFoundError, match=r"hotpotqa_test\.jsonl.*agentic-gym\[data\].*FlashRAG_datasets"):
        load_tasks("hotpotqa")


def test_search_r1s_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    import pyarrow
    import pyarrow.parquet

    path = tmp_path / "test.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([SEARCH_R1]), path)
    tasks = load_tasks("nq", path=path)
    assert (tasks[0].prompt, tasks[0].answer) == (SEARCH_R1["question"], ("Wilhelm Conrad Röntgen",))


@pytest.mark.parametrize(
    ("name", "file", "size"), [("hotpotqa", "hotpotqa", 100), ("2wikimultihopqa", "2wiki", 100), ("nq", "nq_open_dev1000", 500)]
)
def test_real_files(shared_data, name, file, size):
    tasks = load_tasks(name, path=shared_data / "qa" / f"{file}.jsonl")
    assert isinstance(tasks, TaskSet)
    assert len(tasks) == size
    assert all(task.answer and all(task.answer) for task in tasks)
