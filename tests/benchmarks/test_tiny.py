"""The laboratory: disjoint splits, right answers, demonstrations that teach what they say."""

from collections import Counter

import pytest

from agentic_gym.benchmarks.experiments import tiny


def test_splits_are_disjoint_and_answers_right():
    train, test = tiny.tiny_tasks("train"), tiny.tiny_tasks("test")
    assert not {t.id for t in train} & {t.id for t in test}
    for task in [*train, *test]:
        assert str(eval(task.info["expression"])) == task.answer
    shares = Counter(t.level for t in test)
    assert all(shares[level] > 500 for level in tiny.LEVELS)
    assert tiny.tiny_tasks("test", per_level=10, seed=3) == tiny.tiny_tasks("test", per_level=10, seed=3)


def test_demonstrations():
    tasks = tiny.tiny_tasks("train", per_level=200)
    episodes = tiny.demonstrations(tasks, 2000, seed=1)
    assert [e.to_dict() for e in episodes[:50]] == [e.to_dict() for e in tiny.demonstrations(tasks, 2000, seed=1)[:50]]
    calls = {level: [sum(s.kind == "tool" for s in e.steps) for e in episodes if e.level == level] for level in tiny.LEVELS}
    for level in tiny.LEVELS:
        assert {0, 1, 2} == set(calls[level])
    for episode in episodes:
        last = episode.steps[-1]
        answer = last.action.split("<answer>")[1].removesuffix("</answer>")
        right = answer == tasks[episode.task_id].answer
        direct = len(episode.steps) == 1
        assert last.kind == "answer"
        assert right == (not (direct and episode.level == tiny.HARD))
        assert direct or episode.instructions != tiny.NOTICE


def test_the_tokenizer_survives_saving(tmp_path):
    torch = pytest.importorskip("torch")
    from agentic_gym.policies.transformers import TransformersPolicy

    tokenizer = tiny.build_tokenizer()
    model = tiny.build_model(tokenizer)
    assert 100_000 <= sum(p.numel() for p in model.parameters()) <= 300_000
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    loaded = TransformersPolicy.from_pretrained(tmp_path, dtype="float32", device="cpu")
    text = "Q: 12*34=?A: <think>Let me run it.</think><python>print(12*34)</python>"
    assert loaded.tokenizer.encode(text) == tokenizer.encode(text)
    assert torch.equal(loaded.model.get_input_embeddings().weight, model.get_input_embeddings().weight)
