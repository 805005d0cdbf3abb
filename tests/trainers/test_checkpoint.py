"""Checkpoints are complete or absent."""

import json
import os

import pytest

torch = pytest.importorskip("torch")

from agentic_gym.trainers.checkpoint import CheckpointError, Checkpoints


def save(checkpoints, policy, step, **state):
    return checkpoints.save(step, policy, {"moment": torch.full((3,), float(step))}, state)


def names(folder):
    return sorted(p.name for p in folder.iterdir())


def test_what_is_saved_comes_back(policy, tmp_path):
    checkpoints = Checkpoints(tmp_path)
    assert checkpoints.latest() is None
    path = save(checkpoints, policy, 7, algorithm={"mean": 0.5})
    expected = {k: v.clone() for k, v in policy.model.state_dict().items()}
    with torch.no_grad():
        for parameter in policy.model.parameters():
            parameter.zero_()
    optimizer, state = checkpoints.load(path, policy.model)
    assert all(torch.equal(v, expected[k]) for k, v in policy.model.state_dict().items())
    assert optimizer["moment"].tolist() == [7.0] * 3
    assert state == {"step": 7, "algorithm": {"mean": 0.5}}


def test_tied_weights_stay_tied(policy, tmp_path):
    path = save(Checkpoints(tmp_path), policy, 1)
    Checkpoints.load(path, policy.model)
    assert policy.model.get_output_embeddings().weight is policy.model.get_input_embeddings().weight


def test_only_the_newest_stay(policy, tmp_path):
    checkpoints = Checkpoints(tmp_path, keep=2)
    for step in (1, 5, 10, 200):
        save(checkpoints, policy, step)
    assert names(tmp_path) == ["step-000010", "step-000200"]
    assert checkpoints.latest() == tmp_path / "step-000200"


def test_half_a_checkpoint_is_none(policy, tmp_path):
    checkpoints = Checkpoints(tmp_path)
    save(checkpoints, policy, 1)
    (tmp_path / ".step-000002.partial").mkdir()
    (tmp_path / "step-000003").mkdir()
    assert checkpoints.latest() == tmp_path / "step-000001"
    save(checkpoints, policy, 2)
    assert checkpoints.latest() == tmp_path / "step-000002"
    assert ".step-000002.partial" not in names(tmp_path)


@pytest.mark.parametrize("place", ["model", "optimizer", "rename"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device"), MemoryError()])
def test_an_interruption_leaves_the_last_one_and_no_rest(policy, tmp_path, monkeypatch, place, error):
    checkpoints = Checkpoints(tmp_path)
    path = save(checkpoints, policy, 1)
    files = {p.name: p.read_bytes() for p in path.iterdir()}

    def broken(*_, **__):
        raise error

    where = {"model": (policy.model, "save_pretrained"), "optimizer": (torch, "save"), "rename": (os, "replace")}
    monkeypatch.setattr(*where[place], broken)
    expected = CheckpointError if isinstance(error, Exception) else KeyboardInterrupt
    with pytest.raises(expected) as caught:
        save(checkpoints, policy, 2)
    if expected is CheckpointError:
        assert "step-000002" in str(caught.value)
        assert "step-000001, is intact" in str(caught.value)
    assert names(tmp_path) == ["step-000001"]
    assert {p.name: p.read_bytes() for p in path.iterdir()} == files


def test_a_path_that_cannot_be_written_is_named(policy, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match=r"cannot write .*file/step-000001.*there is no earlier checkpoint"):
        save(Checkpoints(tmp_path / "file"), policy, 1)


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.pt", "state.json", "config.json"])
@pytest.mark.parametrize("damage", ["gone", "half"])
def test_a_damaged_checkpoint_is_named(policy, tmp_path, name, damage):
    path = save(Checkpoints(tmp_path), policy, 1)
    if damage == "gone":
        (path / name).unlink()
    else:
        content = (path / name).read_bytes()
        (path / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(CheckpointError, match=r"cannot read .*step-000001.*Delete it to resume from the one before"):
        Checkpoints.load(path, policy.model)


def test_a_checkpoint_of_another_model_is_named(policy, tokenizer, tmp_path):
    from agentic_gym.benchmarks.experiments import tiny

    path = save(Checkpoints(tmp_path), policy, 1)
    with pytest.raises(CheckpointError, match="cannot read"):
        Checkpoints.load(path, tiny.build_model(tokenizer, width=64, layers=1))


def test_pickled_code_is_not_run(policy, tmp_path):
    class Evil:
        def __reduce__(self):
            return (os.system, (f"touch {tmp_path}/evil",))

    path = save(Checkpoints(tmp_path), policy, 1)
    torch.save({"moment": Evil()}, path / "optimizer.pt")
    with pytest.raises(CheckpointError):
        Checkpoints.load(path, policy.model)
    assert not (tmp_path / "evil").exists()


def test_the_state_is_plain_json(policy, tmp_path):
    path = save(Checkpoints(tmp_path), policy, 3, algorithm={})
    assert json.loads((path / "state.json").read_text()) == {"step": 3, "algorithm": {}}
