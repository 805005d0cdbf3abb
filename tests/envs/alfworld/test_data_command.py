import gzip

from agentic_gym.envs.alfworld.data_command import prepare_data
from agentic_gym.envs.alfworld.tasks import load_tasks


def test_without_a_source_it_says_where_files_go(tmp_path, monkeypatch):
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    text = prepare_data()
    assert str(tmp_path / "json_2.1.1") in text
    assert "--from" in text
    assert list(tmp_path.iterdir()) == []


def test_it_rebuilds_and_reports(alfworld_data, tmp_path):
    source = tmp_path / "alfred"
    source.mkdir()
    for split in ("train", "valid_seen", "valid_unseen"):
        with gzip.open(alfworld_data / f"{split}.jsonl.gz", "rt") as lines:
            (source / f"{split}.jsonl").write_text("".join(next(lines) for _ in range(3)))
    text = prepare_data(source, tmp_path / "out")
    assert "train: 3 games rebuilt from ALFRED" in text
    assert "rebuilt from ALFRED" in load_tasks(tmp_path / "out").name


def test_it_writes_generated_games(tmp_path):
    assert "2 generated games" in prepare_data(out=tmp_path, generate=2)
    assert len(load_tasks(tmp_path / "generated" / "valid_unseen")) == 2
